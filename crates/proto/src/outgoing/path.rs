//! What the sender of blocks knows of a path: kept from one transfer to the next while the path exists.

use alloc::boxed::Box;
use core::time::Duration;

use haulier_control::{Controller, Known, PathId, RequestTrain, Trust};

use crate::Instant;

/// What was measured of a path for blocks, now or before.
#[derive(Debug)]
pub(crate) struct BlocksPath {
    id: PathId,
    /// What was known when the present transfer began; without one, now.
    known: Known,
    /// The spacing of the copies of the request.
    requests: RequestTrain,
    /// The smoothed round trip.
    rtt: Option<Duration>,
    /// Exists while blocks are sent, so that an idle connection is small.
    state: Option<Box<Controller>>,
}

impl BlocksPath {
    /// Nothing is known of the path but how long a round trip takes, perhaps.
    pub(crate) const fn new(id: PathId, rtt: Option<Duration>) -> Self {
        Self { id, known: Known::NOTHING, requests: RequestTrain::new(), rtt, state: None }
    }

    /// What was measured, for the client's next visit.
    pub(crate) fn known(&self) -> Known {
        self.state.as_ref().map_or(self.known, |state| state.known())
    }

    /// Starts from what an earlier connection measured.
    pub(crate) const fn set_known(&mut self, known: Known) {
        self.known = known;
    }

    /// Forgets all measurements: they may be false, because the peer reported them.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.id, self.rtt);
    }

    /// The rate that acks have shown on this path, in bits per second.
    pub(crate) fn proven_rate_bps(&self) -> Option<u64> {
        let known = self.known();
        let rate = known.rate.filter(|_| known.trust == Trust::Own)?.min(known.proven.rate);
        Some(rate.bps()).filter(|&bps| bps > 0)
    }

    /// A copy of the request arrived with this check; `bytes` includes UDP and IP headers.
    pub(crate) fn on_request(&mut self, now: Instant, bytes: usize, check: u32) {
        self.requests.on_copy(now, bytes, check);
        if let (Some(rate), Some(state)) = (self.requests.rate(), &mut self.state) {
            state.set_hint(rate);
        }
    }

    /// The smoothed round trip, if it was measured.
    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    pub(super) const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// What is measured of it, while blocks are sent.
    pub(super) fn state(&self) -> Option<&Controller> {
        self.state.as_deref()
    }

    pub(super) fn state_mut(&mut self) -> Option<&mut Controller> {
        self.state.as_deref_mut()
    }

    /// Blocks are sent from now on. A transfer has at least `min_rate_bps` once it has a rate of its own, and
    /// `from` is the number of its first datagram.
    pub(super) fn begin(&mut self, now: Instant, from: u64, min_rate_bps: u64) -> &mut Controller {
        self.end();
        let mut state =
            Controller::new(now, self.id, from, min_rate_bps, self.known.discounted(now));
        self.requests.rate().into_iter().for_each(|rate| state.set_hint(rate));
        self.state.insert(Box::new(state))
    }

    /// No blocks are sent any more.
    pub(crate) fn end(&mut self) {
        self.known = self.known();
        self.state = None;
    }

    /// What is measured of it begins anew with number `from`, as if nothing were known.
    pub(super) fn begin_anew(
        &mut self,
        now: Instant,
        from: u64,
        min_rate_bps: u64,
    ) -> &mut Controller {
        self.state.insert(Box::new(Controller::new(
            now,
            self.id,
            from,
            min_rate_bps,
            Known::NOTHING,
        )))
    }
}
