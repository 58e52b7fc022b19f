//! Attackers as programs: hosts of the [`Internet`](crate::Internet) that mean no good.
//!
//! An [`Attacker`] is a host round a [`Mind`], which is told what comes and what passes, and says what to
//! send: from its own address or from anybody's. The minds here are those that several tests need;
//! [`raw`] has the two ends that seal whatever they are told.

mod hostile;
pub mod raw;

pub use hostile::{Hostile, HostileKind};

use std::collections::VecDeque;
use std::net::SocketAddr;

use haulier_proto::Instant;

use crate::Host;

/// A datagram an attacker sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shot {
    /// Where it claims to come from; `None` is the truth.
    pub from: Option<SocketAddr>,
    /// Where it goes.
    pub to: SocketAddr,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Shot {
    /// From the attacker's own address.
    #[must_use]
    pub const fn own(to: SocketAddr, bytes: Vec<u8>) -> Self {
        Self { from: None, to, bytes }
    }

    /// From somebody else's.
    #[must_use]
    pub const fn spoofed(from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) -> Self {
        Self { from: Some(from), to, bytes }
    }
}

/// What drives an attacker.
pub trait Mind {
    /// When it wants to be woken.
    fn wakes_at(&self) -> Option<Instant> {
        None
    }
    /// It is woken.
    fn wake(&mut self, _now: Instant, _out: &mut Vec<Shot>) {}
    /// A datagram came for it.
    fn receive(
        &mut self,
        _now: Instant,
        _from: SocketAddr,
        _datagram: &[u8],
        _out: &mut Vec<Shot>,
    ) {
    }
    /// A datagram of others passes. It may be changed, or swallowed by making it empty.
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

/// A host round a [`Mind`].
pub struct Attacker<M> {
    mind: M,
    queue: VecDeque<Shot>,
    spoofed: Option<SocketAddr>,
    scratch: Vec<Shot>,
}

impl<M: Mind> Attacker<M> {
    /// With this mind.
    pub const fn new(mind: M) -> Self {
        Self { mind, queue: VecDeque::new(), spoofed: None, scratch: Vec::new() }
    }

    fn with_mind(&mut self, act: impl FnOnce(&mut M, &mut Vec<Shot>)) {
        act(&mut self.mind, &mut self.scratch);
        self.queue.extend(self.scratch.drain(..));
    }
}

impl<M: Mind> Host for Attacker<M> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.with_mind(|mind, out| mind.receive(now, from, datagram, out));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.with_mind(|mind, out| mind.wake(now, out));
    }

    fn poll_transmit(&mut self, _now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        let shot = self.queue.pop_front()?;
        self.spoofed = shot.from;
        datagram.clear();
        datagram.extend_from_slice(&shot.bytes);
        Some(shot.to)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.mind.wakes_at()
    }

    fn spoofed_source(&self) -> Option<SocketAddr> {
        self.spoofed
    }

    fn meddle(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, datagram: &mut Vec<u8>) {
        self.with_mind(|mind, out| mind.meddle(now, from, to, datagram, out));
    }
}
