//! Tuning constants that several files use, and those of belief and start, with their units and reasons.
//! `docs/SENDER.md` says what they do together.
//!
//! Most values were found on the grid of links (`haulier-lab bench grid`). Changing any of them changes the
//! snapshot of the grid.

use crate::units::{Bytes, Rate, Span};

mod long;
pub(crate) mod near;
pub(crate) mod upward;

pub(crate) use long::{delay, start};

/// The interval at which slices are sent, as a batch.
pub const TICK: core::time::Duration = core::time::Duration::from_millis(1);

/// The assumed size of a datagram with a slice, UDP and IP included, until one is sent.
pub const FULL_PACKET: Bytes = Bytes(1_228.0);

/// How long a connection waits for its server's uplink before it asks again. Its server asks it, long before.
pub(crate) const UPLINK_TIMEOUT: core::time::Duration = core::time::Duration::from_secs(1);

/// Added to a round trip: what a receiver may delay an ack.
pub const ACK_DELAY: Span = Span::from_millis(10);

/// The round trip before it was measured (RFC 9002, 6.2.2).
pub(crate) const FIRST_RTT: core::time::Duration = core::time::Duration::from_millis(333);

/// The maximum number of packets in flight at a timeout that count as lost in the loss estimate: a run of
/// losses, and not the end of the path.
pub(crate) const MAX_COUNTED_LOST: usize = 16;

/// The part of the rate at which the tail goes: what no slice is known to lack.
pub(crate) const TAIL_RATE: f64 = 0.5;

/// The longest that a train may take at the rate of the way back, with which a transfer beside a game begins
/// over an unknown path: a game's packet waits for it once. Ten packets are a train from 20 Mbit/s on.
pub(crate) const MAX_GAME_TRAIN: Span = Span::from_millis(5);

/// The minimum assumed size of a datagram.
pub(crate) const MIN_PACKET: Bytes = Bytes(200.0);

/// The configured maximum rate: `limit.rs`.
pub(crate) mod limit {
    use super::Span;

    /// How far sending may run ahead of the limit.
    pub(crate) const AHEAD: Span = Span::from_millis(2);
}

/// A receiver whose program reads late: `reader.rs`.
pub(crate) mod reader {
    /// What may be in flight whatever the receiver's buffer holds, in products of bandwidth and delay, the
    /// wait for an ack included: one keeps the link busy, and a quarter is for jitter.
    pub(crate) const PATHS: f64 = 1.25;

    /// What may always be in flight, in datagrams: the queue that every link is assumed to have.
    pub(crate) const MIN_PACKETS: f64 = 16.0;

    /// Datagrams that have to fit the buffer beside those in flight: the probes of a silence of some seconds.
    pub(crate) const PROBES: f64 = 32.0;
}

/// A sender that is called late: `lateness.rs`.
pub(crate) mod lateness {
    use super::Span;

    /// The maximum lateness that is made up for: frames at 20 Hz. More would be a burst that no queue holds.
    pub(crate) const MAX_LATE: Span = Span::from_millis(50);
}

/// Pacing while no rate is known: `law/blind.rs`.
pub(crate) mod blind {
    use core::time::Duration;

    use super::{Rate, Span};

    /// The initial rate, for the first 0.6 of a chunk.
    pub(crate) const FIRST_RATE: Rate = Rate::from_kbps(20_000);
    pub(crate) const FIRST_SLICES: usize = 154;

    /// The rate after that.
    pub(crate) const LATER_RATE: Rate = Rate::from_kbps(4_000);

    /// The fraction of the measured reverse-path rate that is used: below 1, because it is relied on for a
    /// round trip.
    pub(crate) const HINT_GAIN: f64 = 0.95;

    /// Slices without a rate after which losses are all that there is to plan with: those of a chunk.
    pub(crate) const BELIEVED_SLICES: usize = 256;

    /// Datagrams after which the losses of a guess are judged: of the first flight a client whose address is
    /// not proven gets 12. If more than this share is lost, it is too much.
    pub(crate) const FIRST_WINDOW: u32 = 8;
    pub(crate) const FLOODED: f64 = 0.4;

