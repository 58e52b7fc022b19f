//! Every number that the sender's behaviour was tuned by, with its unit and its reason; `docs/SENDER.md`
//! says what they do together and names them instead of repeating them.
//!
//! Most were found on the grid of links (`haulier bench grid`), those of [`delay`], [`beside_tcp`] and
//! [`beside_game`] in the tests of shares. A change of any of them is a change of that grid's snapshot.

use super::units::{Bytes, Rate, Span};

/// How often slices go out, as a batch.
pub(super) const TICK: core::time::Duration = core::time::Duration::from_millis(1);

/// The size that a datagram with a slice has, UDP and IP counted, before one was sent.
pub(super) const FULL_PACKET: Bytes = Bytes(1_228.0);

/// And the least that one is taken for.
pub(super) const MIN_PACKET: Bytes = Bytes(200.0);

/// The rate that was set as a limit: `limit.rs`.
pub(super) mod limit {
    use super::Span;

    /// What may be sent at once.
    pub(crate) const AHEAD: Span = Span::from_millis(2);
}

/// A caller that is not called in time: `lateness.rs`.
pub(super) mod lateness {
    use super::Span;

    /// The most that counts: frames at 20 Hz. More would be a burst that no queue holds.
    pub(crate) const MAX_LATE: Span = Span::from_millis(50);
}

/// Pacing while no rate is known: `pacing/blind.rs`.
pub(super) mod blind {
    use core::time::Duration;

    use super::{Rate, Span};

    /// What is sent at first, for 0.6 chunks.
    pub(crate) const FIRST_RATE: Rate = Rate::from_kbps(20_000);
    pub(crate) const FIRST_SLICES: usize = 154;

    /// What is sent after those.
    pub(crate) const LATER_RATE: Rate = Rate::from_kbps(4_000);

    /// Of what the way back carries so much is used: somewhat less, for it is believed for a round trip.
    pub(crate) const HINT_GAIN: f64 = 0.95;

    /// Slices that are sent at the first guess in any case. A single chunk over a queue that no train
    /// fits into is through soonest that way.
    pub(crate) const BELIEVED_SLICES: usize = 256;

    /// After those, and a round trip, the rate is halved with each so many slices.
    pub(crate) const HALVED_AFTER: usize = 128;

    /// Halvings at most, where no floor is set.
    pub(crate) const MAX_HALVINGS: usize = 10;

    /// What is sent may be ahead of its rate by this much: a tick's worth.
    pub(crate) const AHEAD: Span = Span::from_millis(1);

    /// Once the rate was halved, trains are this far apart: at the default floor a train is as much as is
    /// sent between two.
    pub(crate) const TRAIN_INTERVAL: Duration = Duration::from_secs(1);
}

/// Trains, sent back to back to measure the rate: `trains.rs`.
pub(super) mod trains {
    use super::{Bytes, Span};

    /// Packets of one: they fit a queue of 32 KiB.
    pub(crate) const PACKETS: usize = 20;

    /// Their bytes, when all are full.
    pub(crate) const BYTES: Bytes = Bytes(20.0 * 1_228.0);

    /// Where a rate is known, a train may wait at the bottleneck for so long at most.
    pub(crate) const MAX_BACKLOG: Span = Span::from_millis(15);

    /// Trains of a transfer at most: the first may be cut short by the credit of an address that is not
    /// proven.
    pub(crate) const MAX_TRAINS: u8 = 2;
}

/// Pacing by the modelled queue: `pacing/model.rs`.
pub(super) mod model {
    use super::{Bytes, Span};

    /// The backlog a sender allows itself at the bottleneck: 4 ms and two packets, but no more than 12
    /// packets or, on links so fast that these are less, two ticks. Less leaves the link idle when a
    /// timer is late; more is delay for others.
    pub(crate) const BACKLOG: Span = Span::from_millis(4);
    pub(crate) const BACKLOG_PACKETS: f64 = 2.0;
    pub(crate) const MAX_BACKLOG_PACKETS: f64 = 12.0;
    pub(crate) const MAX_BACKLOG: Span = Span::from_millis(2);

    /// While a rate that was brought along is not confirmed, so much of it is left out where the round
    /// trip is as long as the chunk: an error shows late there.
    pub(crate) const SHYNESS: f64 = 0.1;

    /// Bytes that a chunk is taken for in that.
    pub(crate) const CHUNK: Bytes = Bytes(256.0 * 1_088.0);
}

/// What a long transfer sends at: `pacing/delay.rs`.
pub(super) mod delay {
    use super::{Rate, Span};

    /// The delay aimed at by a flow of [`REFERENCE`]: as much as the sender of one chunk allows itself.
    pub(crate) const TARGET: Span = Span::from_millis(4);
    pub(crate) const REFERENCE: Rate = Rate::from_kbps(10_000);

