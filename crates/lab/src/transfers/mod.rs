//! The soak of files: a giver and a taker over a connection whose links, disks and programs fail.
//!
//! A scenario is drawn from one seed: the files, what the taker has of them, either end as the client, both
//! disks with their speeds and faults, links with the faults of the other soaks, and blows: programs that are
//! killed, a machine that loses its power, files that change while they are given, addresses that change.
//! Both ends are the machines of `haulier-files` over real connections of haulier/1; the taker's disk is
//! [`haulier_files::model`]. It stands here and not in `haulier-sim` because that is below the files, and
//! not in `haulier-files` because only tests want it.
//!
//! While the faults last, safety: a name is only ever given to bytes that were offered; bytes that a
//! checkpoint covered survive a crash, and written bytes survive a kill, so that none of them is resent;
//! every try ends with success or with a reason that the faults explain; and the memory used is bounded.
//! Then they stop, and liveness: within a few tries all files are there, and stay when the power is lost.

mod end;
mod folder;
mod giving;
mod jobs;
mod plan;
mod store;
mod taking;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use haulier_core::Instant;
use haulier_files::model::{Faults, ModelDisk};
use haulier_files::names::SafePath;
use haulier_proto::client::ClientMachine;
use haulier_sim::hosts::{ClientHost, Keyed, ServerHost, configs};
use haulier_sim::soak::{Outcome, Verdict};
use haulier_sim::{Access, HostId, Rng, World, address};

pub use self::plan::TransferScenario;

use self::end::{End, Ledger, Shared};
use self::folder::{Folder, Left};
use self::plan::{Before, Blow};
use self::store::{Store, Version};

/// Virtual time without a byte, after the faults, that counts as a hang, beside what the disks need to cut
/// all files into pieces: until then no byte of them comes.
const HANG: Duration = Duration::from_secs(120);

/// Tries after the faults until all files have to be there: one that began before, one with an offer of
/// before, one whose files are still locked, and some more.
const MAX_TRIES: u64 = 12;

/// Memory of one connection, in bytes: the largest that a scenario allows a receiver, and what a sender
/// keeps of files of some MB with their repair slices.
const MAX_CONNECTION_BYTES: usize = 32 << 20;

/// Runs the scenario of this seed.
#[must_use]
pub fn run_scenario(seed: u64) -> Outcome {
    TransferScenario::draw(seed).run()
}

impl TransferScenario {
    /// Runs it.
    #[must_use]
    pub fn run(&self) -> Outcome {
        haulier_proto::prepare();
        let mut run = Run::new(self);
        let verdict = run.until_the_end();
        let ledger = run.shared.ledger.borrow();
        Outcome {
            verdict,
            transfers: run.shared.folder.borrow().stored,
            packets: 0,
            restarts: ledger.tries.saturating_sub(1),
            virtual_time: run.world.now().since(Instant::ZERO),
            trace_hash: run.world.trace().hash(),
        }
    }

    fn store(&self) -> Store {
        let mut store = Store::new(Rng::stream(self.seed, 7_201));
        for (number, file) in self.files.iter().enumerate() {
            let content = file.same_as.unwrap_or(number) as u64;
            let mut rng = Rng::stream(self.seed ^ content << 32, 7_202);
            let bytes = rng.bytes(file.bytes as usize).into();
            let path = SafePath::new(&format!("maps/{number}.map")).expect("a path");
            store.add(path, Version::new(bytes, number as i64), file.is_hashed);
        }
        store
    }

    /// The folder as it is at the start.
    fn folder(&self, store: &Rc<RefCell<Store>>) -> Folder {
        let disk = ModelDisk::new(self.seed, Faults::default());
        let mut folder = Folder::new(disk, store, self.is_honest());
        for (plan, file) in self.files.iter().zip(&store.borrow().files) {
            let bytes = file.versions[0].bytes.to_vec();
            match plan.before {
                Before::Nothing => {}
                Before::Same => folder.put(file.path.as_str(), &bytes, -1),
                Before::Alike => {
                    let mut alike = bytes;
                    let place = alike.len() / 2;
                    alike[place] ^= 1;
                    folder.put(file.path.as_str(), &alike, file.versions[0].modified_ns);
                }
                Before::Older => {
                    let mut older = bytes;
                    let place = older.len() / 3;
                    older.splice(place..place, [7; 777]);
                    older.truncate(older.len() * 9 / 10);
                    folder.put(file.path.as_str(), &older, -1);
                }
            }
        }
        folder.disk.set_faults(self.disk);
        folder
    }
}

