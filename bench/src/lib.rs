//! The same work, done by three crates: a [`Pair`] of ends that talk over a [`Wire`] in memory.
//!
//! Each crate is driven at the layer that stands for one peer and knows no socket: haulier's `Endpoint`,
//! renet's `RenetClient` (which its server holds one of for each client), laminar's `VirtualConnection`
//! (which its socket holds one of for each address). No map from addresses to peers, no channel between
//! threads and no system call is measured. What each of them does that others do not is said in the
//! module of its pair, and summed up in `benches/beside.rs`; `tests/facts.rs` holds it to be true.

mod haulier_pair;
mod laminar_pair;
mod renet_pair;

pub use haulier_pair::HaulierPair;
pub use laminar_pair::{Guarantee, LaminarPair};
pub use renet_pair::RenetPair;

use std::time::Duration;

use renet::Bytes;

/// From one round to the next, on every clock: 60 a second.
pub const TICK: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// What the other end answers: a player's input.
pub const ANSWER_BYTES: usize = 16;

/// What a game sends, in the two forms that cost the crates least.
#[derive(Clone, Debug)]
pub struct Payload {
    /// For a crate that copies it: in a buffer that the game uses again.
    pub bytes: Vec<u8>,
    /// For a crate that keeps it: counted references.
    pub shared: Bytes,
}

impl Payload {
    /// Bytes that differ from each other and from those of another `seed`.
    #[must_use]
    pub fn new(length: usize, seed: u8) -> Self {
        let bytes: Vec<u8> = (0..length).map(|i| (i * 31 + i / 256) as u8 ^ seed).collect();
        Self { shared: Bytes::from(bytes.clone()), bytes }
    }
}

/// What happens to the datagrams of one flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: they arrive in order, once. So it is in all that is measured.
    #[default]
    None,
    /// They arrive in the opposite order.
    Reversed,
    /// They arrive, and then all of them arrive again.
    Twice,
}

/// Where datagrams lie between the ends: copied once, as into a socket, into buffers used again.
#[derive(Debug, Default)]
pub struct Wire {
    buffers: Vec<Vec<u8>>,
    under_way: usize,
    /// For tests.
    pub fault: Fault,
    /// Datagrams that went over it.
    pub datagrams: u64,
    /// Their bytes, without UDP and IP headers.
    pub bytes: u64,
}

impl Wire {
    /// A datagram is sent.
    pub fn send(&mut self, datagram: &[u8]) {
        if self.under_way == self.buffers.len() {
            self.buffers.push(Vec::with_capacity(1500));
        }
        let buffer = &mut self.buffers[self.under_way];
        buffer.clear();
        buffer.extend_from_slice(datagram);
        self.under_way += 1;
        self.datagrams += 1;
        self.bytes += datagram.len() as u64;
    }

    /// Everything sent since the last call, in order if there is no fault.
    pub fn receive(&mut self) -> impl Iterator<Item = &[u8]> {
        let arrived = std::mem::take(&mut self.under_way);
        let arrived = &mut self.buffers[..arrived];
        if self.fault == Fault::Reversed {
            arrived.reverse();
        }
        let copies = if self.fault == Fault::Twice { &*arrived } else { &[] };
        arrived.iter().chain(copies).map(Vec::as_slice)
    }
}

/// Two ends of a connection that is established. Ends are `a`, whose packets are measured, and `b`.
pub trait Pair {
    /// `a` sends a packet, everything it has to send crosses the wire, `b` takes it in. Whatever the
    /// application at `b` then receives is shown to `take`.
    fn there(&mut self, payload: &Payload, take: impl FnMut(&[u8]));

    /// `b` sends a packet to `a`, as in [`there`](Self::there). If the crate reports acks, `a` reads these.
    fn back(&mut self, payload: &Payload, take: impl FnMut(&[u8]));

    /// A tick passes at both ends: timeouts, resends, statistics.
    fn tick(&mut self);

    /// Makes sure that [`there`](Self::there) can be called 16 times more without an answer, by whatever
    /// costs later calls least. Not measured.
    fn settle(&mut self);

    /// What crossed the wire, and what happens on it.
    fn wire(&mut self) -> &mut Wire;

    /// Panics if a packet of any round until now is not known to have arrived.
    fn check_acks(&self);
}

/// A round of a game: a packet there, an answer back, a tick. Returns the bytes that arrived.
pub fn exchange<P: Pair>(pair: &mut P, payload: &Payload, answer: &Payload) -> (usize, usize) {
    let (mut there, mut back) = (0, 0);
    pair.there(payload, |bytes| there += bytes.len());
    pair.back(answer, |bytes| back += bytes.len());
    pair.tick();
    (there, back)
}

/// Panics unless 300 packets of `length` bytes arrive exactly as they were sent, once: 256 there and back,
/// which must be acked, and 48 without answers.
pub fn check<P: Pair>(pair: &mut P, length: usize) {
    for seed in 0..=255 {
        let (payload, answer) = (Payload::new(length, seed), Payload::new(ANSWER_BYTES, seed));
        arrives(&payload, |arrived| pair.there(&payload, |bytes| arrived.push(bytes.to_vec())));
        arrives(&answer, |arrived| pair.back(&answer, |bytes| arrived.push(bytes.to_vec())));
        pair.tick();
    }
    pair.check_acks();
    for seed in 0..48 {
        if seed % 16 == 0 {
            pair.settle();
        }
        let payload = Payload::new(length, seed);
        arrives(&payload, |arrived| pair.there(&payload, |bytes| arrived.push(bytes.to_vec())));
    }
    pair.settle();
}

fn arrives(sent: &Payload, run: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut arrived = Vec::new();
    run(&mut arrived);
    let is_sent = |arrived: &Vec<u8>| *arrived == sent.bytes;
    assert!(arrived.len() == 1 && arrived.iter().all(is_sent), "a packet arrives as it was sent");
}
