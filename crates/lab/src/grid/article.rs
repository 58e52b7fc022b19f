//! The article's machine, as its author wrote of it: a burst, then a megabit per second, resends after
//! 100 ms, acks at least 100 ms apart.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_article::chunk::{ChunkSenderEvent, ResendDelay};
use haulier_article::{ArticleConfig, ArticlePeer, Instant, PeerEvent};

use super::stage::{End, Place, ReceivingEnd, SendingEnd, Stage, addresses};
use super::{Kit, Moment, Outcome};
use haulier_sim::Host;

const INTERVAL: Duration = Duration::from_millis(100);

struct Peer {
    peer: ArticlePeer,
    remote: SocketAddr,
    whole: Option<Instant>,
    is_sent: bool,
}

pub(super) fn run(place: &Place<'_>, kit: &Kit, moments: Option<&mut Vec<Moment>>) -> Outcome {
    let mut config = ArticleConfig::default();
    config.sender.resend_delay = ResendDelay::Fixed(INTERVAL);
    config.sender.give_up_after = None;
    config.receiver.ack_interval = INTERVAL;
    config.receiver.abandon_after = None;
    let (from, to) = addresses();
    let receiving = Peer::new(ArticlePeer::new(config.clone()), from);
    let mut sending = Peer::new(ArticlePeer::new(config), to);
    let queued = sending.peer.send_chunk(kit.timed.data().clone());
    assert!(queued.is_ok(), "an empty queue takes a chunk");
    Stage::new(place, sending, receiving).run(moments)
}

impl Peer {
    const fn new(peer: ArticlePeer, remote: SocketAddr) -> Self {
        Self { peer, remote, whole: None, is_sent: false }
    }
}

impl Host for Peer {
    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, datagram: &mut [u8]) {
        let _counted = self.peer.handle_datagram(now, datagram);
        if self.whole.is_none() && self.peer.receiver().unread() > 0 {
            self.whole = Some(now);
        }
        while let Some(event) = self.peer.poll_event() {
            self.is_sent |= matches!(event, PeerEvent::Sender(ChunkSenderEvent::Sent { .. }));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.peer.poll_datagram(now, datagram).then_some(self.remote)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.peer.poll_timeout()
    }
}

impl End for Peer {}

impl SendingEnd for Peer {
    fn slices_sent(&self) -> u64 {
        self.peer.sender().stats().slices_sent
    }

    fn is_done(&self) -> bool {
        self.is_sent
    }
}

impl ReceivingEnd for Peer {
    fn blocks(&self) -> (usize, Instant) {
        (usize::from(self.whole.is_some()), self.whole.unwrap_or_default())
    }
}
