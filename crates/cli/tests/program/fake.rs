//! Peers that lie, on real sockets, made of the library's own parts: a sender of any chunks and a
//! receiver that answers with any receipt.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haulier::file::{Header, Outgoing, Receipt};
use haulier::udp::{Clock, Runner, Socket};
use haulier_article::chunk::MAX_CHUNK_BYTES;
use haulier_article::{ArticleConfig, ArticlePeer, PeerMachine};

use crate::support::wait_until;

const TURN: Duration = Duration::from_millis(2);

/// Turns after the end, to ack what the other end still asks about.
const LAST_TURNS: usize = 50;

/// The chunks in which an honest sender sends this file.
pub fn chunks(name: &str, size: Option<u64>, content: &[u8]) -> Vec<Vec<u8>> {
    let mut outgoing = Outgoing::new(&Header { name: name.into(), size }, content);
    std::iter::from_fn(|| outgoing.next_chunk().unwrap().map(Vec::from)).collect()
}

fn peer(chunks: usize) -> ArticlePeer {
    let mut config = ArticleConfig::default();
    config.sender.rate_bps = 400_000_000;
    config.sender.max_queued = chunks.max(1);
    ArticlePeer::new(config)
}

/// Sends these chunks and returns the receipt.
pub fn send(to: &str, chunks: Vec<Vec<u8>>) -> Receipt {
    let to = to.parse().unwrap();
    let machine = PeerMachine::connected(peer(chunks.len()), to);
    let mut driver = Runner::new(machine, Socket::connect(to).unwrap(), Clock::start());
    for chunk in chunks {
        driver.machine.peer.send_chunk(chunk).unwrap();
    }
    let receipt = wait_until(|| {
        driver.turn(TURN).unwrap();
        driver.machine.peer.pop_chunk()
    });
    for _ in 0..LAST_TURNS {
        driver.turn(TURN).unwrap();
    }
    Receipt::from_bytes(&receipt.expect("no receipt came")).expect("that is no receipt")
}

/// A receiver in a thread of its own. Dropping it ends it.
pub struct FakeReceiver {
    pub addr: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeReceiver {
    /// Takes a run of chunks up to the first that is not full, then answers with one chunk, or nothing.
    pub fn start(answer: Option<Vec<u8>>) -> Self {
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut driver = Runner::new(PeerMachine::new(peer(1)), socket, Clock::start());
        let (addr, stop) = (driver.carrier().local_addr(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut answer = answer;
            while !stopped.load(Ordering::Relaxed) {
                driver.turn(TURN).unwrap();
                if driver
                    .machine
                    .peer
                    .pop_chunk()
                    .is_some_and(|chunk| chunk.len() < MAX_CHUNK_BYTES)
                    && let Some(answer) = answer.take()
                {
                    driver.machine.peer.send_chunk(answer).unwrap();
                }
            }
        });
        Self { addr, stop, thread: Some(thread) }
    }
}

impl Drop for FakeReceiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}