    /// Pairs of datagrams sent together that bound the guess, and by how much it may exceed the rate of the
    /// fastest: jitter has delayed both.
    pub(crate) const MIN_PAIRS: u32 = 2;
    pub(crate) const PAIR_GAIN: f64 = 2.0;

    /// Pairs of a train that arrived at once, and the rate that is guessed then until more arrives: the link
    /// delivers in bunches, or is very fast. Where an address is not proven this is all that is known for a
    /// round trip; with 100 Mbit/s 1.4 times the bytes are sent at 30 Mbit/s, with 60 it is 1.2.
    pub(crate) const MIN_AT_ONCE: usize = 8;
    pub(crate) const AT_ONCE_RATE: Rate = Rate::from_kbps(60_000);

    /// How long a guess waits for them after the first arrival was heard of. A link that takes longer for
    /// three datagrams has less than half a Mbit/s, and a guess would send as much as it passes in ten
    /// seconds.
    pub(crate) const PAIR_WAIT: Duration = Duration::from_millis(60);

    /// The shortest round trip of the handshake with which a link may be so slow: its requests and responses
    /// take at least 40 ms each on one of 250 kbit/s, and follow each other.
    pub(crate) const MIN_SLOW_RTT: Span = Span::from_millis(250);

    /// The longest that a train may take at that bound: a longer one is more than any queue has to hold.
    pub(crate) const MAX_TRAIN: Span = Span::from_millis(500);

    /// How far sending may run ahead of the rate: one tick.
    pub(crate) const AHEAD: Span = Span::from_millis(1);
}

/// What may be in flight before there is a window: `law/allowance.rs`.
pub(crate) mod allowance {
    use super::Bytes;

    /// Datagrams at a guess, until some are lost (STANDARD-1, H-4.5a).
    pub(crate) const GUESS: f64 = 512.0;

    /// Datagrams after which it is judged again whether most are lost.
    pub(crate) const WINDOW: u32 = 16;

    /// The minimum after any number of losses: an initial window (RFC 6928). With four a flow behind a queue
    /// of three packets had a sixtieth of the link beside another.
    pub(crate) const LEAST: f64 = 10.0;

    /// The growth for each datagram that arrives: a third of the datagrams may be lost for good. With half of
    /// it crowds drop a point less, but flows that join beside others get their share late: of six flows
    /// Jain's index was 0.69 to 0.89 on three of five seeds. With one for one 4 MiB over random links take 4
    /// % less time, but behind five packets one of two flows had a hundredth on one of eight seeds.
    pub(crate) const GROWTH: f64 = 0.5;

    /// A transfer of more than this, a chunk, has a ramp: what joins are made of goes on trust as a whole.
    pub(crate) const CHUNK: Bytes = Bytes(262_144.0);

    /// The minimum number that goes on trust: a train, which shows the rate, and enough datagrams behind it
    /// to show whether there are others. With 32 one round trip more is needed for that, and 1 MiB over
    /// random links took 8 % longer.
    pub(crate) const ON_TRUST: f64 = 40.0;

    /// The part of a long transfer that goes on trust: a hundred lost datagrams are little of 8 MB.
    pub(crate) const PARTS: f64 = 64.0;
}

/// Whether others are on the link: `law/stretch.rs`.
pub(crate) mod stretch {
    use super::Span;

    /// Arrivals that show an idle link, and the minimum that shows other flows. With 12 and 8 of the first,
    /// and 32 datagrams on trust, crowds drop 0.6 and 0.8 points more (decision 0024 has the command).
    pub(crate) const ARRIVALS: u32 = 16;
    pub(crate) const MIN_HELD_UP: u32 = 4;

    /// Datagrams are held up if they take longer to arrive by this factor and time: of two flows with half of
    /// a link each, either takes twice as long. Up to the factor and time of `FREE`, most of a tick, they are
    /// not held up. With 1.1 and 1 ms crowds drop up to half a point more.
    pub(crate) const HELD_UP: (f64, Span) = (1.5, Span::from_millis(2));
    pub(crate) const FREE: (f64, Span) = (1.05, Span(700.0));

