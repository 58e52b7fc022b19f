//! The bounds of a program around the machines: sessions of files, the threads of a disk, a main loop.
//!
//! The work of a machine is counted ([`bounds`](super::bounds)). The work of threads is measured, by numbers
//! of the process alone: the memory that it touched, and its processor time. So a busy computer changes
//! little. Each bound is several times the measurement of an honest program without optimisation, on two
//! cores that six others used.
//!
//! The invariant: a bound grows with what arrived, with what the program says that it holds for its peers,
//! with the sessions and with the files that were begun; never with a number that a peer wrote.

use super::{Bound, Finding};

/// Memory besides what sessions hold: queues of the disk (8 MiB), its threads, what an allocator keeps.
pub const PROGRAM_BYTES: u64 = 96 << 20;

/// Memory of a session besides what it says that it holds: 32 chunks that wait to be written or were read.
pub const SESSION_BYTES: u64 = 16 << 20;

/// A list is held as bytes and as values for a moment, and what is dropped goes back to the system late.
const HELD_TIMES: u64 = 3;

/// The work of an idle program, in nanoseconds: its start, and 1 % of a core for minutes.
pub const IDLE_NANOS: u64 = 2_000_000_000;

/// A byte that arrives is hashed twice and written: 2 ns. A byte of a list is a twelfth of an entry, which is
/// read, folded and compared with all others: 300 ns, ten times that without optimisation.
pub const BYTE_NANOS: u64 = 3_000;

/// The begin and the end of a session: its values, its jobs, a look at its unfinished files.
pub const SESSION_NANOS: u64 = 50_000_000;

/// A file is made, synced, named, and its directory synced.
pub const FILE_NANOS: u64 = 5_000_000;

/// The longest turn of the main loop, in nanoseconds of its own thread: all clients wait for it. A short list
/// is read in one turn, 20 ms without optimisation.
pub const TURN_NANOS: u64 = 250_000_000;

/// Processor time between the want of an honest client and the first block for it, in nanoseconds: each
/// hostile session may have one part of 64 MiB made before it, and idle jobs have two threads.
pub const LATENCY_NANOS: u64 = 4_000_000_000;

/// What the process may compute after its last client is gone: what was begun.
pub const AFTER_NANOS: u64 = 1_000_000_000;

/// What a program did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Bytes that arrived.
    pub received_bytes: u64,
    /// The maximum of the bytes that its sessions together said they hold.
    pub held_bytes: u64,
    /// Sessions that were begun.
    pub sessions: u64,
    /// Files that were begun.
    pub files: u64,
    /// The most memory that it touched, less what it had at the start.
    pub peak_bytes: u64,
    /// Time of the processor, all threads together; for those that serve, none.
    pub cpu_nanos: Option<u64>,
    /// The longest turn of the main loop, in time of its own thread.
    pub turn_nanos: u64,
    /// What was computed before an honest client had its first bytes, if there was one.
    pub latency_nanos: u64,
    /// What was computed after all clients were gone.
    pub after_nanos: u64,
}

impl Program {
    /// The first bound that is exceeded.
    #[must_use]
    pub fn exceeds(&self) -> Option<Finding> {
        let peak = PROGRAM_BYTES + self.sessions * SESSION_BYTES + self.held_bytes * HELD_TIMES;
        let cpu = IDLE_NANOS
            + self.received_bytes * BYTE_NANOS
            + self.sessions * SESSION_NANOS
            + self.files * FILE_NANOS;
        let all = [
            (Bound::Resident, self.peak_bytes, peak),
            (Bound::Processor, self.cpu_nanos.unwrap_or(0), cpu),
            (Bound::Turn, self.turn_nanos, TURN_NANOS),
            (Bound::Latency, self.latency_nanos, LATENCY_NANOS),
            (Bound::Afterwards, self.after_nanos, AFTER_NANOS),
        ];
        let (bound, is, most) = all.into_iter().find(|(_, is, most)| is > most)?;
        Some(Finding { bound, what: format!("{bound:?}: {is}, at most {most}, {self:?}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_is_one() {
        let fair = Program {
            received_bytes: 1000,
            sessions: 1,
            peak_bytes: PROGRAM_BYTES + SESSION_BYTES,
            cpu_nanos: Some(IDLE_NANOS + 1000 * BYTE_NANOS + SESSION_NANOS),
            turn_nanos: TURN_NANOS,
            latency_nanos: LATENCY_NANOS,
            after_nanos: AFTER_NANOS,
            ..Program::default()
        };
        assert_eq!(fair.exceeds(), None);
        let found = |program: Program| program.exceeds().map(|finding| finding.bound);
        let cpu_nanos = fair.cpu_nanos.map(|it| it + 1);
        let wrong = [
            (Bound::Resident, Program { peak_bytes: fair.peak_bytes + 1, ..fair }),
            (Bound::Processor, Program { cpu_nanos, ..fair }),
            (Bound::Turn, Program { turn_nanos: TURN_NANOS + 1, ..fair }),
            (Bound::Latency, Program { latency_nanos: LATENCY_NANOS + 1, ..fair }),
            (Bound::Afterwards, Program { after_nanos: AFTER_NANOS + 1, ..fair }),
        ];
        wrong.into_iter().for_each(|(bound, program)| assert_eq!(found(program), Some(bound)));
    }
}
