//! The ledger as congestion control sees it: what was sent, and what of it is acknowledged.

use haulier_control::{Bytes, History, MAX_ARRIVALS, Sent};

use super::arrivals::MAX_EARLIER_ARRIVALS;
use super::datagram::{Datagram, Fate};
use super::ledger::Ledger;

/// All that a frame names counts.
const _: () = assert!(MAX_EARLIER_ARRIVALS < MAX_ARRIVALS);

impl History for Ledger {
    fn get(&self, number: u64) -> Option<Sent> {
        Self::get(self, number).map(sent)
    }

    fn from(&self, number: u64) -> impl Iterator<Item = Sent> {
        self.iter_from(self.place(number)).map(sent)
    }

    fn next_number(&self) -> u64 {
        Self::next_number(self)
    }
}

fn sent(datagram: &Datagram) -> Sent {
    Sent {
        number: datagram.number,
        at: datagram.sent_at,
        bytes: Bytes(datagram.wire_bytes()),
        is_acked: datagram.fate == Fate::Acked,
    }
}