struct Run<'s> {
    scenario: &'s TransferScenario,
    world: World,
    server: HostId<ServerHost<End>>,
    client: HostId<ClientHost<End>>,
    shared: Shared,
    blows_at_chunks: Vec<(u64, Blow)>,
}

impl<'s> Run<'s> {
    fn new(scenario: &'s TransferScenario) -> Self {
        let seed = scenario.seed;
        let store = Rc::new(RefCell::new(scenario.store()));
        store.borrow_mut().failing_per_mille = scenario.giver_failing_per_mille;
        let folder = Rc::new(RefCell::new(scenario.folder(&store)));
        let ledger = Ledger {
            may_be_full: scenario.is_disk_small,
            may_fail: scenario.disk_fails,
            giver_may_fail: scenario.giver_failing_per_mille > 0,
            ..Ledger::default()
        };
        let shared = Shared {
            store,
            folder,
            ledger: Rc::new(RefCell::new(ledger)),
            speeds: scenario.speeds,
            first_ask: scenario.first_ask,
            seed,
        };
        let (server, client) = configs(Keyed::Secret, scenario.connection);
        let mut world = World::new(seed);
        let of_server = shared.clone();
        let accept = move |now, request: &_| End::server(&of_server, now, request);
        let server = ServerHost::new(accept, server, seed);
        let server = world.add(server, address(1), &Access::default());
        let app = End::client(&shared, scenario.is_upload);
        let client = ClientHost::new(app, client, Instant::ZERO, seed);
        let [up, down] = scenario.links.clone();
        let client = world.add(client, address(2), &Access { up, down });
        let blows_at_chunks = scenario.blows_at_chunks.clone();
        Self { scenario, world, server, client, shared, blows_at_chunks }
    }

    fn until_the_end(&mut self) -> Verdict {
        for (number, &(at, blow)) in self.scenario.blows.iter().enumerate() {
            if let Some(what) = self.run_to(at) {
                return Verdict::Mismatch(what);
            }
            self.strike(number as u64, blow);
        }
        if let Some(what) = self.run_to(self.scenario.faults_until) {
            return Verdict::Mismatch(what);
        }
        self.heal();
        let (mut moved_at, mut moved) = (self.world.now(), self.progress());
        while !self.shared.ledger.borrow().is_done {
            let step = self.world.now() + Duration::from_millis(200);
            if let Some(what) = self.run_to(step) {
                return Verdict::Mismatch(what);
            }
            if self.progress() != moved {
                (moved_at, moved) = (self.world.now(), self.progress());
            }
            let is_hanging = self.world.now() - moved_at > HANG + self.cutting_time();
            if is_hanging || self.shared.ledger.borrow().tries_since_healed > MAX_TRIES {
                return Verdict::Hang(self.describe());
            }
        }
        self.judge_the_end().map_or(Verdict::Finished, Verdict::Mismatch)
    }

    /// The slower end's, if it cuts one file after the other.
    fn cutting_time(&self) -> Duration {
        let times = self.scenario.speeds.iter().map(|speed| {
            self.scenario.files.iter().map(|file| speed.time(file.bytes)).sum::<Duration>()
        });
        times.max().unwrap_or_default()
    }

    fn run_to(&mut self, end: Instant) -> Option<String> {
        let Shared { ledger, folder, .. } = self.shared.clone();
        let wrong = || ledger.borrow().wrong.clone().or_else(|| folder.borrow().wrong.clone());
        while self.world.now() < end && wrong().is_none() {
            let step = (self.world.now() + Duration::from_millis(50)).min(end);
            let next = self.blows_at_chunks.last().copied();
            let is_due = || next.is_some_and(|(chunks, _)| folder.borrow().written >= chunks);
            self.world.run_until(step, |_| wrong().is_some() || is_due());
            if let Some((_, blow)) = next.filter(|_| is_due()) {
                self.blows_at_chunks.pop();
                self.strike(500 + self.blows_at_chunks.len() as u64, blow);
            }
            if let Some(what) = self.judge_memory() {
                return Some(what);
            }
        }
        wrong()
    }

    fn judge_memory(&self) -> Option<String> {
        let server = &self.world.host(self.server).server;
        let of_server = server.connections().filter_map(|id| server.connection(id));
        let of_client = self.world.host(self.client).client.as_ref();
        let of_client = of_client.and_then(ClientMachine::connection);
        let bytes = of_server.chain(of_client).map(|connection| connection.memory_bytes()).max();
        let bytes = bytes.filter(|&bytes| bytes > MAX_CONNECTION_BYTES)?;
        Some(format!("a connection holds {bytes} bytes"))
    }

