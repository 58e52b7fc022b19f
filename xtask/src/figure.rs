//! `cargo xtask figure`: how long a cold join takes, as the README's first figure and as a table.
//!
//! The times are measured elsewhere and kept in `docs/lab/joins.json`; this draws them, the same bytes
//! from the same rows. A time is given as a multiple of *L*, the physical limit of its link: one round
//! trip plus the time to put every byte on the link once. So 1 is what no sender is expected to beat, and
//! ten very different links fit on one axis.
//!
//! * [`rows`]: reads the runs.
//! * [`svg`]: draws the medians.

mod rows;
mod svg;

use std::collections::BTreeMap;

use crate::workspace::Workspace;
use rows::Row;

const INPUT: &str = "docs/lab/joins.json";
const OUTPUT: &str = "docs/lab/joins.svg";

/// The size of the block that the figure is about; rows of other sizes may be in the file as well.
const BLOCK_BYTES: u64 = 256 * 1024;

/// The most that a cell counts in a geometric mean, and what a failed one counts. It is as bad as nearly
/// anything measured, yet finite, so that one failure does not hide how a peer does elsewhere.
const RATIO_COUNTED_MAX: f64 = 100.0;

/// An emulated link, the same in both directions.
struct Profile {
    name: &'static str,
    rate_mbit: f64,
    rtt_ms: f64,
    /// The mean part of the packets that is lost each way.
    loss: f64,
    /// What else its reader should know.
    note: &'static str,
}

const fn profile(
    name: &'static str,
    rate_mbit: f64,
    rtt_ms: f64,
    loss: f64,
    note: &'static str,
) -> Profile {
    Profile { name, rate_mbit, rtt_ms, loss, note }
}

/// The links, in the order of the figure: from easy to hard, then those whose queue or loss is odd.
const PROFILES: [Profile; 10] = [
    profile("fiber", 100.0, 20.0, 0.0, ""),
    profile("cable", 50.0, 40.0, 0.001, ""),
    profile("wifi", 20.0, 50.0, 0.02, "reorders"),
    profile("mobile", 10.0, 100.0, 0.05, ""),
    profile("ocean", 50.0, 200.0, 0.01, ""),
    profile("bad", 5.0, 150.0, 0.10, ""),
    profile("awful", 2.0, 250.0, 0.20, ""),
    profile("bloat", 2.0, 50.0, 0.0, "deep queue"),
    profile("shallow", 10.0, 80.0, 0.0, "short queue"),
    profile("burst", 20.0, 80.0, 0.05, "in bursts"),
];

impl Profile {
    /// *L* in milliseconds: a round trip to ask and be answered, and the time the block takes on the link
    /// in payloads of 1200 bytes with 28 bytes of IPv4 and UDP before each, when what is lost is sent
    /// again at no other cost.
    fn limit_ms(&self, bytes: u64) -> f64 {
        let bits = bytes as f64 * 8.0 * (1.0 + 28.0 / 1200.0);
        self.rtt_ms + bits / (self.rate_mbit * 1e3 * (1.0 - self.loss))
    }
}

/// The joins of one peer over one link.
struct Cell {
    /// As multiples of *L*, the fastest first; infinite where a join failed.
    ratios: Vec<f64>,
}

impl Cell {
    fn of(profile: &Profile, mut times_ms: Vec<f64>) -> Self {
        times_ms.sort_by(f64::total_cmp);
        let limit_ms = profile.limit_ms(BLOCK_BYTES);
        Self { ratios: times_ms.into_iter().map(|time| time / limit_ms).collect() }
    }

    /// Of an even number of joins the lower of the middle two, which is a time that was measured: between
    /// a success and a failure there is no mean.
    fn median(&self) -> f64 {
        self.ratios[(self.ratios.len() - 1) / 2]
    }

    /// The smallest time within which 95 of 100 joins were done.
    fn p95(&self) -> f64 {
        self.ratios[(self.ratios.len() * 95).div_ceil(100) - 1]
    }

    /// "1.52 / 2.10": the median and the 95th percentile, and how many succeeded if not all did.
    fn text(&self) -> String {
        let ratio = |x: f64| if x.is_finite() { format!("{x:.2}") } else { "fail".to_owned() };
        let (good, all) = (self.ratios.iter().filter(|x| x.is_finite()).count(), self.ratios.len());
        let counts = if good == all { String::new() } else { format!(" ({good}/{all})") };
        format!("{} / {}{counts}", ratio(self.median()), ratio(self.p95()))
    }
}

/// Every cell of one peer, in the order of [`PROFILES`]; `None` where it was not measured.
struct Peer {
    name: String,
    cells: [Option<Cell>; PROFILES.len()],
}

impl Peer {
    /// The geometric mean of the medians, which weighs "twice as slow" alike on every link.
    fn mean(&self) -> f64 {
        let medians = self.cells.iter().flatten().map(|cell| cell.median().min(RATIO_COUNTED_MAX));
        let logarithms: Vec<f64> = medians.map(f64::ln).collect();
        (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
    }
}

/// Draws the figure, and prints the table.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let read = std::fs::read_to_string(workspace.root.join(INPUT));
    let text = read.map_err(|error| format!("{INPUT}: {error}"))?;
    let peers = rows::read(&text).and_then(peers).map_err(|what| format!("{INPUT}: {what}"))?;
    let figure = svg::draw(&peers).map_err(|what| format!("{INPUT}: {what}"))?;
    std::fs::write(workspace.root.join(OUTPUT), figure)
        .map_err(|error| format!("{OUTPUT}: {error}"))?;
    print!("{}", table(&peers));
    Ok(())
}

