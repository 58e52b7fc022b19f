//! How much of the link a long transfer takes while others use it, and how little one beside a game.
//!
//! Rate-based. What it looks at is the queueing delay `dq` of full datagrams, the smallest of a round: only a
//! queue that stands counts. Whoever sends at rate R lets `dq` go up to c / sqrt(R) and then sends a tenth
//! less: so the larger of two flows gives way first, and they meet at the same R whatever their round trips.
//! If others keep the queue full although this one gave way, it does as TCP does. Beside a game the first
//! sign of a queue is too much, and three tenths of the link are left free. Losses alone are no sign, except
//! where sending less stops them: a policer.

use core::time::Duration;

use super::bottleneck::{Base, Sample};
use super::chunk::sqrt;
use super::units::{instant, micros};
use crate::Instant;
use crate::urgency::Urgency;

/// The delay aimed at by a flow of [`REFERENCE`]: as much as the sender of one chunk allows itself.
const TARGET: f64 = 4_000.0;

/// 10 Mbit/s, in bytes per microsecond.
const REFERENCE: f64 = 1.25;

/// No target is below this: two ticks of another sender are no standing queue.
const LEAST_TARGET: f64 = 1_500.0;

/// What is given away when the queue stands. Less, and a late flow gets its share late; more leaves the link
/// idle.
const GIVEN: f64 = 0.1;

/// What is taken back per second by a flow of [`REFERENCE`], as a part of its rate; of others the root of
/// that, so that the smaller takes more of its own. 100 Mbit/s are back in 1.6 s, and a round trip of 100 ms
/// of it is 0.6 ms of queue.
const TAKEN: f64 = 0.2;

/// Beyond what was there before, growth doubles from round to round up to this part of the rate: the link has
/// changed.
const MOST_GROWTH: f64 = 0.1;

/// The rate is judged after so long: 20 datagrams at 10 Mbit/s. At most, so that long ways are not left
/// behind.
const LEAST_ROUND: f64 = 20_000.0;
const MOST_ROUND: f64 = 100_000.0;

/// Fewer arrivals tell nothing of what stands: one of them may have been lucky with jitter.
const LEAST_ARRIVALS: usize = 4;

/// A queue with less delay is empty, but for what two senders' ticks put there.
const EMPTY: f64 = 1_000.0;

/// How often this flow gives way, down to which part of what it had, until others are blamed for a queue that
/// was never empty meanwhile. Two of ours empty it with nearly every cut.
const GIVEN_WAY: u32 = 4;
const GAVE_WAY: f64 = 0.8;

/// A flow that uses less of its rate than this has nothing to send, and does not grow.
const USED: f64 = 0.7;

/// Where others fill the queue, a loss cuts the rate to this, as CUBIC's (RFC 9438, 4.6).
const CUT: f64 = 0.7;

/// Datagrams in whose losses a policer is looked for, and how far above the usual share they are then: bursts
/// of eight that lose 5 % in the mean reach this once in a million windows.
const LOSS_WINDOW: u32 = 256;
const UNUSUAL: f64 = 0.25;

/// The same once one was found, and while it is found out.
const POLICED_WINDOW: u32 = 48;
const POLICED: f64 = 0.06;

/// While more than this is lost it does not grow, whoever's fault that is: sending more would be more of the
/// same.
const FUTILE: f64 = 0.5;

/// What a game leaves to a transfer at first: 400 kbit/s, 40 full datagrams a second.
const PLAY_START: f64 = 0.05;

/// What a transfer uses beside a game, of what it could: at 2 Mbit/s a slice takes 4.9 ms, and a game's
/// packet that meets one is to meet no second.
const PLAY_SHARE: f64 = 0.7;

/// Growth from round to round while it looks for that: what is too much waits for an eighth of a round trip.
const PLAY_GROWTH: f64 = 1.15;

/// And on long ways so much that what is too much for a round trip is no more queue than this.
const PLAY_TOO_MUCH: f64 = 25_000.0;

/// After the first of these it looks again, more gently, and each time that nothing was found twice as late,
/// up to the second: the rounds of queue are then less than one in twenty.
const PLAY_AGAIN_FIRST: f64 = 8_000_000.0;
const PLAY_AGAIN: f64 = 32_000_000.0;
const PLAY_AGAIN_GROWTH: f64 = 1.05;

/// Rounds with a queue, one after the other, that are believed: one is jitter, unless the queue is twice as
/// long.
const PLAY_ROUNDS: u32 = 2;