    /// No target is below this: two ticks of another sender are no standing queue.
    pub(crate) const MIN_TARGET: Span = Span(1_500.0);

    /// What is given away when the queue stands. Less, and a late flow gets its share late; more leaves
    /// the link idle.
    pub(crate) const GIVEN: f64 = 0.1;

    /// What is taken back per second by a flow of [`REFERENCE`], as a part of its rate; of others the
    /// root of that, so that the smaller takes more of its own. 100 Mbit/s are back in 1.6 s, and a round
    /// trip of 100 ms of it is 0.6 ms of queue.
    pub(crate) const TAKEN: f64 = 0.2;

    /// Beyond what was there before, growth doubles from round to round up to this part of the rate: the link
    /// has changed.
    pub(crate) const MAX_GROWTH: f64 = 0.1;

    /// Targets and growth of flows below a four-hundredth of [`REFERENCE`] are those of that: no division by
    /// nothing.
    pub(crate) const MIN_ROOT: f64 = 0.05;

    /// The rate is judged after so long: 20 datagrams at 10 Mbit/s. At most, so that long ways are not left
    /// behind.
    pub(crate) const MIN_ROUND: Span = Span::from_millis(20);
    pub(crate) const MAX_ROUND: Span = Span::from_millis(100);

    /// Fewer arrivals tell nothing of what stands: one of them may have been lucky with jitter.
    pub(crate) const MIN_ARRIVALS: usize = 4;

    /// A queue with less delay is empty, but for what two senders' ticks put there.
    pub(crate) const EMPTY: Span = Span::from_millis(1);

    /// How often this flow gives way, down to which part of what it had, until others are blamed for a queue
    /// that was never empty meanwhile. Two of ours empty it with nearly every cut.
    pub(crate) const MAX_YIELDS: u32 = 4;
    pub(crate) const YIELDED: f64 = 0.8;

    /// A flow that uses less of its rate than this has nothing to send, and does not grow.
    pub(crate) const USED: f64 = 0.7;

    /// For a round trip after a cut it sends less, so that its part of the queue drains; but not less
    /// than this.
    pub(crate) const MAX_DRAIN: f64 = 0.5;

    /// How late a tick may be before what was not sent meanwhile is forgotten, unless the caller was later.
    pub(crate) const CATCH_UP: Span = Span::from_millis(4);
}

/// Where others fill the queue: `pacing/beside_tcp.rs`.
pub(super) mod beside_tcp {
    /// A loss cuts the rate to this, as CUBIC's (RFC 9438, 4.6).
    pub(crate) const CUT: f64 = 0.7;

    /// It is one of a full queue where the delay is at least this part of the longest seen.
    pub(crate) const FULL_QUEUE: f64 = 0.5;

    /// And where more is lost than usual, by so many standard deviations.
    pub(crate) const SIGMAS: f64 = 2.0;
}

/// Losses that sending less ends: `pacing/policer.rs`.
pub(super) mod policer {
    /// Datagrams in whose losses a policer is looked for, and how far above the usual share they are then:
    /// bursts of eight that lose 5 % in the mean reach this once in a million windows.
    pub(crate) const WINDOW: u32 = 256;
    pub(crate) const UNUSUAL: f64 = 0.25;

    /// The same once one was found, and while it is found out.
    pub(crate) const POLICED_WINDOW: u32 = 48;
    pub(crate) const POLICED: f64 = 0.06;

    /// A trial that leaves less than this of the unusual losses has found one.
    pub(crate) const ENDED: f64 = 0.5;

    /// How much of a window's losses becomes usual.
    pub(crate) const LEARNED: f64 = 0.3;

    /// While more than this is lost the rate does not grow, whoever's fault that is: sending more would
    /// be more of the same.
    pub(crate) const FUTILE: f64 = 0.5;
}

/// Beside a game: `pacing/beside_game.rs`.
pub(super) mod beside_game {
    use super::{Rate, Span};

    /// What a game leaves to a transfer at first: 40 full datagrams a second.
    pub(crate) const START: Rate = Rate::from_kbps(400);

    /// What a transfer uses of what it could: at 2 Mbit/s a slice takes 4.9 ms, and a game's packet that
    /// meets one is to meet no second.
    pub(crate) const SHARE: f64 = 0.7;

    /// Growth from round to round while it looks for that: what is too much waits for an eighth of a
    /// round trip.
    pub(crate) const GROWTH: f64 = 1.15;

    /// And on long ways so much that what is too much for a round trip is no more queue than this.
    pub(crate) const MAX_QUEUE: Span = Span::from_millis(25);

