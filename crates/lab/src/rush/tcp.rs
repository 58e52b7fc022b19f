//! The two ends of TCP, with its handshake: a round trip before the request, and each of its packets may be
//! lost. Without TLS.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::{Batch, FourTuple, Instant, Machine};
use haulier_sim::Host;

use super::Sender;
use crate::rivals::TcpReceiver;
use crate::rivals::bbr::BbrSender;
use crate::rivals::cubic::CubicSender;

/// Bytes of a datagram of the handshake, so that it has 60 on the link. No segment has this length.
const HELLO_BYTES: usize = 60 - 28;

/// What a datagram of the handshake is, by its first byte.
const SYN: u8 = 1;
const SYN_ACK: u8 = 2;
const REQUEST: u8 = 3;

/// The first timeout of a SYN (RFC 6298, 2.1), and the least later one (Linux).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);
const MIN_TIMEOUT: Duration = Duration::from_millis(200);

/// A request is resent this often at most with twice the timeout of the last.
const MAX_DOUBLINGS: u32 = 6;

fn hello(kind: u8) -> [u8; HELLO_BYTES] {
    let mut datagram = [0; HELLO_BYTES];
    datagram[..2].copy_from_slice(&[0xff, kind]);
    datagram
}

/// The kind of a datagram of the handshake. An ack with one run has the same length, but it ends with the end
/// of that run, which is never zero.
fn kind_of(datagram: &[u8]) -> Option<u8> {
    let is_hello = datagram.len() == HELLO_BYTES
        && datagram[0] == 0xff
        && datagram[2..] == [0; HELLO_BYTES - 2];
    is_hello.then(|| datagram[1])
}

/// What sends the stream.
enum Stream {
    Bbr(Box<BbrSender>),
    Cubic(Box<CubicSender>),
}

impl Stream {
    fn machine(&self) -> &dyn Machine {
        match self {
            Self::Bbr(sender) => &**sender,
            Self::Cubic(sender) => &**sender,
        }
    }

    fn machine_mut(&mut self) -> &mut dyn Machine {
        match self {
            Self::Bbr(sender) => &mut **sender,
            Self::Cubic(sender) => &mut **sender,
        }
    }
}

/// A server of one client: it sends its block when it is asked to.
pub(super) struct TcpServer {
    sender: Sender,
    client: SocketAddr,
    bytes: u64,
    seed: u64,
    answers: bool,
    stream: Option<Stream>,
}

impl TcpServer {
    pub(super) const fn new(sender: Sender, client: SocketAddr, bytes: u64, seed: u64) -> Self {
        Self { sender, client, bytes, seed, answers: false, stream: None }
    }

    fn begin(&mut self, now: Instant) {
        let Self { sender, client, bytes, seed, .. } = *self;
        self.stream.get_or_insert_with(|| match sender {
            Sender::Bbr => {
                Stream::Bbr(Box::new(BbrSender::new(client, now, seed).ending_after(bytes)))
            }
            _ => Stream::Cubic(Box::new(CubicSender::new(client, now).ending_after(bytes))),
        });
    }
}

impl Machine for TcpServer {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        match kind_of(datagram) {
            Some(SYN) => self.answers = true,
            Some(REQUEST) => self.begin(now),
            _ => {
                if let Some(stream) = &mut self.stream {
                    stream.machine_mut().handle_datagram(now, path, datagram);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.stream.iter_mut().for_each(|stream| stream.machine_mut().handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if self.answers && batch.push(self.client.into(), &hello(SYN_ACK)) {
            self.answers = false;
        }
        self.stream.iter_mut().for_each(|stream| stream.machine_mut().poll_transmit(now, batch));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.stream.as_ref().and_then(|stream| stream.machine().poll_timeout())
    }
}

impl Host for TcpServer {}

/// A client that connects, asks and receives.
pub(super) struct TcpClient {
    /// When it had all bytes.
    pub(super) done_at: Option<Instant>,
    server: SocketAddr,
    bytes: u64,
    begins: Instant,
    /// What it says now, how often it has, and when it does next; nothing once data has come.
    says: Option<u8>,
    times: u32,
    next: Instant,
    timeout: Duration,
    receiver: TcpReceiver,
}

impl TcpClient {
    pub(super) fn new(server: SocketAddr, bytes: u64, begins: Instant) -> Self {
        Self {
            done_at: None,
            server,
            bytes,
            begins,
            says: Some(SYN),
            times: 0,
            next: begins,
            timeout: SYN_TIMEOUT,
            receiver: TcpReceiver::new(server),
        }
    }
}

impl Machine for TcpClient {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        match kind_of(datagram) {
            Some(SYN_ACK) if self.says == Some(SYN) => {
                // The first sample of the round trip, twice of it as its variation: RFC 6298, 2.2.
                let rtt = if self.times == 1 { now.since(self.begins) } else { SYN_TIMEOUT };
                self.timeout = rtt + (rtt * 2).max(MIN_TIMEOUT);
                (self.says, self.times, self.next) = (Some(REQUEST), 0, now);
            }
            Some(_) => {}
            None => {
                self.says = None;
                self.receiver.handle_datagram(now, path, datagram);
                if self.done_at.is_none() && self.receiver.in_order_bytes() >= self.bytes {
                    self.done_at = Some(now);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.receiver.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if let Some(says) = self.says.filter(|_| self.next <= now)
            && batch.push(self.server.into(), &hello(says))
        {
            self.next = now + self.timeout * (1 << self.times.min(MAX_DOUBLINGS));
            self.times += 1;
        }
        self.receiver.poll_transmit(now, batch);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let next = self.says.map(|_| self.next);
        next.into_iter().chain(self.receiver.poll_timeout()).min()
    }
}

impl Host for TcpClient {}