/// Delay of eight datagrams in a row that is a queue: more than what others' jitter leaves of the smallest.
const PLAY_QUEUED: f64 = 1_500.0;
const PLAY_ARRIVALS: usize = 8;

/// Beside a game the newest of a round are looked at, four to eight: what one round adds is seen in that
/// round.
const TAIL: usize = 4;

/// Less got through than was sent: the queue grows.
const SQUEEZED: f64 = 0.93;

/// Rounds that a queue may take to drain once too much was sent; if it takes longer, less is left than was
/// thought.
const MOST_DRAINS: u32 = 3;

/// Datagrams smaller than this are quicker through the bottleneck, and are not compared with full ones.
const FULL: f64 = 1_000.0;

/// How late a tick may be before what was not sent meanwhile is forgotten, unless the caller was later.
const CATCH_UP: f64 = 4_000.0;

/// The same beside a game: a tick, so that no two slices go back to back unless a tick brings more than one.
const PLAY_CATCH_UP: f64 = 1_000.0;

/// How often slices go out.
const TICK: Duration = Duration::from_millis(1);

/// Who else is on the link, as far as can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The transfer is still short: the model of the bottleneck decides.
    Off,
    /// Nobody, or others that give way as well.
    Delay,
    /// Others that fill the queue.
    Compete,
    /// A game.
    Play,
}

/// What was seen since the rate was changed or judged.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    first: Option<Sample>,
    last: Option<Sample>,
    /// Full datagrams, and the smallest and largest delay of them.
    arrivals: usize,
    least: f64,
    most: f64,
    /// The smallest of the newest, and of four before them.
    tail: f64,
    tail_before: f64,
}

/// Less is sent, to see whether that ends the losses.
#[derive(Clone, Copy, Debug)]
struct Trial {
    rate: f64,
    loss: f64,
}

/// What a long transfer, or one beside a game, sends at.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    floor: f64,
    mode: Mode,
    /// What it takes for its share.
    rate: f64,
    /// What it sends at: less while it drains the queue.
    pace: f64,
    paced_at: f64,
    base: Base,
    /// The number after the last sent. Those before `fresh_from` were sent at another rate.
    next: u64,
    fresh_from: u64,
    round: Round,
    received: u32,
    lost: u32,
    /// Losses that sending less does not end.
    usual: f64,
    trial: Option<Trial>,
    is_policed: bool,
    is_futile: bool,
    /// What got through when the queue stood last, and when that was.
    ceiling: f64,
    ceiling_at: f64,
    again_after: f64,
    growth: f64,
    /// Beside a game: the queue is being emptied.
    drains: bool,
    /// How often it gave way since the queue was empty, and what got through before.
    hot: u32,
    hot_rate: f64,
    /// The longest delay since others were blamed.
    full: f64,
}

impl Share {
    pub(crate) fn new(floor_bps: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a floor is not that exact")]
        let floor = (floor_bps as f64 / 8e6).max(1e-6);
        Self {
            floor,
            mode: Mode::Off,
            rate: floor,
            pace: floor,
            paced_at: 0.0,
            base: Base::new(),
            next: 0,
            fresh_from: 0,
            round: Round::default(),
            received: 0,
            lost: 0,
            usual: 0.0,
            trial: None,
            is_policed: false,
            is_futile: false,
            ceiling: f64::INFINITY,
            ceiling_at: 0.0,
            again_after: PLAY_AGAIN_FIRST,
            growth: 0.0,
            drains: false,
            hot: 0,
            hot_rate: 0.0,
            full: 0.0,
        }
    }

    /// Whether it decides what is sent at: beside a game, and once a transfer is long.
    pub(crate) fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    /// Bytes per microsecond that are sent now.
    pub(crate) const fn pace(&self) -> f64 {
        self.pace
    }

    /// Follows what the application wants, and takes over once the transfer is long and a rate is known.
    pub(crate) fn set(&mut self, urgency: Urgency, is_long: bool, known: Option<f64>) {
        match (urgency, self.mode, known) {
            (Urgency::DuringPlay, Mode::Play, _) => {}
            (Urgency::DuringPlay, _, known) => {
                self.mode = Mode::Play;
                self.ceiling = known.unwrap_or(f64::INFINITY);
                self.restart(PLAY_START);
            }
            (Urgency::LoadScreen, Mode::Play, _) => self.mode = Mode::Off,
            (Urgency::LoadScreen, Mode::Off, Some(rate)) if is_long => {
                self.mode = Mode::Delay;
                self.ceiling = rate;
                self.restart(rate);
            }
            _ => {}
        }
    }

