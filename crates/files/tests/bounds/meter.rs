//! What a process touched and computed, as Linux counts it.

use std::fs;

use haulier_sim::oracle::program::Program;

/// What the process did since this was made.
pub(crate) struct Meter {
    first_bytes: u64,
    first_nanos: u64,
    pub(crate) done: Program,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let done = Program::default();
        Self { first_bytes: peak_bytes(), first_nanos: cpu_nanos(), done }
    }

    /// A turn of the main loop, which is this thread.
    pub(crate) fn turn<R>(&mut self, act: impl FnOnce() -> R) -> R {
        let before = thread_nanos();
        let done = act();
        self.done.turn_nanos = self.done.turn_nanos.max(thread_nanos() - before);
        done
    }

    pub(crate) fn conclude(mut self, counts_cpu: bool) -> Program {
        self.done.peak_bytes = peak_bytes().saturating_sub(self.first_bytes);
        self.done.cpu_nanos = counts_cpu.then(|| cpu_nanos() - self.first_nanos);
        self.done
    }
}

/// The most memory that the process had at a time.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    kib << 10
}

/// What all threads computed, also those that have ended. In ticks of 10 ms, everywhere.
pub(crate) fn cpu_nanos() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name, which comes before, may have spaces.
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    fields.skip(11).take(2).map(|it| it.parse::<u64>().unwrap()).sum::<u64>() * 10_000_000
}

fn thread_nanos() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().and_then(|it| it.parse().ok()).unwrap()
}
