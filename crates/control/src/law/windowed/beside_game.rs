//! What a window does beside a game, by its objective: it uses a share of what passes, and for a while after
//! each queue no more is tried.
//!
//! Its pace is what passed in the last rounds and a little more, until a queue is seen, or a trial has shown
//! that datagrams are lost because the link has no queue to hold them. From then on it is a share of that.
//! Datagrams lost without a queue count as passed until more is known, so that a lossy path is still used.

use super::super::pace::Pace;
use super::objective::{DURING_PLAY, START};
use super::{MIN_FIRST, SECOND, Windowed};
use crate::tuning::MAX_GAME_TRAIN;
use crate::tuning::rate_finder::{MIN_TRAIN, TRAIN_ABOVE};
use crate::tuning::{FULL_PACKET, trains};
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// At most this share of what was sent is lost behind the bottleneck, as far as is known.
const MAX_LOST: f64 = 0.3;

/// A queue at a rate that differs by less than this part from the last one was expected.
const KNOWN: f64 = 0.2;

/// The number of the first datagrams beside a game that may be lost, and the number of datagrams below which
/// losses show nothing: few are sent at first, and a trial holds back for long.
const USUAL_LOST: f64 = 2.5;
const MIN_TOLD: f64 = 64.0;

/// Beside a game a queue is one from half of this on, in datagrams: where the link has become slower each
/// takes longer, without any queue.
const MAX_DATAGRAMS: f64 = 1.5;

/// What is known of a link that is not used in full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yielding {
    /// Until then a share of what passes is used. If infinite: for the time `rest` from the next round on.
    pub(super) rests_until: Span,
    rest: Span,
    /// What passed when a queue was seen last, and before a trial.
    found: f64,
    untried: f64,
    /// Slices of a train that may go at once, and whether one has begun.
    train: usize,
    has_begun: bool,
}

impl Yielding {
    pub(super) const NOTHING: Self = Self {
        rests_until: Span::ZERO,
        rest: Span::ZERO,
        found: 0.0,
        untried: 0.0,
        train: 0,
        has_begun: false,
    };

    /// Whether no more is tried in a round that ends now.
    pub(super) fn poll_rest(&mut self, now: Span) -> bool {
        let rests = now < self.rests_until;
        self.rests_until = self.rests_until.min(now + self.rest);
        rests
    }
}

impl Windowed {
    /// Begins beside a game, on a link that is `known` to have a rate, or at least that.
    pub(in super::super) fn beside_game(
        known: Option<Rate>,
        is_least: bool,
        rtt: Span,
        in_flight: (u32, u32),
        packet: Bytes,
    ) -> Self {
        let soon = MIN_FIRST * packet / rtt.max(DURING_PLAY.min_round);
        let passes = known.unwrap_or(START.max(soon));
        let rests = known.is_some() && !is_least;
        let rate = if rests { DURING_PLAY.share * passes } else { passes };
        let pace = Pace::new(rate.max(Rate::MIN));
        let mut law = Self::new(pace, passes, rtt, in_flight, packet);
        law.objective = &DURING_PLAY;
        law.others = law.others.yielding();
        law.passed.set(passes * SECOND / packet);
        law.window.bear(USUAL_LOST, MIN_TOLD);
        law.yielding.has_begun = known.is_some();
        if rests {
            (law.yielding.rests_until, law.yielding.rest) = (Span::INFINITY, law.first_rest());
        }
        law
    }

    /// A link of which nothing was known has this rate, by a train: a share of it is used at once, and what
    /// went at once does not count against that.
    pub(super) fn begin_at(&mut self, known: Rate, packet: Bytes) {
        // Of one that is hardly more than what passed it may be that no more was sent.
        let is_news = known > TRAIN_ABOVE * self.passed.most() * packet / SECOND;
        if self.yielding.rests_until > Span::ZERO || !is_news {
            return;
        }
        (self.known, self.yielding.rests_until, self.yielding.train) = (known, Span::INFINITY, 0);
        self.passed.set(known * SECOND / packet);
        self.window.set_size(MIN_FIRST + known * self.round() / packet);
        self.yielding.rest = self.first_rest();
        self.pace.begin(Instant::ZERO);
        self.pace.set(self.objective.share * known);
        // Its queue is no other's.
        self.begin_drain();
    }

