//! The bounds: what a machine may hold, allocate and compute, given what it was sent.
//!
//! All are counts, so a violation is the same on every computer, and a seed replays it. Costs are in
//! nanoseconds of a common server core, rounded up from measurements, and are compared with what an honest
//! slice costs. The invariant: a bound grows only with what arrived, with what this end's own application
//! sent, and with the number of connections.

use haulier_proto::internals::Work;

use super::Meter;

/// What a machine holds besides its connections: queues of answers, and tables that have begun to grow. The
/// large ones grow with the connections begun.
pub const MACHINE_BYTES: i64 = 64 << 10;

/// What is remembered of each connection that was begun: its request, its token and its path, some 100 bytes
/// each, in tables that are up to half empty.
pub const REMEMBERED_BYTES: i64 = 1 << 10;

/// What a connection holds besides the data it counts. In the middle of a block it is at most 64 KiB
/// (`proto/tests/memory.rs`). As much again is for queues that grow by doubling, and for hundreds of
/// datagrams in flight with their contents.
pub const CONNECTION_BYTES: i64 = 128 << 10;

/// What an honest slice costs: a tag is checked, a kilobyte is copied, and the slice is accounted for. It
/// was measured as 0.8 to 1.1 us.
pub const SLICE_NANOS: u64 = 1_000;

/// No datagram may cost more than this many honest slices, amortised.
pub const MAX_SLICES_PER_DATAGRAM: u64 = 30;

/// The cost that one datagram may cause at once: one decoding and the hash of one chunk are what the last
/// slice of a chunk causes, and a quarter for the rest.
pub const MAX_NANOS_AT_ONCE: u64 =
    (DECODE_NANOS + CHUNK_BYTES * (DECODED_BYTE_NANOS + HASHED_BYTE_NANOS)) * 5 / 4;

/// The cost that may arise before the datagrams that pay for it: eight times the maximum of one datagram.
pub const BURST_NANOS: u64 = 8 * MAX_NANOS_AT_ONCE;

/// A chunk of two slices takes 2 us, one of sixteen small ones 10 us.
const DECODE_NANOS: u64 = 20_000;
/// A full chunk takes a millisecond.
const DECODED_BYTE_NANOS: u64 = 4;
const HASHED_BYTE_NANOS: u64 = 1;
const CHUNK_BYTES: u64 = 256 << 10;
const SLICE_BYTES: u64 = 1024;
const REQUEST_NANOS: u64 = 3_000;
const OPEN_NANOS: u64 = 1_000;
/// Records are walked in order, one in 0.6 ns; searches and frames cost more and are fewer.
const STEP_NANOS: u64 = 1;
/// What a datagram sent, or a slice given, may cost in allocations: dozens of small ones, or a few KiB.
const OWN_NANOS: u64 = 4_000;
/// With its release.
const ALLOCATION_NANOS: u64 = 40;
/// New memory is cleared or copied to, at 16 GB/s.
const ALLOCATED_BYTES_PER_NANO: u64 = 16;

/// The traffic of a machine so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams that arrived, whatever became of them.
    pub datagrams_in: u64,
    /// Bytes in them.
    pub bytes_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// Bytes in them.
    pub bytes_out: u64,
    /// Bytes that the applications of this end gave it to send.
    pub given_bytes: u64,
    /// Connections that were begun.
    pub connections: u64,
}

/// A bound that was exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub bound: Bound,
    /// By how much.
    pub what: String,
}

/// The bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bytes held, against those counted as held.
    Uncounted,
    /// Bytes held, against those that the peer was admitted to send.
    Unadmitted,
    /// The cost of one datagram.
    AtOnce,
    /// The cost of all datagrams.
    Work,
    /// Of a program: memory that it touched.
    Resident,
    /// Of a program: time of the processor, against what arrived.
    Processor,
    /// Of a program: the longest turn of its main loop.
    Turn,
    /// Of a program: what it computed before it answered an honest client.
    Latency,
    /// Of a program: what it computed after its clients were gone.
    Afterwards,
}

impl Bound {
    /// Whether a known fault breaks it, so that a fuzzer would find nothing else.
    #[must_use]
    pub fn is_broken(self) -> bool {
        let faults: &[u8] = match self {
            Self::Uncounted => &[8, 9],
            Self::Unadmitted => &[5],
            Self::AtOnce => &[10],
            Self::Work => &[1, 10],
            Self::Resident | Self::Processor | Self::Turn | Self::Latency | Self::Afterwards => &[],
        };
        faults.iter().any(|&fault| super::is_known(fault))
    }
}

/// What received datagrams cost, in nanoseconds.
///
/// Sealing is left out, because what this end sends is limited by its rates, and key agreement, because
/// there is one for each connection and the limits of handshakes bound them.
#[must_use]
pub const fn cost_nanos(work: &Work) -> u64 {
    work.requests * REQUEST_NANOS
        + work.opens * OPEN_NANOS
        + work.decodes * DECODE_NANOS
        + work.decoded_bytes * DECODED_BYTE_NANOS
        + work.hashed_bytes * HASHED_BYTE_NANOS
        + work.steps * STEP_NANOS
}

