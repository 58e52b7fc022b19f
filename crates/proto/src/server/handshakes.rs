//! Which handshake makes room for another when there are as many as allowed.

use core::time::Duration;

use super::ServerMachine;
use super::admission::Prefix;
use crate::Instant;
use crate::connection::{CloseCode, CloseReason};

/// A handshake that is older than this may be ended to make room: three round trips of a distant player.
const MIN_AGE_TO_EVICT: Duration = Duration::from_secs(1);

impl ServerMachine {
    /// Makes room for a handshake from this prefix. An attacker with the secret can fill the server with
    /// handshakes that it never completes, while an honest client completes its own in a round trip. So the
    /// prefix with the most handshakes loses one to a prefix with fewer; among equals, the oldest handshake
    /// ends if it is a second old.
    pub(super) fn make_room(&mut self, now: Instant, prefix: Prefix) {
        let own = self.prefixes.get(&prefix).map_or(0, |share| share.handshakes);
        let largest = self.prefixes.iter().max_by_key(|(_, share)| share.handshakes);
        let largest = largest.filter(|(_, share)| share.handshakes > own + 1);
        let largest = largest.map(|(&prefix, _)| prefix);
        let found = self.started.iter().position(|&(started, id)| {
            let slot = self.slots.get(id).filter(|slot| slot.is_handshake);
            slot.is_some_and(|slot| match largest {
                Some(largest) => slot.prefix == largest,
                None => now.since(started) >= MIN_AGE_TO_EVICT,
            })
        });
        if let Some((_, id)) = found.and_then(|at| self.started.remove(at)) {
            if let Some(connection) = self.slots.connection_mut(id) {
                connection.end_silently(now, CloseReason::NoAnswer, CloseCode::RESOURCES);
            }
            self.linger(now, id);
            self.refresh(id);
        }
    }

    /// Removes finished handshakes once they are the majority of the queue.
    pub(super) fn forget_finished_handshakes(&mut self) {
        if self.started.len() > 64 + 2 * self.handshakes {
            let slots = &self.slots;
            let is_handshake = |id| slots.get(id).is_some_and(|slot| slot.is_handshake);
            self.started.retain(|&(_, id)| is_handshake(id));
        }
    }
}