    /// When the next slice may go, if not now.
    pub(crate) fn not_before(&self, now: Instant) -> Option<Instant> {
        let at = instant(self.paced_at);
        (at > now).then(|| at.max(now + TICK))
    }

    /// A datagram went out, by a caller that was late by so many microseconds.
    pub(crate) fn on_sent(&mut self, now: Instant, number: u64, bytes: f64, late: f64) {
        self.next = number + 1;
        if !self.is_on() {
            return;
        }
        // Beside a game what was not sent in time is not made up for: nothing goes back to back.
        let late = if self.mode == Mode::Play { PLAY_CATCH_UP } else { CATCH_UP + late };
        self.paced_at = self.paced_at.max(micros(now) - late) + bytes / self.pace;
    }

    /// What became of a datagram.
    pub(crate) fn on_settled(&mut self, number: u64, is_lost: bool) {
        if number >= self.fresh_from {
            self.received += u32::from(!is_lost);
            self.lost += u32::from(is_lost);
        }
    }

    /// A datagram arrived.
    pub(crate) fn on_arrival(&mut self, sample: &Sample, rtt: f64) {
        if sample.bytes < FULL {
            return;
        }
        self.base.on_delay(sample.at, sample.delay);
        if !self.is_on() || sample.number < self.fresh_from {
            return;
        }
        let delay = self.base.get().map_or(0.0, |base| sample.delay - base);
        let round = &mut self.round;
        let Some(first) = round.first else {
            let (first, infinity) = (Some(*sample), f64::INFINITY);
            let ends = Round { first, least: delay, most: delay, tail: delay, ..Round::default() };
            *round = Round { arrivals: 1, tail_before: infinity, ..ends };
            self.pace = self.rate;
            return;
        };
        round.last = Some(*sample);
        round.arrivals += 1;
        (round.least, round.most) = (round.least.min(delay), round.most.max(delay));
        if round.arrivals % TAIL == 1 {
            (round.tail_before, round.tail) = (round.tail, delay);
        }
        round.tail = round.tail.min(delay);
        let lasts = sample.at - first.at;
        if self.mode == Mode::Play {
            if round.arrivals >= PLAY_ARRIVALS && lasts >= LEAST_ROUND {
                self.judge_play(sample.at, rtt);
            }
        } else if lasts >= rtt.clamp(LEAST_ROUND, MOST_ROUND) && round.arrivals >= LEAST_ARRIVALS {
            self.judge(lasts, rtt);
        }
    }

    /// What the link carried of this transfer in the round, losses counted.
    fn delivered(&self) -> f64 {
        let (Some(first), Some(last)) = (self.round.first, self.round.last) else {
            return self.rate;
        };
        let time = (last.at - first.at).max(1.0);
        (last.passed - first.passed) / time
    }

    fn judge(&mut self, lasts: f64, rtt: f64) {
        let delivered = self.delivered().min(self.rate);
        let delay = self.round.least;
        if self.judge_losses(delay) {
            return;
        }
        let target = self.target();
        if self.mode == Mode::Compete {
            return self.compete(lasts, rtt, delay < EMPTY);
        }
        if delay < EMPTY {
            self.hot = 0;
        }
        if delay <= target {
            if delivered > USED * self.rate && !self.is_futile {
                self.grow(lasts);
            }
            self.round = Round::default();
            return;
        }
        if self.hot == 0 {
            self.hot_rate = delivered;
        }
        self.hot += 1;
        if self.hot > GIVEN_WAY && delivered < GAVE_WAY * self.hot_rate {
            (self.mode, self.full) = (Mode::Compete, delay);
            return self.restart(self.hot_rate);
        }
        (self.ceiling, self.growth) = (delivered, 0.0);
        self.restart(delivered * (1.0 - GIVEN));
        // For a round trip it sends so much less that its part of the queue drains.
        self.pace = (self.rate * (1.0 - (delay / rtt.max(LEAST_ROUND)).min(0.5))).max(self.floor);
    }

    /// The delay up to which a flow of this rate goes on.
    fn target(&self) -> f64 {
        (TARGET / sqrt(self.rate / REFERENCE).max(0.05)).max(LEAST_TARGET)
    }