    /// The minimum part of the known rate, or of the guess if that is less, at which they were sent. A guess
    /// above 20 Mbit/s counts as 20 Mbit/s.
    pub(crate) const FAST: f64 = 0.8;

    /// The minimum part of that time over which they were sent, or this minimum time: datagrams that are sent
    /// at once are a train. Without it crowds by ticket drop half a point more. With 0.8, and 6 ms, 1 MiB
    /// takes 4 % longer by token.
    pub(crate) const PACED: (f64, Span) = (0.5, Span::from_millis(4));
}

/// Trains, sent back to back to measure the rate: `trains.rs`.
pub(crate) mod trains {
    use super::Bytes;

    /// Packets in a train: they fit a queue of 32 KiB.
    pub(crate) const PACKETS: usize = 20;

    /// Bytes of a train of packets of 1228 bytes.
    pub(crate) const BYTES: Bytes = Bytes(20.0 * 1_228.0);

    /// Bytes of a train of large packets, and its minimum number of packets: fewer give no rate.
    pub(crate) const MAX_BYTES: Bytes = Bytes(32.0 * 1_024.0);
    pub(crate) const MIN_PACKETS: usize = crate::tuning::rate_finder::MIN_TRAIN;
}

/// What the path was seen to deliver: `delivered.rs`.
pub(crate) mod delivered {
    use super::Span;

    /// The shortest time over which bytes are counted: the longest that an honest ack waits. Of a shorter
    /// one the burst would be measured, not the path.
    pub(crate) const MIN_TIME: Span = Span::from_millis(10);

    /// Datagrams from one mark to the next: as many as an ack usually has.
    pub(crate) const MARK_EVERY: u64 = 16;

    /// The maximum number of marks: four times what 16 chunks in flight need. Without one more, less is
    /// proven.
    pub(crate) const MAX_MARKS: usize = 1024;
}

/// A rate of a transfer's own, whatever law sets it: `law/pace.rs`.
pub(crate) mod flow {
    use super::Span;

    /// The queue that a tick makes, and a timer that is a little late.
    pub(crate) const BACKLOG: Span = Span::from_millis(4);

    /// The acknowledged slices after which a transfer counts as long: those of a chunk.
    pub(crate) const LONG: usize = 256;

    /// The relative decrease when there is a standing queue. With less, a late flow gets its share late;
    /// more leaves the link idle.
    pub(crate) const DECREASE: f64 = 0.1;

    /// The least round trip that a law reckons with: 20 datagrams at 10 Mbit/s.
    pub(crate) const MIN_ROUND: Span = Span::from_millis(20);

    /// Where datagrams are held up for longer than that, a round lasts for this multiple of that time, and
    /// has at least this number of arrivals: with half of them the rate changes by a tenth for nothing.
    pub(crate) const DISORDERED_ROUND: f64 = 2.0;
    pub(crate) const DISORDERED_ARRIVALS: usize = 12;

    /// The maximum delay of a tick that is made up for, unless the caller was later.
    pub(crate) const CATCH_UP: Span = Span::from_millis(4);
}

/// How much smaller than a full datagram one may be that still counts as full: of 1228 bytes, 1000. Smaller
/// ones pass the bottleneck faster, so their delays are not compared with those of full ones.
pub(crate) const NEARLY_FULL: Bytes = Bytes(228.0);

/// One-way delays: `samples.rs`.
pub(crate) mod samples {
    use super::Span;

    /// Queueing delay, above the base delay, that does not count as a queue.
    pub(crate) const UNQUEUED: Span = Span::from_millis(2);

    /// After this time the base delay is measured again, if the queue was empty in between: clocks drift,
    /// and paths change.
    pub(crate) const BASE_LIFETIME: Span = Span::from_secs(10);

