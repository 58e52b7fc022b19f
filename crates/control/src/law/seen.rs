//! What became of datagrams: how many were received and lost.
//!
//! The laws judge losses by these counts. The invariant: nothing of nothing is no loss.

/// Counts of datagrams received and lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    received: u32,
    lost: u32,
}

impl Seen {
    pub(super) const fn new() -> Self {
        Self { received: 0, lost: 0 }
    }

    pub(super) fn on_settled(&mut self, is_lost: bool) {
        let count = if is_lost { &mut self.lost } else { &mut self.received };
        *count = count.saturating_add(1);
    }

    /// One of those that count as lost has arrived.
    pub(super) const fn on_spurious(&mut self) {
        if self.lost > 0 {
            (self.lost, self.received) = (self.lost - 1, self.received.saturating_add(1));
        }
    }

    pub(super) const fn total(&self) -> u32 {
        self.received.saturating_add(self.lost)
    }

    /// The share that is lost; nothing of nothing.
    pub(super) fn share(&self) -> f64 {
        self.lost() / f64::from(self.total().max(1))
    }

    pub(super) fn lost(&self) -> f64 {
        f64::from(self.lost)
    }
}