    fn grow(&mut self, lasts: f64) {
        let mut part = TAKEN * lasts / 1e6 / sqrt(self.rate / REFERENCE).max(0.05);
        if self.rate > (1.0 + GIVEN) * self.ceiling && !self.is_policed {
            self.growth = (2.0 * self.growth.max(part)).min(MOST_GROWTH);
            part = part.max(self.growth);
        }
        self.rate *= 1.0 + part.min(MOST_GROWTH);
        self.pace = self.rate;
    }

    /// Others fill the queue: a datagram more each round trip, and less on a loss while the queue is long.
    fn compete(&mut self, lasts: f64, rtt: f64, is_empty: bool) {
        self.full = self.full.max(self.round.most);
        let seen = f64::from(self.received + self.lost);
        let usual = self.usual * seen + 2.0 * sqrt(self.usual * (1.0 - self.usual) * seen);
        if is_empty {
            (self.mode, self.hot, self.ceiling) = (Mode::Delay, 0, self.rate);
        } else if f64::from(self.lost) > usual && self.round.most > 0.5 * self.full {
            return self.restart(CUT * self.rate);
        }
        if self.delivered() > USED * self.rate {
            self.rate += 1_228.0 / rtt * (lasts / rtt);
        }
        (self.received, self.lost, self.round) = (0, 0, Round::default());
        self.pace = self.rate;
    }

    /// Looks whether there is a policer. Returns whether the rate was changed.
    fn judge_losses(&mut self, delay: f64) -> bool {
        let seen = self.received + self.lost;
        let (window, unusual) = match self.is_policed || self.trial.is_some() {
            true => (POLICED_WINDOW, POLICED),
            false => (LOSS_WINDOW, UNUSUAL),
        };
        if seen < window || self.mode == Mode::Compete {
            return false;
        }
        let loss = f64::from(self.lost) / f64::from(seen);
        (self.received, self.lost) = (0, 0);
        self.is_futile = loss > FUTILE;
        if let Some(trial) = self.trial.take() {
            self.is_policed = loss < 0.5 * (self.usual + trial.loss);
            if self.is_policed {
                (self.ceiling, self.growth) = (self.rate, 0.0);
                return false;
            }
            // It was chance, or whatever it was: it is usual now.
            self.usual = trial.loss;
            self.restart(trial.rate);
            return true;
        }
        if loss > self.usual + unusual && delay < self.target() {
            self.trial = Some(Trial { rate: self.rate, loss });
            self.restart((1.0 - GIVEN) * self.rate * (1.0 - loss) / (1.0 - self.usual));
            return true;
        }
        if !self.is_policed {
            self.usual += 0.3 * (loss - self.usual);
        }
        false
    }

    fn judge_play(&mut self, now: f64, rtt: f64) {
        let delivered = self.delivered().min(self.rate);
        let delay = self.round.tail.min(self.round.tail_before);
        if self.judge_losses(delay) {
            return;
        }
        if delay > PLAY_QUEUED {
            self.hot += 1;
            let is_sure = delay > 2.0 * PLAY_QUEUED && delivered < SQUEEZED * self.rate;
            if self.hot < PLAY_ROUNDS && !is_sure {
                return self.round = Round::default();
            }
            if !self.drains || self.hot > MOST_DRAINS {
                let is_known = self.rate < PLAY_GROWTH * self.ceiling;
                self.again_after = if is_known {
                    PLAY_AGAIN.min(2.0 * self.again_after)
                } else {
                    PLAY_AGAIN_FIRST
                };
                (self.ceiling, self.ceiling_at) = (delivered, now);
                (self.drains, self.hot) = (true, 0);
                self.rate = PLAY_SHARE * delivered;
            }
            self.restart(self.rate);
            self.pace =
                (self.rate * (1.0 - (delay / rtt.max(LEAST_ROUND)).min(0.5))).max(self.floor);
            return;
        }
        self.drains = false;
        self.hot = 0;
        let most = PLAY_SHARE * self.ceiling;
        if self.rate < most {
            let growth = PLAY_GROWTH.min(1.0 + PLAY_TOO_MUCH / rtt.max(1.0));
            self.restart((self.rate * growth).min(most));
            self.ceiling_at = now;
        } else if self.is_futile {
            self.round = Round::default();
        } else if now - self.ceiling_at > self.again_after {
            // Far above what it was: the link has changed.
            let is_new = self.rate > PLAY_GROWTH * self.ceiling;
            self.restart(self.rate * if is_new { PLAY_GROWTH } else { PLAY_AGAIN_GROWTH });
        } else {
            self.round = Round::default();
        }
    }

