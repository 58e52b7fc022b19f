//! How long to wait on a path: RFC 9002, 6.1.2 and 6.2.1, for the RTT of section 5, and as long as its
//! datagrams overtake each other.
//!
//! All of it is of one path, and begins anew with the next (RFC 9000, 9.4). The invariant: no datagram of
//! another path changes it.

use core::time::Duration;

use haulier_control::PathId;

use super::MAX_ACK_DELAY;
use super::reordering::Reordering;
use super::verdict::{PACKET_THRESHOLD, Patience};
use crate::{Instant, RttEstimator};

/// The RTT before the first sample, 333 ms (RFC 9002, 6.2.2).
const INITIAL_RTT_US: u32 = 333_000;
const INITIAL_RTT: Duration = Duration::from_micros(INITIAL_RTT_US as u64);

/// The finest wait, 1 ms (RFC 9002, 6.1.2): what timers keep.
const GRANULARITY: Duration = Duration::from_millis(1);

/// The longest wait, 2 s: a player sees a second of silence as a fault, and three lost probes must fit into
/// an idle timeout of 10 s. It also limits what a clock that jumped does to the RTT.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The longest RTT sample, 10 s: a longer one is a clock that jumped, or an ack so late that everything was
/// probed for several times.
const MAX_SAMPLE: Duration = Duration::from_secs(10);

/// The longest reordering that is learned in any case, 50 ms: the reordering of a link with several paths,
/// and three packets of a game at 60 a second. On longer paths the maximum is [`MAX_REORDERED_TRIPS`] round
/// trips: several, because the RTT that samples with the least jitter show is less than what jitter adds. A
/// datagram that is overtaken by more is lost, and retransmitted even if it arrives later.
const MAX_REORDERING: Duration = Duration::from_millis(50);
const MAX_REORDERED_TRIPS: u32 = 3;

/// The RTT and the reordering of a path, and the waits that follow from them.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    path: PathId,
    rtt: RttEstimator,
    /// The RTT before the first sample, in microseconds.
    initial_rtt_us: u32,
    reordering: Reordering,
    /// Probes since the last ack that brought news.
    probes: u8,
    /// From when the probe timeout runs: the last ack-eliciting datagram, or the last probe.
    probe_from: Instant,
}

impl Timing {
    /// The timing of a path of which nothing is known.
    pub(crate) const fn new(path: PathId) -> Self {
        Self {
            path,
            rtt: RttEstimator::new(),
            initial_rtt_us: INITIAL_RTT_US,
            reordering: Reordering::new(),
            probes: 0,
            probe_from: Instant::ZERO,
        }
    }

    /// The timing of a path on which a challenge was answered after this time. That time is no sample, but
    /// better than nothing (RFC 9002, 6.2.2). The first probe timeout runs from now on.
    pub(crate) fn validated(path: PathId, now: Instant, after: Duration) -> Self {
        let after = after.clamp(GRANULARITY, INITIAL_RTT).as_micros();
        let initial_rtt_us = u32::try_from(after).unwrap_or(INITIAL_RTT_US);
        Self { initial_rtt_us, probe_from: now, ..Self::new(path) }
    }

    #[inline]
    pub(crate) const fn path(&self) -> PathId {
        self.path
    }

    /// The RTT estimate.
    pub(crate) const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The RTT before the first sample.
    pub(crate) const fn initial_rtt(&self) -> Duration {
        Duration::from_micros(self.initial_rtt_us as u64)
    }

    /// How much later a datagram may have been sent that overtakes another, which yet arrives.
    pub(crate) fn reordering(&self) -> Duration {
        self.reordering.get()
    }

    /// A datagram that counted as lost has arrived after one that was sent later, by this.
    pub(super) fn on_spurious(&mut self, overtaken: Duration) {
        self.reordering.learn(self.next_like(overtaken));
    }

    /// A datagram that was waited for has arrived after one that was sent later, by this.
    pub(super) fn on_overtaken(&mut self, overtaken: Duration) {
        self.reordering.on_waited_for(self.next_like(overtaken));
    }

    /// The datagram with this number is lost, and `next` is the next that is sent.
    pub(super) fn on_lost(&mut self, number: u64, next: u64) {
        self.reordering.on_lost(number, next);
    }

    /// A quarter more, so that the next one like it is waited for.
    fn next_like(&self, overtaken: Duration) -> Duration {
        let rtt = self.rtt.smoothed_rtt().unwrap_or_default();
        let max = (MAX_REORDERED_TRIPS * rtt).max(MAX_REORDERING);
        overtaken.saturating_add(overtaken / 4).min(max)
    }

    /// How long a slice is waited for: any other can replace it.
    #[inline]
    pub(super) fn patience_of_slices(&self) -> Patience {
        Patience { datagrams: 1, reordering: self.reordering(), timeout: None }
    }

    /// How long contents that must not come twice are waited for: a packet, a message, a control frame.
    pub(super) fn patience_of_contents(&self) -> Patience {
        let (reordering, timeout) = (self.reordering(), Some(self.loss_delay()));
        Patience { datagrams: PACKET_THRESHOLD, reordering, timeout }
    }