    /// The way back has this rate, and that to the peer is seldom slower. If a game's packet need not wait
    /// for long behind a train there, it shows the rate within a round trip.
    pub(in super::super) fn set_hint(&mut self, hint: Rate) {
        if !self.yielding.has_begun {
            let slices = (hint * MAX_GAME_TRAIN).in_units_of(FULL_PACKET);
            // Fewer would show no rate.
            self.yielding.train = if slices < MIN_TRAIN { 0 } else { slices.min(trains::PACKETS) };
        }
    }

    /// Whether the next slice of a train may go at once.
    pub(in super::super) const fn has_train(&self) -> bool {
        self.yielding.train > 0
    }

    /// A slice was sent.
    pub(in super::super) const fn on_slice_sent(&mut self) {
        self.yielding.has_begun |= self.yielding.train > 0;
        self.yielding.train = self.yielding.train.saturating_sub(1);
    }

    /// What is used beside a game.
    pub(in super::super) fn least_rate(&self) -> Option<Rate> {
        Some(self.pace.rate()).filter(|rate| self.gives_way() && *rate > START)
    }

    /// What a queue is, and how fast the pace may grow, in the round that is judged now.
    pub(super) fn bound(&mut self, rests: bool) {
        let grown = self.objective.max_grown / self.round();
        let queue = self.objective.max_queue.max(MAX_DATAGRAMS / self.passes());
        self.window.bound(queue, if rests { 0.0 } else { grown });
    }

    /// How long no more is tried after a queue that was not expected: a try takes some round trips.
    fn first_rest(&self) -> Span {
        let (least, most) = self.objective.rests;
        (self.objective.rested * self.round()).clamp(least, most)
    }

    /// The share of what was sent that is lost behind the bottleneck, as far as is known: beside a game most
    /// losses count as such until a trial shows otherwise.
    pub(super) fn lost_behind(&self) -> f64 {
        if self.gives_way() { MAX_LOST } else { self.window.usual() }
    }

    /// Datagrams a second that pass: of a path that passes nothing one, for more is tried soon.
    fn passes(&self) -> f64 {
        self.passed.most().max(1.0)
    }

    /// How long a round takes in which there are enough datagrams.
    fn round(&self) -> Span {
        let fates = self.objective.min_fates as f64 / self.passes();
        (SECOND * self.trip().max(fates)).max(self.objective.min_round)
    }

    /// A trial is made with a part of what passed, and if the losses are the path's own all is as before.
    fn follow_trial(&mut self, was_tried: bool) {
        match (was_tried, self.window.is_tried()) {
            (false, true) => {
                self.yielding.untried = self.passed.most();
                let arrived = self.passed.kept() * self.passed.last();
                self.passed.set(arrived.min(self.yielding.untried));
            }
            (true, false) => self.passed.set(self.passed.most().max(self.yielding.untried)),
            _ => {}
        }
    }

    /// If there was a queue, what passed in this round is what the link has, and a share of it is used.
    /// Returns whether that is so.
    pub(super) fn give_way(&mut self, was_tried: bool) -> bool {
        if !self.window.poll_yielded() {
            self.follow_trial(was_tried);
            return false;
        }
        let most = self.passed.most();
        let passed = if was_tried { most } else { self.passed.last().min(most) };
        self.passed.set(passed);
        self.window.set_size(self.window.size().min(passed * (self.round() / SECOND)));
        let (least, most) = self.objective.rests;
        let first = if was_tried { least } else { self.first_rest() };
        let is_known = (1.0 - KNOWN..1.0 + KNOWN).contains(&(passed / self.yielding.found));
        self.yielding.rest =
            if is_known { most.min(2.0 * self.yielding.rest).max(first) } else { first };
        (self.yielding.found, self.yielding.rests_until) = (passed, Span::INFINITY);
        self.begin_drain();
        true
    }
}