    /// Datagrams that follow each other within [`NEXT`], of which the last was sent at least this long after
    /// the first, were held up for a bunch: at less than 1 Gbit/s two full ones are further apart in any
    /// queue, and on faster links no queue of a transfer's own is as long.
    pub(crate) const HELD_UP: Span = Span::from_millis(2);
    pub(crate) const NEXT: Span = Span(10.0);

    /// All of a bunch arrive within this time: a system hands over 40 in 80 us.
    pub(crate) const TOGETHER: Span = Span(200.0);

    /// Maximum number of remembered arrivals.
    pub(crate) const REMEMBERED: usize = 128;
}

/// The rate of the bottleneck: `rate_finder.rs`.
pub(crate) mod rate_finder {
    use super::{Bytes, Rate, Span};

    /// The minimum time a rate is measured over: 0.2 ms of jitter are then a few percent.
    pub(crate) const WINDOW: Span = Span::from_millis(5);

    /// The minimum arrivals a rate is measured over: 0.2 ms of jitter in two of them is then a small error.
    pub(crate) const WINDOW_ARRIVALS: usize = 8;

    /// A rate that may be wrong by no more than this part is clear: a longer window would say it later.
    pub(crate) const CLEAR: f64 = 0.1;

    /// Where arrivals are disordered, the minimum of a train that arrived in order and gives a rate.
    pub(crate) const MIN_DISORDERED: usize = 4;

    /// A rate that may be wrong by this part or more is provisional: a faster one is tried after each round
    /// trip in which no queue formed.
    pub(crate) const PROVISIONAL: f64 = 0.3;

    /// Where no train gave a rate, what arrived of a window is a lower bound of it if that is at least this
    /// part of what was sent: else others may keep a queue full, and the guess has brakes for that.
    pub(crate) const SURE: f64 = 0.9;

    /// Packets sent within this time belong to one train.
    pub(crate) const TRAIN_SPAN: Span = Span(300.0);

    /// The minimum arrival time of a train: a receiver's network card or operating system delivers what
    /// arrived within some ten microseconds at once. Half a train of 20 is then 1 Gbit/s.
    pub(crate) const AT_ONCE: Span = Span(100.0);

    /// The minimum arrivals of a train that give a rate. A queue of 8 KiB lets seven through; of three,
    /// jitter would be most of it. Four and six do as well on random links.
    pub(crate) const MIN_TRAIN: usize = 5;

    /// The minimum arrivals of a train that arrives at once: the fewer they are, the less they show of a fast
    /// link.
    pub(crate) const FAST_TRAIN: usize = 8;

    /// The minimum arrivals of a train that may raise a known rate.
    pub(crate) const LONG_TRAIN: usize = 14;

    /// The factor above the known rate at which a train may raise it: less is jitter.
    pub(crate) const TRAIN_ABOVE: f64 = 1.3;

    /// A longer train lowers the rate by this factor at most: others' packets may be between its own.
    pub(crate) const TRAIN_BELOW: f64 = 0.7;

    /// A faster rate is tried after one of which at least this part was used and arrived: some may be
    /// late.
    pub(crate) const USED: f64 = 0.6;

    /// The maximum fraction of a window that counts as lost behind the bottleneck.
    pub(crate) const MAX_USUAL: f64 = 0.6;

    /// How much smaller than a full one datagrams are on average, where their number matters: of 1228 bytes,
    /// 1100.
    pub(crate) const SMALLER: Bytes = Bytes(128.0);

    /// Packets that arrive over a time this many times longer than they were sent in queued at the
    /// bottleneck.
    pub(crate) const SQUEEZED: f64 = 1.2;

    /// Queueing delay that shows a queue and not jitter.
    pub(crate) const QUEUED: Span = Span::from_millis(4);

    /// Weight of a window in the moving average once a transfer is long.
    pub(crate) const FOLLOWED: f64 = 0.1;

    /// The range of measured rates, in bytes per microsecond: false reports must not lead to extreme values.
    pub(crate) const RATES: (Rate, Rate) = (Rate(0.000_5), Rate(12_500.0));
}

