//! A stage: a sending and a receiving end, the link between them, and a stop-watch.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;

use super::outcome::HUNG;
use super::{Cell, Moment, Outcome};
use haulier_sim::join::address;
use haulier_sim::{Host, HostId, Internet, LinkStats};

/// Where the sending end is, and the receiving one.
pub(super) fn addresses() -> (SocketAddr, SocketAddr) {
    (address(1), address(2))
}

/// Where and by which seed a run takes place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) cell: &'a Cell,
    pub(super) seed: u64,
    pub(super) limit: Duration,
}

/// Either end, as the stage sees it.
pub(super) trait End: Host {
    /// Why nothing more can come of it, if so.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// The end that has the block.
pub(super) trait SendingEnd: End {
    /// Slices sent so far.
    fn slices_sent(&self) -> u64;
    /// Whether it knows that everything it was to send is there.
    fn is_done(&self) -> bool;
}

/// The end that wants it.
pub(super) trait ReceivingEnd: End {
    /// Blocks received so far, and when the last of them was whole.
    fn blocks(&self) -> (usize, Instant);
}

/// One of the two.
#[derive(Debug)]
enum Either<S, R> {
    Sending(S),
    Receiving(R),
}

impl<S: SendingEnd, R: ReceivingEnd> Either<S, R> {
    fn host(&self) -> &dyn Host {
        match self {
            Self::Sending(host) => host,
            Self::Receiving(host) => host,
        }
    }

    fn host_mut(&mut self) -> &mut dyn Host {
        match self {
            Self::Sending(host) => host,
            Self::Receiving(host) => host,
        }
    }
}

impl<S: SendingEnd, R: ReceivingEnd> Host for Either<S, R> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.host_mut().handle_datagram(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host_mut().handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.host_mut().poll_transmit(now, datagram)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host().poll_timeout()
    }
}

/// What was counted before the stop-watch was started.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    at: Instant,
    slices: u64,
    blocks: usize,
    link: LinkStats,
}

/// Two ends, the link, the stop-watch.
#[derive(Debug)]
pub(super) struct Stage<'a, S, R> {
    place: Place<'a>,
    internet: Internet<Either<S, R>>,
    sending: HostId,
    receiving: HostId,
    start: Start,
}

impl<'a, S: SendingEnd, R: ReceivingEnd> Stage<'a, S, R> {
    /// Both ends at time zero, with the stop-watch started.
    pub(super) fn new(place: &Place<'a>, sending: S, receiving: R) -> Self {
        let (from, to) = addresses();
        let mut internet = Internet::new(place.seed).without_trace();
        let sending = internet.add(Either::Sending(sending), from, &Cell::server_access());
        let access = place.cell.client_access();
        let receiving = internet.add(Either::Receiving(receiving), to, &access);
        Self { place: *place, internet, sending, receiving, start: Start::default() }
    }

    fn sending(&self) -> &S {
        sending(&self.internet, self.sending)
    }

    fn receiving(&self) -> &R {
        receiving(&self.internet, self.receiving)
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, time: Duration) {
        let end = self.internet.now() + time;
        self.internet.run_to(end);
    }

    /// Starts the stop-watch anew, and does something at the sending end at once.
    pub(super) fn restart(&mut self, act: impl FnOnce(&mut S, Instant)) {
        self.internet.forget_peaks();
        self.start = Start {
            at: self.internet.now(),
            slices: self.sending().slices_sent(),
            blocks: self.receiving().blocks().0,
            link: *self.internet.links(self.receiving).1.stats(),
        };
        self.internet.act(self.sending, |host, now| {
            if let Either::Sending(host) = host {
                act(host, now);
            }
        });
    }

    /// Runs until the client has the block and the sender knows, or it hangs. Who wants to see it on its way
    /// gets moments that are close to each other round the limit, and further apart later.
    pub(super) fn run(&mut self, mut moments: Option<&mut Vec<Moment>>) -> Outcome {
        let end = self.start.at + HUNG;
        let blocks = self.start.blocks;
        let (from, to) = (self.sending, self.receiving);
        let mut quarters: u32 = 1;
        loop {
            let stop = match &moments {
                Some(_) => end.min(self.start.at + self.place.limit * quarters / 4),
                None => end,
            };
            let is_over = self.internet.run_until(stop, |internet| {
                let (sending, receiving) = (sending(internet, from), receiving(internet, to));
                let is_whole = receiving.blocks().0 > blocks;
                (is_whole && sending.is_done())
                    || (!is_whole && receiving.failure().is_some())
                    || sending.failure().is_some()
            });
            if let Some(moments) = &mut moments {
                moments.push(self.moment());
            }
            if is_over || stop == end {
                return self.outcome();
            }
            quarters += (quarters / 4).max(1);
        }
    }

    fn moment(&self) -> Moment {
        let link = self.internet.links(self.receiving).1.stats();
        let before = &self.start.link;
        Moment {
            after: self.internet.now().since(self.start.at),
            slices_sent: self.sending().slices_sent() - self.start.slices,
            dropped: link.queue_full - before.queue_full,
            lost: link.lost - before.lost,
            arrived: link.delivered - before.delivered,
            is_whole: self.receiving().blocks().0 > self.start.blocks,
        }
    }

    fn outcome(&self) -> Outcome {
        let (blocks, at) = self.receiving().blocks();
        let is_whole = blocks > self.start.blocks;
        let (link, before) = (self.internet.links(self.receiving).1.stats(), &self.start.link);
        let queued = |stats: &LinkStats| stats.offered - stats.queue_full;
        let packets = u32::try_from(queued(link) - queued(before)).unwrap_or(u32::MAX);
        let why = || {
            let failure = self.receiving().failure().or_else(|| self.sending().failure());
            failure.unwrap_or_else(|| format!("no block within {} s", HUNG.as_secs()))
        };
        Outcome {
            took: if is_whole { at.since(self.start.at) } else { HUNG },
            limit: self.place.limit,
            known_after: (is_whole && self.sending().is_done())
                .then(|| self.internet.now().since(self.start.at)),
            slices_sent: self.sending().slices_sent() - self.start.slices,
            dropped_bytes: link.queue_full_bytes - before.queue_full_bytes,
            peak_queue_bytes: link.queue_bytes_max,
            mean_wait: (link.waited - before.waited) / packets.max(1),
            hang: (!is_whole).then(why),
        }
    }
}

fn sending<S, R>(internet: &Internet<Either<S, R>>, id: HostId) -> &S
where
    S: SendingEnd,
    R: ReceivingEnd,
{
    match internet.host(id) {
        Either::Sending(host) => host,
        Either::Receiving(_) => unreachable!("the stage has put a sending end here"),
    }
}

fn receiving<S, R>(internet: &Internet<Either<S, R>>, id: HostId) -> &R
where
    S: SendingEnd,
    R: ReceivingEnd,
{
    match internet.host(id) {
        Either::Receiving(host) => host,
        Either::Sending(_) => unreachable!("the stage has put a receiving end here"),
    }
}