/// The peers, the fastest first.
fn peers(rows: Vec<Row>) -> Result<Vec<Peer>, String> {
    let mut times = BTreeMap::<String, [Vec<f64>; PROFILES.len()]>::new();
    for row in rows.into_iter().filter(|row| row.bytes == BLOCK_BYTES) {
        let index = PROFILES.iter().position(|profile| profile.name == row.profile);
        let index = index.ok_or_else(|| format!("`{}` is no known profile", row.profile))?;
        times.entry(row.peer).or_default()[index].push(row.total_ms);
    }
    let cell = |index: usize, times: &mut Vec<f64>| {
        (!times.is_empty()).then(|| Cell::of(&PROFILES[index], std::mem::take(times)))
    };
    let peer = |(name, mut times): (String, [Vec<f64>; PROFILES.len()])| Peer {
        name,
        cells: std::array::from_fn(|index| cell(index, &mut times[index])),
    };
    let mut peers: Vec<Peer> = times.into_iter().map(peer).collect();
    peers.sort_by(|a, b| a.mean().total_cmp(&b.mean()));
    Ok(peers)
}

/// One row for each peer: its mean, and the cells as [`Cell::text`].
fn table(peers: &[Peer]) -> String {
    let names = PROFILES.map(|profile| profile.name).join(" | ");
    let mut table = format!("| median / p95, in L | mean | {names} |\n");
    table += &format!("|---|{}\n", "--:|".repeat(1 + PROFILES.len()));
    let limits = PROFILES.map(|profile| format!("{:.0}", profile.limit_ms(BLOCK_BYTES)));
    table += &format!("| *L, ms* | | {} |\n", limits.join(" | "));
    for peer in peers {
        let cells = peer.cells.each_ref();
        let cells = cells.map(|cell| cell.as_ref().map_or_else(|| "-".to_owned(), Cell::text));
        table += &format!("| {} | {:.2} | {} |\n", peer.name, peer.mean(), cells.join(" | "));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(peer: &str, profile: &str, total_ms: f64) -> Row {
        Row { peer: peer.to_owned(), profile: profile.to_owned(), bytes: BLOCK_BYTES, total_ms }
    }

    #[test]
    fn the_limit_is_a_round_trip_and_the_block_on_the_link() {
        // 1200 bytes are 1228 on the link: at 100 Mbit/s 98.24 us, at 2 Mbit/s with every fifth lost 6.14 ms.
        assert!((PROFILES[0].limit_ms(1200) - 20.098_24).abs() < 1e-9);
        assert!((PROFILES[6].limit_ms(1200) - 256.14).abs() < 1e-9);
        assert_eq!(format!("{:.3}", PROFILES[0].limit_ms(BLOCK_BYTES)), "41.461");
    }

    #[test]
    fn a_failed_join_is_slower_than_any_other() {
        let fiber = |times: &[f64]| Cell::of(&PROFILES[0], times.to_vec());
        let half = fiber(&[f64::INFINITY, 90.0, 80.0, f64::INFINITY]);
        assert_eq!(half.median(), 90.0 / PROFILES[0].limit_ms(BLOCK_BYTES));
        assert_eq!(half.text(), "2.17 / fail (2/4)");
        assert_eq!(fiber(&[f64::INFINITY, 90.0, f64::INFINITY]).text(), "fail / fail (1/3)");
    }

    #[test]
    fn p95_of_twenty_is_the_second_slowest() {
        let times: Vec<f64> = (1..=20).map(f64::from).collect();
        let cell = Cell { ratios: times };
        assert_eq!((cell.median(), cell.p95()), (10.0, 19.0));
        assert_eq!(Cell { ratios: vec![3.0] }.p95(), 3.0);
    }

    #[test]
    fn the_table_starts_with_the_fastest_and_has_only_the_block_of_the_figure() {
        let limit = PROFILES[2].limit_ms(BLOCK_BYTES);
        let other_size = Row { bytes: 1 << 24, ..row("c", "wifi", 1.0) };
        let failed = row("a", "wifi", f64::INFINITY);
        let peers = peers(vec![failed, row("b", "wifi", 2.0 * limit), other_size]).unwrap();
        let table = table(&peers);
        let lines: Vec<&str> = table.lines().skip(3).collect();
        assert_eq!(lines[0], "| b | 2.00 | - | - | 2.00 / 2.00 | - | - | - | - | - | - | - |");
        assert!(lines[1].starts_with("| a | 100.00 | - | - | fail / fail (0/1) |"), "{table}");
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn an_unknown_profile_is_not_left_out_silently() {
        assert!(super::peers(vec![row("a", "moon", 1.0)]).is_err_and(|what| what.contains("moon")));
    }
}