    /// After the first of these it looks again, more gently, and each time that nothing was found twice
    /// as late, up to the second: the rounds of queue are then less than one in twenty.
    pub(crate) const FIRST_LOOK: Span = Span::from_secs(8);
    pub(crate) const LAST_LOOK: Span = Span::from_secs(32);
    pub(crate) const LOOK_GROWTH: f64 = 1.05;

    /// Rounds with a queue, one after the other, that are believed: one is jitter, unless the queue is
    /// twice as long.
    pub(crate) const ROUNDS: u32 = 2;

    /// Delay of eight datagrams in a row that is a queue: more than what others' jitter leaves of the
    /// smallest.
    pub(crate) const QUEUED: Span = Span(1_500.0);
    pub(crate) const ARRIVALS: usize = 8;

    /// The newest of a round are looked at, four to eight: what one round adds is seen in that round.
    pub(crate) const TAIL: usize = 4;

    /// Less got through than was sent: the queue grows.
    pub(crate) const SQUEEZED: f64 = 0.93;

    /// Rounds that a queue may take to drain once too much was sent; if it takes longer, less is left
    /// than was thought.
    pub(crate) const MAX_DRAINS: u32 = 3;

    /// How late a tick may be before what was not sent meanwhile is forgotten: a tick, so that no two
    /// slices go back to back unless a tick brings more than one.
    pub(crate) const CATCH_UP: Span = Span::from_millis(1);
}

/// Datagrams smaller than this are quicker through the bottleneck, and their delays are not compared with
/// those of full ones.
pub(super) const FULL: Bytes = Bytes(1_000.0);

/// Delays and what they say: `samples.rs`.
pub(super) mod samples {
    use super::Span;

    /// Delay above the smallest one that shows no queue.
    pub(crate) const UNQUEUED: Span = Span::from_millis(2);

    /// After this long the smallest delay is looked for anew, if the queue was empty meanwhile: clocks drift,
    /// and paths change.
    pub(crate) const BASE_LIFETIME: Span = Span::from_secs(10);

    /// Arrivals remembered.
    pub(crate) const REMEMBERED: usize = 128;
}

/// The rate of the bottleneck: `rate_finder.rs`.
pub(super) mod rate_finder {
    use super::{Bytes, Rate, Span};

    /// The shortest time a rate is measured over: long enough that 0.2 ms of jitter are a few percent.
    pub(crate) const WINDOW: Span = Span::from_millis(5);

    /// The fewest arrivals a rate is measured over: two of them, off by 0.2 ms of jitter, are then no great
    /// error.
    pub(crate) const WINDOW_ARRIVALS: usize = 8;

    /// Packets sent within this time of each other are a train.
    pub(crate) const TRAIN_SPAN: Span = Span(300.0);

    /// A train that is said to have arrived in less than this did so at once: a receiver's network card,
    /// or its system, hands over what came within some ten microseconds as one. Half a train of 20 is
    /// then 1 Gbit/s.
    pub(crate) const AT_ONCE: Span = Span(100.0);

    /// The fewest arrivals of a train that tell a rate.
    pub(crate) const MIN_TRAIN: usize = 8;

    /// The fewest that tell that a known rate is too low.
    pub(crate) const LONG_TRAIN: usize = 14;

    /// A train whose rate is this much above the known one shows that there is more: less is jitter.
    pub(crate) const TRAIN_ABOVE: f64 = 1.3;

    /// A longer train makes a rate no smaller than this part of it: others' packets were between its own.
    pub(crate) const TRAIN_BELOW: f64 = 0.7;

    /// No more than this part of a window is taken for lost behind the bottleneck.
    pub(crate) const MAX_USUAL: f64 = 0.6;

    /// Bytes that a datagram is taken for where their number matters.
    pub(crate) const PACKET: Bytes = Bytes(1_100.0);

    /// Packets that arrive over so much longer than they were sent were held up at the bottleneck.
    pub(crate) const SQUEEZED: f64 = 1.2;

    /// Delay above the smallest one that shows a queue and no jitter.
    pub(crate) const QUEUED: Span = Span::from_millis(4);

    /// So much of what a window says is believed once a transfer is long.
    pub(crate) const FOLLOWED: f64 = 0.1;

    /// How far a measured rate may be from what it was: nonsense from the wire must not become arithmetic.
    pub(crate) const RATES: (Rate, Rate) = (Rate(0.000_5), Rate(12_500.0));
}

/// The queue at the bottleneck: `bottleneck.rs`.
pub(super) mod bottleneck {
    use super::Bytes;

    /// A queue that every link has: 16 full packets. The smallest ones seen hold 24 KiB, and others may be in
    /// them.
    pub(crate) const MIN_QUEUE: Bytes = Bytes(20.0 * 1_024.0);

