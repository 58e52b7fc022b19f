//! What is drawn of a scenario of files.

use std::time::Duration;

use haulier_core::Instant;
use haulier_files::model::Faults;
use haulier_files::taker::Ask;
use haulier_proto::connection::{ConnectionConfig, Delivery};
use haulier_sim::soak::draw_link;
use haulier_sim::{LinkConfig, Probability, Rng};

use super::jobs::Speed;
use super::store::Edit;

const CHUNK: u64 = 1 << 18;

/// All files of a scenario, in bytes.
const MAX_BYTES: u64 = 10 << 20;

/// What the taker has of a file at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    Same,
    Older,
    /// A file with the size and time of the first version, and some other bytes.
    Alike,
}

/// A file.
#[derive(Clone, Debug)]
pub(super) struct FilePlan {
    pub(super) bytes: u64,
    /// The giver knows its root before it is asked.
    pub(super) is_hashed: bool,
    pub(super) before: Before,
    /// It has the content of this one.
    pub(super) same_as: Option<usize>,
}

/// Something that happens to a program or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blow {
    GiverKilled,
    TakerKilled,
    /// The taker's machine loses its power.
    PowerLost,
    AddressChanges,
    FileChanges(usize, Edit),
}

/// A scenario of files.
#[derive(Clone, Debug)]
pub struct TransferScenario {
    pub(super) seed: u64,
    /// The client gives; else it takes.
    pub(super) is_upload: bool,
    pub(super) first_ask: Ask,
    pub(super) files: Vec<FilePlan>,
    /// Up and down.
    pub(super) links: [LinkConfig; 2],
    pub(super) connection: ConnectionConfig,
    /// Of the taker's disk.
    pub(super) disk: Faults,
    pub(super) is_disk_small: bool,
    pub(super) disk_fails: bool,
    pub(super) disk_lies: bool,
    pub(super) giver_failing_per_mille: u64,
    /// Of the giver's disk, and the taker's.
    pub(super) speeds: [Speed; 2],
    pub(super) faults_until: Instant,
    pub(super) blows: Vec<(Instant, Blow)>,
    /// Blows that fall when the taker has written this number of chunks, the last first: most other blows
    /// fall while nothing is written.
    pub(super) blows_at_chunks: Vec<(u64, Blow)>,
}

impl TransferScenario {
    /// Draws a scenario.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 7_000);
        let faults = Duration::from_millis(rng.between(1_000, 25_000));
        let mut files = draw_files(&mut rng);
        draw_likeness(&mut Rng::stream(seed, 7_001), &mut files);
        let seldom = Probability::percent(20);
        let [is_disk_small, disk_fails, disk_lies] = [seldom; 3].map(|p| rng.chance(p));
        let mut disk = Faults::default();
        if is_disk_small {
            let bytes: u64 = files.iter().map(|file| file.bytes).sum();
            disk = disk.with_full_at(rng.below(bytes + 1));
        }
        if disk_fails {
            disk = disk.with_failing(*rng.pick(&[2, 20, 200]));
        }
        if disk_lies {
            disk = disk.with_lying(*rng.pick(&[100, 500, 1000]));
        }
        let is_failing = rng.chance(seldom);
        let giver_failing_per_mille = if is_failing { *rng.pick(&[2, 20, 200]) } else { 0 };
        let idle = Duration::from_millis(rng.between(2_000, 15_000));
        let connection = ConnectionConfig::default()
            .with_delivery(Delivery::Chunks)
            .with_idle_timeout(idle)
            .with_max_block_bytes(1 << 50)
            .with_max_unread_block_bytes(rng.pick(&[2_u64, 4, 16]) << 20);
        let mut blows: Vec<_> = (0..rng.below(8))
            .map(|_| {
                let at = Instant::ZERO + Duration::from_nanos(rng.below(faults.as_nanos() as u64));
                (at, draw_blow(&mut rng, files.len()))
            })
            .collect();
        blows.sort_unstable();
        let is_upload = rng.chance(Probability::percent(35));
        let first_ask = *rng.pick(&[Ask::Get, Ask::Open]);
        let links = [draw_link(&mut rng, faults), draw_link(&mut rng, faults)];
        let speeds = [draw_speed(&mut rng), draw_speed(&mut rng)];
        let chunks: u64 = files.iter().map(|file| file.bytes.div_ceil(CHUNK)).sum();
        let count = rng.below(6);
        let changes = rng.chance(Probability::percent(30));
        let mut blows_at_chunks: Vec<_> = (0..count)
            .map(|number| {
                let file = rng.below(files.len() as u64) as usize;
                let change = Blow::FileChanges(file, *rng.pick(&Edit::ALL));
                let blow = if changes && number % 2 == 0 { change } else { Blow::PowerLost };
                (rng.between(1, chunks + 1), blow)
            })
            .collect();
        blows_at_chunks.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            seed,
            is_upload,
            first_ask,
            links,
            speeds,
            files,
            connection,
            disk,
            is_disk_small,
            disk_fails,
            disk_lies,
            giver_failing_per_mille,
            faults_until: Instant::ZERO + faults,
            blows,
            blows_at_chunks,
        }
    }

    /// This scenario with one file of `bytes` bytes, of which the taker has nothing.
    #[must_use]
    pub fn with_one_file(mut self, bytes: u64) -> Self {
        let is_hashed = self.files[0].is_hashed;
        self.files = vec![FilePlan { bytes, is_hashed, before: Before::Nothing, same_as: None }];
        let blows = self.blows.iter_mut().map(|(_, blow)| blow);
        for blow in blows.chain(self.blows_at_chunks.iter_mut().map(|(_, blow)| blow)) {
            if let Blow::FileChanges(file, _) = blow {
                *file = 0;
            }
        }
        self
    }

    /// What the taker's disk says it synced is there after a crash.
    pub(super) const fn is_honest(&self) -> bool {
        !self.disk_lies
    }
}

