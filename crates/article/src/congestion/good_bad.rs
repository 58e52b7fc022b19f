//! "Simple binary congestion avoidance" (*Reliability, Ordering and Congestion Avoidance over UDP*): a good
//! mode and a bad one, chosen by the round trip alone.

use core::time::Duration;

use super::CongestionController;
use crate::Instant;
use crate::settings;

/// The assumed condition of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CongestionMode {
    /// Send at the full rate: 30 packets a second.
    Good,
    /// Send less until the network has recovered: 10 packets a second.
    Bad,
}

/// What moves a [`CongestionMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CongestionTrigger {
    /// The round trip is over the threshold.
    ConditionsBad,
    /// Conditions have been good for the recovery time.
    Recovered,
}

impl CongestionMode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Good, Self::Bad];

    /// The mode after `news`; `None` where it changes nothing.
    #[must_use]
    pub const fn next(self, news: CongestionTrigger) -> Option<Self> {
        match (self, news) {
            (Self::Good, CongestionTrigger::ConditionsBad) => Some(Self::Bad),
            (Self::Bad, CongestionTrigger::Recovered) => Some(Self::Good),
            _ => None,
        }
    }
}

impl CongestionTrigger {
    /// Every kind of news.
    pub const ALL: [Self; 2] = [Self::ConditionsBad, Self::Recovered];
}

settings! {
    /// The settings of [`GoodBad`]. The defaults are those of the article, which has none for the first two.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct GoodBadConfig {
        /// The mode to start in. Default good: most networks are.
        start: CongestionMode = CongestionMode::Good, with_start;
        /// How long conditions must be good before the first return to good mode. Default 4 s.
        recovery: Duration = Duration::from_secs(4), with_recovery;
        /// Packets a second in good mode, at least 1. Default 30.
        good_packets_per_second: u32 = 30, with_good_packets_per_second;
        /// Packets a second in bad mode, at least 1. Default 10.
        bad_packets_per_second: u32 = 10, with_bad_packets_per_second;
        /// Conditions are bad when the round trip is *over* this. Default 250 ms.
        bad_rtt: Duration = Duration::from_millis(250), with_bad_rtt;
        /// The recovery time never falls below this. Default 1 s.
        min_recovery: Duration = Duration::from_secs(1), with_min_recovery;
        /// The recovery time never rises above this. Default 60 s.
        max_recovery: Duration = Duration::from_secs(60), with_max_recovery;
        /// If good mode lasted less than this, its end doubles the recovery time; each such period of good
        /// conditions in good mode halves it. Default 10 s.
        trust_after: Duration = Duration::from_secs(10), with_trust_after;
    }
}

/// The longest time between two reports that counts; in the rest there was no traffic. It is not zero,
/// because a sender of one packet every two seconds must leave bad mode too.
const MAX_COUNTED_GAP: Duration = Duration::from_secs(1);

/// The article's controller: changes to bad mode at once and back slowly, and more slowly the more often it
/// had to (STANDARD §9.5).
#[derive(Clone, Debug)]
pub struct GoodBad {
    config: GoodBadConfig,
    mode: CongestionMode,
    recovery: Duration,
    /// When the present period of good conditions began, for the next decision: in good mode its start or
    /// the last halving, in bad mode the last bad report. `None` before the first report.
    good_since: Option<Instant>,
    last_report: Instant,
    /// Whether good mode has lasted for `trust_after`.
    is_trusted: bool,
}

impl GoodBad {
    /// A controller before its first report.
    #[must_use]
    pub const fn new(config: GoodBadConfig) -> Self {
        Self {
            config,
            mode: config.start,
            recovery: config.recovery,
            good_since: None,
            last_report: Instant::ZERO,
            is_trusted: false,
        }
    }

    /// A controller whose first mode began at `now`, and not with the first report.
    #[must_use]
    pub const fn started_at(config: GoodBadConfig, now: Instant) -> Self {
        let mut controller = Self::new(config);
        controller.good_since = Some(now);
        controller.last_report = now;
        controller
    }

    /// The present mode.
    #[must_use]
    pub const fn mode(&self) -> CongestionMode {
        self.mode
    }

    /// How long conditions must be good before bad mode ends.
    #[must_use]
    pub const fn recovery(&self) -> Duration {
        self.recovery
    }

    /// Packets a second in the present mode.
    #[must_use]
    pub const fn packets_per_second(&self) -> u32 {
        match self.mode {
            CongestionMode::Good => self.config.good_packets_per_second,
            CongestionMode::Bad => self.config.bad_packets_per_second,
        }
    }

    fn on_bad_conditions(&mut self, now: Instant) {
        if let Some(mode) = self.mode.next(CongestionTrigger::ConditionsBad) {
            if !self.is_trusted {
                self.recovery = self.recovery.saturating_mul(2).min(self.config.max_recovery);
            }
            self.mode = mode;
        }
        self.good_since = Some(now);
        self.is_trusted = false;
    }