    fn strike(&mut self, number: u64, blow: Blow) {
        let is_upload = self.scenario.is_upload;
        match blow {
            Blow::GiverKilled if is_upload => self.crash_client(Left::Killed),
            Blow::GiverKilled => self.crash_server(number, Left::Killed),
            Blow::TakerKilled => {
                self.crash_taker(number, Left::Killed);
                self.shared.folder.borrow_mut().kill();
            }
            Blow::PowerLost => {
                // What a disk that lied has lost has to be had again.
                self.shared.ledger.borrow_mut().is_done &= self.scenario.is_honest();
                self.crash_taker(number, Left::PowerLost);
                self.lose_power();
                if is_upload && !self.shared.ledger.borrow().is_done {
                    self.crash_client(Left::Killed);
                }
            }
            Blow::AddressChanges => {
                let mut new = self.world.address(self.client);
                new.set_port(new.port() + 1);
                self.world.rebind(self.client, new);
            }
            Blow::FileChanges(file, edit) => self.shared.store.borrow_mut().edit(file, edit),
        }
    }

    fn lose_power(&self) {
        let mut folder = self.shared.folder.borrow_mut();
        folder.lose_power();
        folder.check_names();
    }

    fn crash_taker(&mut self, number: u64, left: Left) {
        match self.scenario.is_upload {
            true => self.crash_server(number, left),
            false => self.crash_client(left),
        }
    }

    fn crash_client(&mut self, left: Left) {
        let until = self.world.now() + Duration::from_millis(700);
        let is_done = self.shared.ledger.borrow().is_done;
        self.world.act(self.client, |host, _| {
            host.app.crash(left);
            if !is_done {
                host.crash(until);
            }
        });
    }

    fn crash_server(&mut self, number: u64, left: Left) {
        let (config, _) = configs(Keyed::Secret, self.scenario.connection);
        let key = Rng::stream(self.scenario.seed, 7_300 + number).key();
        self.world.act(self.server, |host, now| {
            host.apps.values_mut().for_each(|app| app.crash(left));
            host.restart(now, config, key);
        });
        if !self.scenario.is_upload {
            self.shared.store.borrow_mut().load();
        }
    }

    /// The faults stop. A server that gives is started again, for its files may have changed.
    fn heal(&mut self) {
        for link in self.world.links_mut(self.world.segment_of(self.client)) {
            link.set_config(link.config().healed());
        }
        self.blows_at_chunks.clear();
        self.shared.folder.borrow().disk.set_faults(Faults::default());
        self.shared.store.borrow_mut().failing_per_mille = 0;
        self.shared.ledger.borrow_mut().tries_since_healed = 0;
        if !self.scenario.is_upload && !self.shared.ledger.borrow().is_done {
            self.crash_server(999, Left::Killed);
        }
    }

    /// A number that grows with every useful progress.
    fn progress(&self) -> u64 {
        let stats = |host: &ServerHost<End>| {
            let server = &host.server;
            let connections = server.connections().filter_map(|id| server.connection(id));
            connections.map(|it| it.stats().bytes_sent + it.stats().bytes_received).sum::<u64>()
        };
        // Pings are some bytes a second.
        stats(self.world.host(self.server)) / 20_000 + self.shared.folder.borrow().stored
    }

    /// All is there, now and when the power is lost.
    fn judge_the_end(&mut self) -> Option<String> {
        if let Some(what) = self.all_is_there() {
            return Some(what);
        }
        self.shared.folder.borrow().disk.set_faults(Faults::default());
        if self.scenario.is_honest() {
            self.lose_power();
            let wrong = self.shared.folder.borrow().wrong.clone();
            return wrong.or_else(|| self.all_is_there().map(|it| format!("after a crash {it}")));
        }
        None
    }

    fn all_is_there(&self) -> Option<String> {
        let (store, folder) = (self.shared.store.borrow(), self.shared.folder.borrow());
        store.files.iter().find_map(|file| {
            let path = file.path.as_str();
            let root = *haulier_proto::connection::BlockTree::of(&folder.disk.bytes(path)).digest();
            let is_right = folder.disk.exists(path) && store.ever_had(path, &root);
            (!is_right).then(|| format!("{path} is not there"))
        })
    }

    fn describe(&self) -> String {
        let server = self.world.host(self.server);
        let of_server: Vec<String> = server.apps.values().map(End::describe).collect();
        let client = self.world.host(self.client).app.describe();
        let ledger = self.shared.ledger.borrow();
        format!("{ledger:?}; server {of_server:?}; client {client}")
    }
}
