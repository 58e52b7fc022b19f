//! The bounds on a server in the [`World`](crate::World), with all its clients, honest or not.

use haulier_core::Batch;
use haulier_proto::internals::Work;
use haulier_proto::server::ServerMachine;

use super::bounds::too_dear_at_once;
use super::{Bound, Budget, Finding, Meter, State, Traffic};

/// What a server did, held against the bounds after each call.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    meter: Meter,
    traffic: Traffic,
    budget: Budget,
    given_bytes: u64,
    work: Work,
    admits_nothing: bool,
    finding: Option<Finding>,
}

impl Watch {
    /// For a server that has announced to its clients that it takes no blocks: it may hold nothing for them,
    /// even if it counts what it holds.
    #[must_use]
    pub fn admitting_nothing() -> Self {
        Self { admits_nothing: true, ..Self::default() }
    }

    /// The first bound that was exceeded.
    #[must_use]
    pub const fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// Counts what a call allocates.
    pub fn around<R>(&mut self, act: impl FnOnce() -> R) -> R {
        self.meter.around(act)
    }

    /// A datagram arrived.
    pub const fn on_received(&mut self, bytes: usize) {
        self.traffic.datagrams_in += 1;
        self.traffic.bytes_in += bytes as u64;
    }

    /// Datagrams from `before` on were sent.
    pub fn on_sent(&mut self, batch: &Batch, before: usize) {
        for (_, datagram) in batch.iter().skip(before) {
            self.traffic.datagrams_out += 1;
            self.traffic.bytes_out += datagram.len() as u64;
        }
    }

    /// Compares all that with the bounds; called after each datagram. `own_bytes` is what the server's
    /// applications hold, and gave it to send.
    pub fn judge(&mut self, server: &ServerMachine, own_bytes: u64) {
        if self.finding.is_some() {
            return;
        }
        let stats = server.stats();
        self.given_bytes = self.given_bytes.max(own_bytes);
        let traffic =
            Traffic { connections: stats.requests, given_bytes: self.given_bytes, ..self.traffic };
        let (before, work) = (self.work, server.work());
        self.work = work;
        let state = State {
            meter: self.meter,
            work,
            traffic,
            memory_bytes: if self.admits_nothing { 0 } else { stats.memory_bytes },
            connections: stats.connections,
            own_bytes,
        };
        let finding = state.exceeds(&mut self.budget).or_else(|| too_dear_at_once(&before, &work));
        self.finding = finding.map(|finding| match finding.bound {
            Bound::Uncounted if self.admits_nothing => {
                Finding { bound: Bound::Unadmitted, ..finding }
            }
            _ => finding,
        });
    }
}
