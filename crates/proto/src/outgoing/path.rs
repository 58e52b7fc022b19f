//! What a path is to blocks: kept from one transfer to the next for as long as the path is there.

use alloc::boxed::Box;
use core::time::Duration;

use haulier_control::{Controller, Known, PathId, RequestTrain, Trust, Urgency};

use super::blocks::OutgoingBlocks;
use crate::Instant;
use crate::bulk::Sender;

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

    /// What was measured may be a lie.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.id, self.rtt);
    }

    /// The rate that acks have shown on this path, in bits per second.
    pub(crate) fn proven_rate_bps(&self) -> Option<u64> {
        let known = self.known();
        let rate = known.rate.filter(|_| known.trust == Trust::Own)?.min(known.proven.rate);
        Some(rate.bps()).filter(|&bps| bps > 0)
    }

    /// A copy of the request arrived; `bytes` includes UDP and IP headers.
    pub(crate) fn on_request(&mut self, now: Instant, bytes: usize) {
        self.requests.on_copy(now, bytes);
        if let (Some(rate), Some(state)) = (self.requests.rate(), &mut self.state) {
            state.set_hint(rate);
        }
    }

    /// The smoothed round trip, if it was measured.
    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.rtt
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
    fn begin_anew(&mut self, now: Instant, from: u64, min_rate_bps: u64) -> &mut Controller {
        self.state.insert(Box::new(Controller::new(
            now,
            self.id,
            from,
            min_rate_bps,
            Known::NOTHING,
        )))
    }
}

impl OutgoingBlocks {
    /// The chunk sender and the state of the path that it sends on, while there are blocks.
    #[inline]
    pub(crate) fn sender_on<'a>(
        &'a mut self,
        path: &'a mut BlocksPath,
    ) -> Option<(&'a mut Sender, &'a mut Controller)> {
        Some((self.sender.as_deref_mut()?, path.state.as_deref_mut()?))
    }

    /// The same, to be asked.
    #[inline]
    pub(crate) fn asked_on<'a>(
        &'a self,
        path: &'a BlocksPath,
    ) -> Option<(&'a Sender, &'a Controller)> {
        Some((self.sender.as_deref()?, path.state.as_deref()?))
    }

    /// From datagram `from` on what is sent goes this way, or says for the first time what may be believed of
    /// it.
    pub(crate) fn measure_anew(&mut self, now: Instant, path: &mut BlocksPath, from: u64) {
        let Some(sender) = &mut self.sender else { return };
        let rtt = path.rtt;
        let state = path.begin_anew(now, from, self.config.min_rate_bps);
        if let Some(rtt) = rtt {
            sender.set_rtt(state, rtt);
        }
        sender.begin_path(state);
    }

    /// Bytes that a slice frame may have: what the path carries less the header of a datagram and its tag, at
    /// least 1036. Open chunks keep their cut.
    pub(crate) fn set_slice_room(&mut self, path: &mut BlocksPath, room: usize) {
        self.slice_room = room;
        if let Some((sender, path)) = self.sender_on(path) {
            sender.set_slice_room(path, room);
        }
    }

    /// The path no longer carries what it did, and [`set_slice_room`](Self::set_slice_room) has said what it
    /// does: open chunks are cut anew. So too when the path has changed.
    pub(crate) fn on_black_hole(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.on_black_hole();
        }
    }

    /// The peer's program reads so late.
    pub(super) fn set_lateness_ms(&mut self, lateness_ms: u16) {
        self.lateness_ms = lateness_ms;
        let lateness = self.lateness();
        if let Some(sender) = &mut self.sender {
            sender.set_lateness(lateness);
        }
    }

    /// By how much the peer's program reads late, as far as it is believed.
    pub(crate) const fn lateness(&self) -> Duration {
        Duration::from_millis(self.lateness_ms as u64)
    }

    pub(crate) fn set_max_rate_bps(&mut self, rate_bps: u64) {
        self.config.max_rate_bps = rate_bps.min(self.rate_cap_bps);
        if let Some(sender) = &mut self.sender {
            sender.set_max_rate_bps(self.config.max_rate_bps);
        }
    }

    /// Limits this and every later maximum rate.
    pub(crate) fn cap_rate_bps(&mut self, rate_cap_bps: u64) {
        self.rate_cap_bps = rate_cap_bps;
        self.set_max_rate_bps(self.config.max_rate_bps);
    }

    /// How much of the link blocks may take that are sent without an urgency of their own.
    pub(crate) fn set_urgency(&mut self, now: Instant, urgency: Urgency) {
        self.config.urgency = urgency;
        self.poll(now);
    }

    /// The connection measured a round trip on this path; `rtt` is the smoothed value.
    pub(crate) fn set_rtt(&mut self, path: &mut BlocksPath, rtt: Duration) {
        path.rtt = Some(rtt);
        if let Some((sender, path)) = self.sender_on(path) {
            sender.set_rtt(path, rtt);
        }
    }
}
