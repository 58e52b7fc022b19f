//! Attackers as programs: hostile hosts of the [`World`](crate::World).
//!
//! An [`Attacker`] is a host with a [`Mind`], which sees datagrams for it and on its path, and decides what
//! to send, from its own or any other address. [`Hostile`] are the minds of a [`crowd`]; [`raw`] has two
//! ends of haulier/1 that seal arbitrary bytes.

pub mod crowd;
mod hostile;
pub mod raw;

pub use hostile::{Hostile, HostileKind};

use std::collections::VecDeque;
use std::net::SocketAddr;

use haulier_core::{Batch, FourTuple, Instant, Machine};

use crate::{Host, Shot};

/// What drives an attacker.
pub trait Mind {
    /// Its next deadline.
    fn wakes_at(&self) -> Option<Instant> {
        None
    }
    /// Its deadline has passed.
    fn wake(&mut self, _now: Instant, _out: &mut Vec<Shot>) {}
    /// A datagram for it arrived.
    fn receive(
        &mut self,
        _now: Instant,
        _from: SocketAddr,
        _datagram: &[u8],
        _out: &mut Vec<Shot>,
    ) {
    }
    /// A datagram of others passes. It may be changed, or dropped by making it empty.
    fn meddle(
        &mut self,
        _now: Instant,
        _from: SocketAddr,
        _to: SocketAddr,
        _datagram: &mut Vec<u8>,
        _out: &mut Vec<Shot>,
    ) {
    }
}

/// A host with a [`Mind`].
pub struct Attacker<M> {
    mind: M,
    queue: VecDeque<Shot>,
    scratch: Vec<Shot>,
}

impl<M: Mind> Attacker<M> {
    /// An attacker with this mind.
    pub const fn new(mind: M) -> Self {
        Self { mind, queue: VecDeque::new(), scratch: Vec::new() }
    }

    fn with_mind(&mut self, act: impl FnOnce(&mut M, &mut Vec<Shot>)) {
        act(&mut self.mind, &mut self.scratch);
        self.queue.extend(self.scratch.drain(..));
    }
}

impl<M: Mind> Machine for Attacker<M> {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.with_mind(|mind, out| mind.receive(now, path.remote, datagram, out));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.with_mind(|mind, out| mind.wake(now, out));
    }

    /// Everything it sends is a shot.
    fn poll_transmit(&mut self, _now: Instant, _batch: &mut Batch) {}

    fn poll_timeout(&self) -> Option<Instant> {
        self.mind.wakes_at()
    }
}

impl<M: Mind + 'static> Host for Attacker<M> {
    fn poll_shot(&mut self) -> Option<Shot> {
        self.queue.pop_front()
    }

    fn meddle(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, datagram: &mut Vec<u8>) {
        self.with_mind(|mind, out| mind.meddle(now, from, to, datagram, out));
    }
}