    fn on_good_conditions(&mut self, now: Instant) {
        let since = *self.good_since.get_or_insert(now);
        let good_for = now.since(since);
        match self.mode {
            CongestionMode::Good if good_for >= self.config.trust_after => {
                self.recovery = (self.recovery / 2).max(self.config.min_recovery);
                self.good_since = Some(now);
                self.is_trusted = true;
            }
            CongestionMode::Bad if good_for >= self.recovery => {
                if let Some(mode) = self.mode.next(CongestionTrigger::Recovered) {
                    self.mode = mode;
                }
                self.good_since = Some(now);
            }
            CongestionMode::Good | CongestionMode::Bad => {}
        }
    }

    /// Time without reports was neither good nor bad: most of it is taken out of the present period. So is a
    /// jump of the clock.
    fn skip_gap(&mut self, now: Instant) {
        let gap = now.since(self.last_report).saturating_sub(MAX_COUNTED_GAP);
        self.last_report = now;
        self.good_since = self.good_since.map(|since| (since + gap).min(now));
    }
}

impl Default for GoodBad {
    fn default() -> Self {
        Self::new(GoodBadConfig::default())
    }
}

impl CongestionController for GoodBad {
    fn on_conditions(&mut self, now: Instant, rtt: Duration) {
        self.skip_gap(now);
        if rtt > self.config.bad_rtt {
            self.on_bad_conditions(now);
        } else {
            self.on_good_conditions(now);
        }
    }

    fn send_interval(&self) -> Duration {
        Duration::from_secs(1) / self.packets_per_second().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Duration = Duration::from_millis(100);
    const BAD: Duration = Duration::from_millis(300);

    /// Reports every 100 ms from `from` on, `count` times; returns the time of the last.
    fn report(controller: &mut GoodBad, from: u64, count: u64, rtt: Duration) -> u64 {
        (1..=count)
            .for_each(|i| controller.on_conditions(Instant::from_millis(from + i * 100), rtt));
        from + count * 100
    }

    #[test]
    fn modes_are_thirty_and_ten_packets_a_second() {
        let mut controller = GoodBad::started_at(GoodBadConfig::default(), Instant::ZERO);
        assert_eq!(controller.packets_per_second(), 30);
        report(&mut controller, 0, 1, BAD);
        assert_eq!((controller.mode(), controller.packets_per_second()), (CongestionMode::Bad, 10));
        assert_eq!(controller.send_interval(), Duration::from_millis(100));
    }

    /// The edge that the vectors describe in words: the hundredth report is a bad one, before the tenth
    /// second is over.
    #[test]
    fn ninety_nine_good_reports_are_less_than_ten_seconds() {
        let mut controller = GoodBad::started_at(GoodBadConfig::default(), Instant::ZERO);
        let now = report(&mut controller, 0, 99, GOOD);
        report(&mut controller, now, 1, BAD);
        assert_eq!(controller.recovery(), Duration::from_secs(8));
    }

    #[test]
    fn time_without_traffic_does_not_end_bad_mode() {
        let mut controller = GoodBad::started_at(GoodBadConfig::default(), Instant::ZERO);
        report(&mut controller, 0, 1, BAD);
        let now = report(&mut controller, 3_600_000, 70, GOOD);
        assert_eq!(controller.mode(), CongestionMode::Bad);
        report(&mut controller, now, 1, GOOD);
        assert_eq!(
            controller.mode(),
            CongestionMode::Good,
            "a second of the hour, and 7 s of reports"
        );
    }

    /// A packet every two seconds, and a report at each.
    #[test]
    fn slow_traffic_comes_back_from_bad_mode() {
        let mut controller = GoodBad::started_at(GoodBadConfig::default(), Instant::ZERO);
        report(&mut controller, 0, 1, BAD);
        let seconds = |i: u64| Instant::from_millis(i * 2_000);
        (1..9).for_each(|i| controller.on_conditions(seconds(i), GOOD));
        assert_eq!(controller.mode(), CongestionMode::Good);
    }

    #[test]
    fn no_configuration_overflows() {
        let recovery = Duration::MAX;
        let config = GoodBadConfig { recovery, max_recovery: recovery, ..GoodBadConfig::default() };
        let mut controller = GoodBad::started_at(config, Instant::ZERO);
        report(&mut controller, 0, 3, BAD);
        assert_eq!(controller.recovery(), Duration::MAX);
    }

    #[test]
    fn a_clock_that_jumps_ahead_and_back_does_not_stop_the_recovery() {
        let mut controller = GoodBad::started_at(GoodBadConfig::default(), Instant::ZERO);
        report(&mut controller, 0, 1, BAD);
        controller.on_conditions(Instant::from_nanos(u64::MAX), GOOD);
        report(&mut controller, 200, 82, GOOD);
        assert_eq!(controller.mode(), CongestionMode::Good);
    }
}