fn draw_blow(rng: &mut Rng, files: usize) -> Blow {
    match rng.below(8) {
        0 => Blow::GiverKilled,
        1 | 2 => Blow::TakerKilled,
        3 | 4 => Blow::PowerLost,
        5 => Blow::AddressChanges,
        _ => Blow::FileChanges(rng.below(files as u64) as usize, *rng.pick(&Edit::ALL)),
    }
}

/// One to five files, with more small ones and edge cases than a uniform choice.
fn draw_files(rng: &mut Rng) -> Vec<FilePlan> {
    let mut left = MAX_BYTES;
    let mut files: Vec<FilePlan> = Vec::new();
    for number in 0..rng.between(1, 5) as usize {
        let bytes = match rng.below(8) {
            0 => *rng.pick(&[0, 1, CHUNK - 1, CHUNK, CHUNK + 1]),
            1 => *rng.pick(&[4 * CHUNK - 1, 4 * CHUNK, 4 * CHUNK + 1, 5 << 20]),
            2 | 3 => rng.between(1, 300_000),
            _ => rng.between(1 << 20, 6 << 20),
        };
        let bytes = bytes.min(left);
        left -= bytes;
        let is_hashed = rng.chance(Probability::percent(60));
        let before = match rng.below(8) {
            0 => Before::Same,
            1 | 2 => Before::Older,
            _ => Before::Nothing,
        };
        let is_copy = number > 0 && rng.chance(Probability::percent(15));
        let same_as = is_copy.then(|| rng.below(number as u64) as usize);
        let same_as = same_as.map(|of| files[of].same_as.unwrap_or(of));
        let bytes = same_as.map_or(bytes, |of| files[of].bytes);
        files.push(FilePlan { bytes, is_hashed, before, same_as });
    }
    files
}

/// Gives the taker, for some of the files that are not hashed, a file of the same size and time.
fn draw_likeness(rng: &mut Rng, files: &mut [FilePlan]) {
    for file in files.iter_mut().filter(|file| !file.is_hashed && file.bytes > 0) {
        if rng.chance(Probability::percent(15)) {
            file.before = Before::Alike;
        }
    }
}

fn draw_speed(rng: &mut Rng) -> Speed {
    Speed {
        bytes_per_second: *rng.pick(&[300_000, 2_000_000, 20_000_000, 1_000_000_000]),
        seek: Duration::from_micros(*rng.pick(&[0, 100, 8_000])),
    }
}
