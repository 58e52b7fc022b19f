//! Who has a place for a handshake, when there are more who want one than places.

use core::time::Duration;

use super::ServerMachine;
use super::admission::Prefix;
use crate::Instant;
use crate::connection::{CloseReason, ConnectionNews};

/// A handshake that is older than this makes room for another when there is no more: three round trips
/// of a player far away.
const PATIENCE: Duration = Duration::from_secs(1);

impl ServerMachine {
    /// Makes room for a handshake from this prefix, when there is none. Who has the key can fill all places
    /// with handshakes that he never completes, and an honest client completes its own in a round trip. So
    /// the prefix with the most gives one up for one with fewer; of equals, who has waited long enough.
    pub(super) fn make_room(&mut self, now: Instant, prefix: Prefix) {
        let mine = self.prefixes.get(&prefix).map_or(0, |share| share.handshakes);
        let greediest = self.prefixes.iter().max_by_key(|(_, share)| share.handshakes);
        let greediest = greediest.filter(|(_, share)| share.handshakes > mine + 1);
        let greediest = greediest.map(|(&prefix, _)| prefix);
        let found = self.begun.iter().position(|&(began, id)| {
            let slot = self.slots.get(id).filter(|slot| slot.is_handshake);
            slot.is_some_and(|slot| match greediest {
                Some(greediest) => slot.prefix == greediest,
                None => now.since(began) >= PATIENCE,
            })
        });
        if let Some((_, id)) = found.and_then(|at| self.begun.remove(at)) {
            if let Some(connection) = self.slots.connection_mut(id) {
                connection.end(ConnectionNews::Silence, CloseReason::NoAnswer);
            }
            self.refresh(id);
        }
    }

    /// Forgets handshakes that are over, so that the line is not longer than those in progress twice over.
    pub(super) fn shorten_line(&mut self) {
        if self.begun.len() > 64 + 2 * self.handshakes {
            let slots = &self.slots;
            let is_handshake = |id| slots.get(id).is_some_and(|slot| slot.is_handshake);
            self.begun.retain(|&(_, id)| is_handshake(id));
        }
    }
}