/// What the allocations cost, in nanoseconds.
#[must_use]
pub const fn allocation_nanos(meter: &Meter) -> u64 {
    meter.allocations * ALLOCATION_NANOS + meter.allocated_bytes / ALLOCATED_BYTES_PER_NANO
}

/// What a machine owes: the cost of what it did, less what the datagrams so far pay for.
///
/// Each datagram pays for itself and not for later ones, so that a flood cannot be prepared by cheap ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    cost: u64,
    paid: u64,
    debt: u64,
}

impl Budget {
    /// The costs and payments since the last call. What this end sends is allocated for, too, and so is what
    /// its application gives it, slice by slice.
    fn settle(&mut self, cost: u64, traffic: &Traffic) -> Option<Finding> {
        let own = traffic.datagrams_out + traffic.given_bytes / SLICE_BYTES;
        let paid = traffic.datagrams_in * MAX_SLICES_PER_DATAGRAM * SLICE_NANOS + own * OWN_NANOS;
        self.debt = (self.debt + cost - self.cost).saturating_sub(paid - self.paid);
        (self.cost, self.paid) = (cost, paid);
        let (debt, bound) = (self.debt, Bound::Work);
        (debt > BURST_NANOS).then(|| Finding {
            bound,
            what: format!("{bound:?}: {debt} ns not paid for, at most {BURST_NANOS}, {traffic:?}"),
        })
    }
}

/// The state of a machine that is held against the bounds.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// What it allocated.
    pub meter: Meter,
    /// What it did.
    pub work: Work,
    /// What it received and sent.
    pub traffic: Traffic,
    /// What it counts as held for its peers, or may hold for them.
    pub memory_bytes: usize,
    /// Connections now.
    pub connections: usize,
    /// What its applications gave it and may still be held, with the repair slices made of it.
    pub own_bytes: u64,
}

impl State {
    /// The first bound that is exceeded.
    pub fn exceeds(&self, budget: &mut Budget) -> Option<Finding> {
        let Self { meter, traffic, .. } = self;
        let max = self.memory_bytes as i64
            + MACHINE_BYTES
            + CONNECTION_BYTES * self.connections as i64
            + REMEMBERED_BYTES * traffic.connections as i64
            + self.own_bytes as i64;
        if meter.held_bytes > max {
            let (held, bound) = (meter.held_bytes, Bound::Uncounted);
            let what = format!("{bound:?}: {held} bytes held, at most {max}, {traffic:?}");
            return Some(Finding { bound, what });
        }
        budget.settle(cost_nanos(&self.work) + allocation_nanos(meter), traffic)
    }
}

/// Whether one datagram cost too much: the work before and after it.
#[must_use]
pub fn too_dear_at_once(before: &Work, after: &Work) -> Option<Finding> {
    let cost = cost_nanos(after) - cost_nanos(before);
    (cost > MAX_NANOS_AT_ONCE).then(|| Finding {
        bound: Bound::AtOnce,
        what: format!("AtOnce: a datagram cost {cost} ns, at most {MAX_NANOS_AT_ONCE}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(datagrams_in: u64) -> Traffic {
        Traffic { datagrams_in, connections: 1, ..Traffic::default() }
    }

    fn state(work: Work, datagrams: u64) -> State {
        State {
            meter: Meter::default(),
            work,
            traffic: traffic(datagrams),
            memory_bytes: 0,
            connections: 1,
            own_bytes: 0,
        }
    }

    #[test]
    fn a_million_cheap_datagrams_pay_for_no_flood() {
        let mut budget = Budget::default();
        let cheap = Work { opens: 1_000_000, ..Work::default() };
        assert_eq!(state(cheap, 1_000_000).exceeds(&mut budget), None);
        let at_the_bound =
            Work { decoded_bytes: BURST_NANOS / DECODED_BYTE_NANOS - CHUNK_BYTES, ..cheap };
        assert_eq!(state(at_the_bound, 1_000_000).exceeds(&mut budget), None);
        let decoded_bytes = at_the_bound.decoded_bytes + 2 * CHUNK_BYTES;
        let beyond = Work { decoded_bytes, ..cheap };
        let found = state(beyond, 1_000_001).exceeds(&mut budget).map(|found| found.bound);
        assert_eq!(found, Some(Bound::Work));
    }

    #[test]
    fn held_bytes_are_those_counted_and_a_constant() {
        let may_be = MACHINE_BYTES + CONNECTION_BYTES + REMEMBERED_BYTES + 1_000;
        for (held_bytes, found) in [(may_be, None), (may_be + 1, Some(Bound::Uncounted))] {
            let meter = Meter { held_bytes, ..Meter::default() };
            let state = State { meter, memory_bytes: 1_000, ..state(Work::default(), 1) };
            assert_eq!(state.exceeds(&mut Budget::default()).map(|found| found.bound), found);
        }
    }

    #[test]
    fn the_hash_of_many_chunks_is_too_much_for_one_datagram() {
        let hashed = |chunks| Work { hashed_bytes: chunks * CHUNK_BYTES, ..Work::default() };
        assert_eq!(too_dear_at_once(&hashed(3), &hashed(4)), None);
        assert!(too_dear_at_once(&hashed(3), &hashed(10)).is_some());
    }
}