    /// Sends at this rate from now on, and judges by what is sent from now on.
    fn restart(&mut self, rate: f64) {
        self.rate = rate.max(self.floor);
        self.pace = self.rate;
        self.fresh_from = self.next;
        self.round = Round::default();
        (self.received, self.lost) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue without end and a way of fixed length behind it.
    struct Link {
        /// Bytes per microsecond, and microseconds.
        rate: f64,
        way: f64,
        idle_at: f64,
        /// One in so many gets lost; 0 is none.
        loses: u64,
    }

    struct Flow {
        share: Share,
        number: u64,
        passed: f64,
        /// What is on its way back: when it is heard, and what.
        back: alloc::collections::VecDeque<(f64, Sample, bool)>,
    }

    const PACKET: f64 = 1_228.0;

    impl Flow {
        fn new(urgency: Urgency, rate: f64) -> Self {
            let mut share = Share::new(200_000);
            share.set(urgency, true, Some(rate));
            Self { share, number: 0, passed: 0.0, back: alloc::collections::VecDeque::new() }
        }

        fn step(&mut self, now: f64, link: &mut Link) {
            while let Some(&(_, sample, is_lost)) = self.back.front().filter(|(at, ..)| *at <= now)
            {
                self.back.pop_front();
                self.share.on_settled(sample.number, is_lost);
                if !is_lost {
                    self.share.on_arrival(&sample, 2.0 * link.way);
                }
            }
            let moment = instant(now);
            while self.share.not_before(moment).is_none() {
                link.idle_at = link.idle_at.max(now) + PACKET / link.rate;
                let at = link.idle_at + link.way;
                self.passed += PACKET;
                let sample = Sample::of(self.number, PACKET, now, at, self.passed);
                let is_lost = link.loses > 0 && self.number.is_multiple_of(link.loses);
                self.back.push_back((at + link.way, sample, is_lost));
                self.share.on_sent(moment, self.number, PACKET, 0.0);
                self.number += 1;
            }
        }
    }

    fn run(flows: &mut [Flow], link: &mut Link, millis: core::ops::Range<u32>) {
        for ms in millis {
            for flow in flows.iter_mut() {
                flow.step(f64::from(ms) * 1_000.0, link);
            }
        }
    }

    fn link() -> Link {
        Link { rate: REFERENCE, way: 25_000.0, idle_at: 0.0, loses: 0 }
    }

    #[test]
    fn two_that_begin_with_unequal_rates_become_equal() {
        let mut flows = [1.2, 0.2].map(|rate| Flow::new(Urgency::LoadScreen, rate));
        run(&mut flows, &mut link(), 1..15_000);
        let [a, b] = flows.map(|flow| flow.share.rate);
        assert!((0.5..2.0).contains(&(a / b)), "{a} {b}");
        assert!((0.7..1.2).contains(&((a + b) / REFERENCE)), "{a} {b}");
    }

    #[test]
    fn it_follows_a_link_that_halves() {
        let (mut flows, mut link) = ([Flow::new(Urgency::LoadScreen, REFERENCE)], link());
        run(&mut flows, &mut link, 1..2_000);
        link.rate /= 2.0;
        run(&mut flows, &mut link, 2_000..4_000);
        assert!((0.7..1.1).contains(&(flows[0].share.rate / link.rate)), "{}", flows[0].share.rate);
    }

    #[test]
    fn losses_alone_are_no_sign() {
        let mut flows = [Flow::new(Urgency::LoadScreen, REFERENCE)];
        run(&mut flows, &mut Link { loses: 5, ..link() }, 1..5_000);
        assert!(flows[0].share.rate > 0.85 * REFERENCE, "{}", flows[0].share.rate);
    }

    #[test]
    fn beside_a_game_three_tenths_are_left_free() {
        let mut flows = [Flow::new(Urgency::DuringPlay, f64::INFINITY)];
        run(&mut flows, &mut link(), 1..8_000);
        assert!((0.6..0.8).contains(&(flows[0].share.rate / REFERENCE)), "{}", flows[0].share.rate);
    }

    #[test]
    fn the_floor_holds() {
        let mut share = Share::new(200_000);
        share.set(Urgency::LoadScreen, true, Some(1.0));
        share.restart(0.0);
        assert!((share.pace() - 0.025).abs() < 1e-9);
    }
}