    /// Takes a sample, and returns whether it is one. RFC 9002, 5.3, limits the peer's delay to the maximum
    /// that it announced; here an ack may have to wait for more datagrams [H-4.1c], and its delay is then
    /// longer. A false delay gains nothing: no delay brings a sample below the minimum.
    pub(super) fn on_sample(&mut self, sample: Duration, ack_delay: Duration) -> bool {
        let is_sample = sample <= MAX_SAMPLE;
        if is_sample {
            // RFC 9002 takes the first sample as it is. The program of a peer that reads once in a while may
            // make that several round trips, and there is no smaller one yet by which to correct it.
            let is_late = self.rtt.latest_rtt().is_none() && ack_delay > MAX_ACK_DELAY;
            let reader = if is_late { ack_delay } else { Duration::ZERO };
            let first = sample.saturating_sub(reader).max(GRANULARITY.min(sample));
            self.rtt.on_sample(first, ack_delay.saturating_sub(reader));
        }
        is_sample
    }

    pub(super) const fn on_news(&mut self) {
        self.probes = 0;
    }

    /// The probe timeout runs from now on.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.probe_from = now;
    }

    /// If the clock jumped ahead and came back, it runs from now on.
    pub(super) fn on_time(&mut self, now: Instant) {
        self.probe_from = self.probe_from.min(now);
    }

    pub(super) const fn on_probe(&mut self, now: Instant) {
        self.probes = self.probes.saturating_add(1);
        self.probe_from = now;
    }

    /// When the next probe is due.
    pub(super) fn probe_at(&self) -> Instant {
        self.probe_from + self.backed_off_timeout()
    }

    /// After how long a datagram is lost if a later one was acknowledged: 9/8 RTT.
    fn loss_delay(&self) -> Duration {
        let longer = self.rtt.smoothed_rtt().max(self.rtt.latest_rtt());
        let longer = longer.unwrap_or(self.initial_rtt());
        longer.saturating_add(longer / 8).clamp(GRANULARITY, MAX_WAIT)
    }

    /// The probe timeout without back-off, at most 2 s.
    pub(crate) fn probe_timeout(&self) -> Duration {
        let smoothed = self.rtt.smoothed_rtt().unwrap_or(self.initial_rtt());
        let rttvar = self.rtt.rttvar().unwrap_or(self.initial_rtt() / 2);
        let spread = rttvar.saturating_mul(4).max(GRANULARITY);
        smoothed.saturating_add(spread).saturating_add(MAX_ACK_DELAY).min(MAX_WAIT)
    }

    /// The probe timeout, doubled with each probe that had no answer.
    fn backed_off_timeout(&self) -> Duration {
        let factor = 1_u32.checked_shl(u32::from(self.probes)).unwrap_or(u32::MAX);
        self.probe_timeout().saturating_mul(factor).min(MAX_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_formulas_of_rfc_9002() {
        let mut timing = Timing::new(PathId::FIRST);
        assert_eq!(timing.probe_timeout(), ms(333 + 4 * 333 / 2 + 20));
        assert_eq!(timing.loss_delay(), ms(333) + ms(333) / 8);
        assert!(timing.on_sample(ms(80), ms(0)));
        assert_eq!(timing.probe_timeout(), ms(80 + 4 * 40 + 20));
        assert_eq!(timing.loss_delay(), ms(90));
        assert!(timing.on_sample(ms(160), ms(0)));
        assert_eq!(timing.loss_delay(), ms(180), "the latest is larger");
    }

    #[test]
    fn a_reader_that_is_late_is_not_in_the_first_sample() {
        let mut timing = Timing::new(PathId::FIRST);
        assert!(timing.on_sample(ms(140), ms(99)));
        assert_eq!(timing.rtt().smoothed_rtt(), Some(ms(41)));
        let mut timing = Timing::new(PathId::FIRST);
        assert!(timing.on_sample(ms(60), ms(20)));
        assert_eq!(timing.rtt().smoothed_rtt(), Some(ms(60)), "no more than any end may wait");
        assert!(Timing::new(PathId::FIRST).on_sample(ms(10), ms(500)));
    }

    #[test]
    fn probes_double_up_to_2_s() {
        let mut timing = Timing::new(PathId::FIRST);
        assert!(timing.on_sample(ms(80), ms(0)));
        for expected in [260, 520, 1040, 2000, 2000] {
            assert_eq!(timing.backed_off_timeout(), ms(expected));
            timing.on_probe(Instant::ZERO);
        }
        (0..300).for_each(|_| timing.on_probe(Instant::ZERO));
        assert_eq!(timing.backed_off_timeout(), ms(2000));
        timing.on_news();
        assert_eq!(timing.backed_off_timeout(), ms(260));
    }

    #[test]
    fn hours_are_no_rtt() {
        let mut timing = Timing::new(PathId::FIRST);
        assert!(!timing.on_sample(Duration::MAX, Duration::MAX));
        assert_eq!(timing.rtt().latest_rtt(), None);
        assert!(timing.on_sample(ms(10_000), ms(0)));
        assert_eq!(timing.loss_delay(), ms(2000));
        assert_eq!(timing.probe_timeout(), ms(2000));
    }
}
