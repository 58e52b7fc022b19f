//! The rows, in rounds, and what is printed of them.

use std::collections::BTreeMap;
use std::time::Duration;
use std::{env, fs};

use rustix::time::{ClockId, clock_gettime};

use crate::{ceiling, limits, machines, ours, quic, tcp};

/// Bytes of a slice that a datagram of 1472 bytes carries.
pub(crate) const SLICE_BYTES: usize = 1434;

/// What crossed, how long that took, and what the threads of each end used of their cores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crossing {
    pub(crate) bytes: u64,
    pub(crate) wall: Duration,
    pub(crate) sender: Duration,
    pub(crate) receiver: Duration,
}

impl Crossing {
    fn gbit(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.wall.as_secs_f64()
    }

    /// Nanoseconds for the bytes of a slice.
    fn each(&self, time: Duration) -> f64 {
        time.as_nanos() as f64 * SLICE_BYTES as f64 / self.bytes as f64
    }
}

/// What this thread has used of its core.
pub(crate) fn cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// What the threads of this process whose name begins so have used of their cores.
pub(crate) fn cpu_of(name: &str) -> Duration {
    let mut spent = Duration::ZERO;
    for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
        let read = |file| fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if read("comm").starts_with(name) {
            let ns = read("schedstat").split(' ').next().and_then(|it| it.parse().ok());
            spent += Duration::from_nanos(ns.unwrap_or(0));
        }
    }
    spent
}

/// A thread whose time [`cpu_of`] finds by its name.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    std::thread::Builder::new().name(name.into()).spawn(run).unwrap()
}

type Row = (&'static str, fn(u64) -> Crossing);

const ROWS: [Row; 9] = [
    ("UDP alone, GSO and GRO, 1472 bytes", |bytes| ceiling::run(bytes, 1472)),
    ("UDP alone, GSO and GRO, 8972 bytes", |bytes| ceiling::run(bytes, 8972)),
    ("haulier, encrypted", |bytes| ours::run(bytes, true, 9000)),
    ("haulier, unencrypted", |bytes| ours::run(bytes, false, 9000)),
    ("haulier, encrypted, 1472 bytes", |bytes| ours::run(bytes, true, 1472)),
    ("haulier, unencrypted, 1472 bytes", |bytes| ours::run(bytes, false, 1472)),
    ("quinn, BBR", |bytes| quic::run(bytes, true)),
    ("quinn, CUBIC", |bytes| quic::run(bytes, false)),
    ("TCP", tcp::run),
];

pub(crate) fn main() {
    let args: Vec<String> = env::args().collect();
    let after = |name: &str| args.iter().position(|it| it == name).and_then(|at| args.get(at + 1));
    let number = |name: &str| after(name).map(|it| it.parse::<u64>().unwrap());
    let (bytes, rounds) = (number("--bytes").unwrap_or(1 << 30), number("--rounds").unwrap_or(3));
    let only = after("--only").cloned().unwrap_or_default();
    if only.is_empty() || only == "limits" {
        limits::print();
    }
    if only.is_empty() || only == "machines" {
        machines::print(bytes.min(machines::MAX_BYTES));
    }
    let mut best: BTreeMap<&str, Crossing> = BTreeMap::new();
    for _ in 0..rounds {
        for (name, run) in ROWS.iter().filter(|(name, _)| name.contains(&only)) {
            let crossing = run(bytes);
            let best = best.entry(name).or_insert(crossing);
            best.wall = best.wall.min(crossing.wall);
            best.sender = best.sender.min(crossing.sender);
            best.receiver = best.receiver.min(crossing.receiver);
        }
    }
    print(bytes, rounds, &best);
}

fn print(bytes: u64, rounds: u64, best: &BTreeMap<&str, Crossing>) {
    println!("\n{} MiB over loopback, the best of {rounds} rounds", bytes >> 20);
    println!("{:<36} {:>8} {:>8} {:>9} {:>9} {:>9}", "", "", "", "of UDP", "ns of CPU", "a slice");
    println!(
        "{:<36} {:>8} {:>8} {:>9} {:>9} {:>9}",
        "", "s", "Gbit/s", "alone", "sender", "receiver"
    );
    let ceiling = ROWS[..2].iter().filter_map(|(name, _)| best.get(name));
    let ceiling = ceiling.map(Crossing::gbit).fold(0.0, f64::max);
    for (name, _) in ROWS {
        let Some(it) = best.get(name) else { continue };
        println!(
            "{name:<36} {:>8.3} {:>8.2} {:>9.3} {:>9.0} {:>9.0}",
            it.wall.as_secs_f64(),
            it.gbit(),
            it.gbit() / ceiling,
            it.each(it.sender),
            it.each(it.receiver),
        );
    }
}