/// The queue at the bottleneck: `bottleneck.rs`.
pub(crate) mod bottleneck {
    use super::Bytes;

    /// The queue that every link is assumed to have: 16 full packets. The smallest ones seen hold 24 KiB,
    /// and others may use them too.
    pub(crate) const MIN_QUEUE: Bytes = Bytes(20.0 * 1_024.0);

    /// A late caller needs more of the queue than a punctual one: this multiple of the queue that was seen
    /// is tried, until packets are dropped.
    pub(crate) const TRIED: f64 = 4.0;

    /// The queue seen before any backlog was observed, in full packets.
    pub(crate) const FIRST_SEEN: f64 = 3.0;
}

/// The loss estimate: `loss.rs`.
pub(crate) mod loss {
    /// Weight of the prior in packets: one loss among the first ten moves the estimate without determining
    /// it.
    pub(crate) const PRIOR_PACKETS: f64 = 16.0;

    /// Prior loss share: that of a wireless link in a bad hour.
    pub(crate) const PRIOR_LOSS: f64 = 0.02;

    /// Packets after which earlier ones count half: some chunks, because links change during a game.
    pub(crate) const MEMORY_PACKETS: f64 = 1_024.0;

    /// The maximum estimate: above it repair cannot be planned, only sent.
    pub(crate) const MAX_LOSS: f64 = 0.6;

    /// Weight of the prior mean run length, in runs.
    pub(crate) const PRIOR_RUNS: f64 = 2.0;

    /// Prior mean length of a run of losses: that of wireless links.
    pub(crate) const PRIOR_RUN: f64 = 4.0;

    /// The maximum ratio of the variance of bursty losses to that of independent ones. A chain with runs of
    /// 8 has 14, longer runs have more: full coverage would cost more repair than the rare long run.
    pub(crate) const MAX_INFLATION: f64 = 12.0;
}

/// The rate measured from copies of a request: `requests.rs`.
pub(crate) mod requests {
    use super::{Bytes, Rate, Span};

    /// Copies further apart than this are no train: the later one is a retransmission.
    pub(crate) const TRAIN_GAP: Span = Span::from_millis(100);

    /// The minimum time from first to last copy: in less, the clock was only read once.
    pub(crate) const MIN_TIME: Span = Span(20.0);

    /// The gaps between copies are those of a link if the longest is at most this many times the shortest.
    pub(crate) const REGULAR: f64 = 3.0;

    /// Irregular gaps show that the link has more than their rate: as a guess this multiple of it, up to the
    /// rate of links with such delays. With 4 and 20 Mbit/s half of a first round trip was lost on
    /// links of 40; with 12 it is a quarter of the bytes on those of 5 to 12.
    pub(crate) const IRREGULAR: (f64, Rate) = (8.0, Rate::from_kbps(40_000));

    /// Where this number of bytes after the first arrives with it, in three copies, the link delivers in
    /// bunches, as radio does, or is very fast: a guess. More would be more than 1.3 times the bytes at 30
    /// Mbit/s.
    pub(crate) const AT_ONCE: (Bytes, Rate) = (Bytes(2_400.0), Rate::from_kbps(32_000));

    /// The range of rates used: 1 to 130 Mbit/s, of which a tick is 16 KiB: the smallest queues seen hold 24.
    /// Of 256 KiB over faster links 400 would save another 10 ms, but a tick of it overruns short queues on a
    /// LAN, and over lines with a policer a block is sent three times instead of 2.5.
    pub(crate) const RATES: (Rate, Rate) = (Rate::from_kbps(1_000), Rate::from_kbps(130_000));
}

/// Remembered properties of a path: `known.rs`.
pub(crate) mod known {
    use core::time::Duration;

    /// How long a measured rate is used in full.
    pub(crate) const FRESH: Duration = Duration::from_secs(60);

    /// The time for which half of it is used. Half the rate makes a join a fifth slower if nothing has
    /// changed; the full rate fills the queue if the path has become slower.
    pub(crate) const USABLE: Duration = Duration::from_secs(600);
}
