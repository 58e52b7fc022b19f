//! What can be seen of a world: each datagram as it is sent, dropped or carried, and as it arrives.
//!
//! A world is watched only if asked, because each sight is a copy of the datagram. The invariant: watching
//! changes nothing.

use haulier_core::Instant;

use super::World;
use crate::Fate;

/// What happened to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Its host sent it into the way up of its access.
    Sent(Fate),
    /// It was offered to the way down of the access of its destination.
    Offered(Fate),
    /// Its destination received it.
    Arrived,
}

/// A datagram at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// When.
    pub at: Instant,
    /// What happened.
    pub stage: Stage,
    /// The number of its host, in the order of their adding: the sender of one that is sent, the destination
    /// of one that is offered or arrives.
    pub host: usize,
    /// The time that it has to wait in the queue where it was sent or offered, in nanoseconds; 0 for an
    /// arrival.
    pub waits_ns: u64,
    /// Its bytes.
    pub datagram: Vec<u8>,
}

impl World {
    /// Keeps what is seen from now on, for [`take_sights`](Self::take_sights).
    #[must_use]
    pub fn watched(mut self) -> Self {
        self.sights = Some(Vec::new());
        self
    }

    /// What was seen since the last call, in order; nothing if the world is not [watched](Self::watched).
    pub fn take_sights(&mut self) -> Vec<Sight> {
        self.sights.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn see(&mut self, stage: Stage, host: usize, waits_ns: u64, datagram: &[u8]) {
        let at = self.now;
        if let Some(sights) = &mut self.sights {
            sights.push(Sight { at, stage, host, waits_ns, datagram: datagram.to_vec() });
        }
    }
}
