//! Datagrams of tests.

use alloc::vec::Vec;

use super::*;

/// The size of each.
pub(crate) const BYTES: Bytes = Bytes(1_228.0);

/// Datagrams that were sent, from number 0 on.
#[derive(Debug, Default)]
pub(crate) struct Log(Vec<Sent>);

impl Log {
    /// `count` datagrams, of which those below `acked` are acknowledged.
    pub(crate) fn of(count: u64, acked: u64, at: impl Fn(u64) -> Instant) -> Self {
        let mut log = Self::default();
        (0..count).for_each(|number| log.send(at(number)));
        log.ack(acked);
        log
    }

    pub(crate) fn send(&mut self, at: Instant) {
        self.send_bytes(at, BYTES);
    }

    pub(crate) fn send_bytes(&mut self, at: Instant, bytes: Bytes) {
        let number = self.next_number();
        self.0.push(Sent { number, at, bytes, is_acked: false });
    }

    /// This one is acknowledged.
    pub(crate) fn ack_one(&mut self, number: u64) {
        self.0.iter_mut().filter(|sent| sent.number == number).for_each(|it| it.is_acked = true);
    }

    /// Those below this number are acknowledged.
    pub(crate) fn ack(&mut self, below: u64) {
        self.0.iter_mut().filter(|sent| sent.number < below).for_each(|it| it.is_acked = true);
    }
}

impl History for Log {
    fn get(&self, number: u64) -> Option<Sent> {
        self.0.get(usize::try_from(number).ok()?).copied()
    }

    fn from(&self, number: u64) -> impl Iterator<Item = Sent> {
        self.0.iter().copied().skip_while(move |sent| sent.number < number)
    }

    fn next_number(&self) -> u64 {
        self.0.len() as u64
    }
}