    /// A caller that comes late needs more of the queue than one that comes in time: so many times what was
    /// seen to fit is tried, until that is too much.
    pub(crate) const TRIED: f64 = 4.0;

    /// What every queue holds even if nothing was seen to wait: three full packets.
    pub(crate) const FIRST_SEEN: Bytes = Bytes(3.0 * 1_228.0);
}

/// Which slice goes next, and how many more than are needed: `choice.rs`, `chunk.rs`.
pub(super) mod choice {
    /// Standard deviations of margin that are sent at the full rate, and up to which it goes on at half
    /// of it: at least, and more in proportion to what a round trip would cost. Found on the grid: more
    /// of it buys seldom runs a round trip, and every run some percent of waste.
    pub(crate) const MARGIN: (f64, f64) = (0.6, 1.0);
    pub(crate) const TAIL_MARGIN: (f64, f64) = (1.0, 2.0);
    pub(crate) const TAIL_RATE: f64 = 0.5;
    pub(crate) const MAX_STAKE: f64 = 1.1;

    /// Losses expected of a chunk below which no repair is sent ahead: a link that lost nothing for
    /// longer than a chunk gets none.
    pub(crate) const NO_LOSS: f64 = 0.25;
}

/// What is lost: `loss.rs`.
pub(super) mod loss {
    /// Packets that the prior is worth before anything was seen: one lost packet among the first ten
    /// moves the estimate, and does not make it.
    pub(crate) const PRIOR_PACKETS: f64 = 16.0;

    /// The share lost that is assumed before anything was seen: what a wireless link loses in a bad hour.
    pub(crate) const PRIOR_LOSS: f64 = 0.02;

    /// Packets after which the past counts half: some chunks, for a link changes while one plays.
    pub(crate) const MEMORY_PACKETS: f64 = 1_024.0;

    /// No estimate is above this; beyond it repair cannot be planned, only sent.
    pub(crate) const MAX_LOSS: f64 = 0.6;

    /// Runs of the prior, for the mean run: as if so many were seen.
    pub(crate) const PRIOR_RUNS: f64 = 2.0;

    /// Their mean length: what is lost in a row on a wireless link when it is lost at all.
    pub(crate) const PRIOR_RUN: f64 = 4.0;

    /// The variance of bursty losses over that of independent ones is at most this. A chain with runs of
    /// 8 has 14, and those with longer ones more: to believe all of it would cost more repair than the
    /// rare long run.
    pub(crate) const MAX_INFLATION: f64 = 12.0;
}

/// When nothing is heard: `silence.rs`.
pub(super) mod silence {
    use core::time::Duration;

    /// A timeout is due after 1.25 round trips and this.
    pub(crate) const SLACK: Duration = Duration::from_millis(20);

    /// No timeout is later than this.
    pub(crate) const MAX_WAIT: Duration = Duration::from_secs(2);

    /// Each timeout without an answer waits twice as long, so often.
    pub(crate) const MAX_DOUBLINGS: u32 = 4;

    /// Of what a timeout gives up so many packets count as lost: a run of losses, and not the end of the
    /// path.
    pub(crate) const MAX_BLAMED: usize = 16;

    /// Slices that may follow a timeout, and each later one without an answer.
    pub(crate) const AFTER_FIRST: usize = 12;
    pub(crate) const AFTER_LATER: usize = 4;

    /// The round trip before one was measured (RFC 9002, 6.2.2).
    pub(crate) const FIRST_RTT: Duration = Duration::from_millis(333);
}

/// What the copies of a request tell: `requests.rs`.
pub(super) mod requests {
    use super::{Rate, Span};

    /// Copies further apart than this are no train: the later one was sent again for want of an answer.
    pub(crate) const TRAIN_GAP: Span = Span::from_millis(100);

    /// Together they take at least this long, or the clock that timed them was only read once.
    pub(crate) const SHORTEST: Span = Span(20.0);

    /// The slowest and the fastest rate that are believed: 1 and 100 Mbit/s. More would risk a queue for
    /// the sake of a millisecond.
    pub(crate) const RATES: (Rate, Rate) = (Rate::from_kbps(1_000), Rate::from_kbps(100_000));
}

/// What is known of a path from before: `known.rs`.
pub(super) mod known {
    use core::time::Duration;

    /// For so long a rate is believed as it was measured.
    pub(crate) const FRESH: Duration = Duration::from_secs(60);

    /// For so long half of it is. Half costs a fifth of a join if nothing has changed; all of it costs a
    /// queue if the path has come down.
    pub(crate) const USABLE: Duration = Duration::from_secs(600);
}
