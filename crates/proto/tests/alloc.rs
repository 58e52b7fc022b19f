//! No request of an unknown client allocates, and no datagram of a connection does. Allocations are counted
//! for the whole process, which requires a separate test program.

#![allow(clippy::unwrap_used, reason = "a test program")]

mod lan;

use std::collections::VecDeque;

use bytes::Bytes;
use haulier_proto::client::ClientMachine;
use haulier_proto::connection::{Block, Event, Suite};
use haulier_proto::credentials::{Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::internals::{
    AeadKey, CookieKey, Entropy, RequestKeys, ResetKey, open_check, open_tag,
};
use haulier_proto::server::ServerMachine;
use haulier_proto::{Batch, Instant, Machine};
use lan::{Lan, address, client_config, server_address, server_config};

/// A stranger can request each of these at any rate, and every datagram needs one of them.
#[test]
fn seals_and_checks_do_not_allocate() {
    let secret = Secret::from_bytes([1; 32]);
    let keys = [Suite::ChaCha20Poly1305, Suite::Aes256Gcm].map(|s| AeadKey::new(&secret, s));
    let (cookies, resets) = (CookieKey::new(secret.clone()), ResetKey::derived(&secret));
    let (mut datagram, address) = ([5; 1184], ([127, 0, 0, 1], 4000).into());
    let counted = allocation_counter::measure(|| {
        for key in keys.iter().flatten() {
            let tag = key.seal(1, b"head", &mut datagram).unwrap();
            key.open(1, b"head", &mut datagram, &tag).unwrap();
            assert!(key.open(2, b"head", &mut datagram, &tag).is_err());
        }
        let requests = RequestKeys::new(&secret, 1);
        let cookie = cookies.make(1, [0; 8], address);
        assert!(cookies.verify(1, [0; 8], address, &cookie));
        let id = resets.id(Entropy::new([0; 32]).bytes());
        assert!(resets.is_own_id(id));
        let _bytes = (resets.reset_token(id), requests.check(&datagram));
        let _bytes = (open_check(1, &datagram), open_tag(1, id, &datagram));
    });
    assert_eq!(counted.count_total, 0);
}

/// A forged token costs the server no memory.
#[test]
fn a_forged_token_takes_no_memory() {
    let key = TokenKey { id: 1, key: Secret::from_bytes([1; 32]) };
    let claims = TokenClaims::new(0, 10, TokenServers::Every).with_user_data(vec![1; 256]);
    let token = key.issue(1, &claims, Secret::from_bytes([2; 32]), [3; 24]).unwrap();
    let mut forged = token.sealed().to_vec();
    forged[200] ^= 1;
    let counted = allocation_counter::measure(|| {
        assert!(key.open(1, &forged, 5).is_err());
        assert!(key.open(2, token.sealed(), 5).is_err());
        assert!(key.open(1, token.sealed(), 10).is_err());
        assert!(key.open(1, &[b'1'; 640], 5).is_err());
    });
    assert_eq!(counted.count_total, 0);
}

/// One direction of a link: 20 ms delay, one datagram in 50 is lost, and buffers are reused.
#[derive(Default)]
struct Way {
    carried: u64,
    there: VecDeque<(Instant, Vec<u8>)>,
    free: Vec<Vec<u8>>,
}

impl Way {
    fn send(&mut self, now: Instant, machine: &mut impl Machine, batch: &mut Batch) {
        batch.clear();
        machine.poll_transmit(now, batch);
        for (_, bytes) in batch.iter() {
            self.carried += 1;
            if self.carried % 50 != 7 {
                let mut datagram = self.free.pop().unwrap_or_else(|| Vec::with_capacity(1_200));
                datagram.clear();
                datagram.extend_from_slice(bytes);
                let arrival = Instant::from_nanos(now.as_nanos() + 20_000_000);
                self.there.push_back((arrival, datagram));
            }
        }
    }

    fn next(&mut self, now: Instant) -> Option<Vec<u8>> {
        let has_arrived = self.there.front().is_some_and(|(at, _)| *at <= now);
        has_arrived.then(|| self.there.pop_front())?.map(|(_, datagram)| datagram)
    }
}

/// A server that sends a block to a client, while both send messages.
struct Room {
    now: Instant,
    server: ServerMachine,
    client: ClientMachine,
    up: Way,
    down: Way,
    batch: Batch,
    messages: u64,
}

impl Room {
    fn new() -> Self {
        let mut config = server_config();
        config.connection.max_rate_bps = 40_000_000;
        let mut lan = Lan::joined(config, client_config());
        lan.peer().send_block(&Block::new(1, vec![7; 24 << 20])).unwrap();
        let Lan { now, server, mut clients, .. } = lan;
        let (up, down) = (Way::default(), Way::default());
        Self {
            now,
            server,
            client: clients.remove(0),
            up,
            down,
            batch: Batch::new(64),
            messages: 0,
        }
    }

    /// The number of datagrams that were carried, and of messages delivered plus repair slices sent.
    fn carried(&self) -> (u64, u64) {
        let id = self.server.connections().next().unwrap();
        let repairs = self.server.connection(id).unwrap().stats().repair_slices_sent;
        (self.up.carried + self.down.carried, self.messages + repairs)
    }

    fn run(&mut self, millis: u64) {
        static MESSAGE: &[u8] = &[1; 40];
        let Self { now, server, client, up, down, batch, messages } = self;
        let id = server.connections().next().unwrap();
        for _ in 0..millis {
            *now = Instant::from_nanos(now.as_nanos() + 1_000_000);
            server.handle_timeout(*now);
            client.handle_timeout(*now);
            let connection = server.connection_mut(id).unwrap();
            let _full = connection.send_message(Bytes::from_static(MESSAGE));
            let connection = client.connection_mut().unwrap();
            let _full = connection.send_message(Bytes::from_static(MESSAGE));
            while let Some(mut datagram) = up.next(*now) {
                let _refused = server.handle_datagram(*now, address(0), &mut datagram);
                up.free.push(datagram);
            }
            while let Some(mut datagram) = down.next(*now) {
                let _refused = client.handle_datagram(*now, server_address(), &mut datagram);
                down.free.push(datagram);
            }
            while server.poll_event(*now).is_some() {
                *messages += 1;
            }
            while let Some(event) = client.poll_event(*now) {
                *messages += u64::from(matches!(event, Event::Message { .. }));
            }
            down.send(*now, server, batch);
            up.send(*now, client, batch);
        }
    }
}

/// A connection in the middle of a block, with acks, slices, losses, and messages in both directions.
/// Delivered data allocates: once for each message and each repair slice, and a few times for a growing
/// chunk. Beyond that a datagram allocates nothing: a list of its contents would be one allocation more for
/// each.
#[test]
fn a_datagram_of_a_connection_takes_no_memory() {
    let mut room = Room::new();
    room.run(2_000);
    let before = room.carried();
    let counted = allocation_counter::measure(|| room.run(1_000));
    let after = room.carried();
    let (datagrams, delivered) = (after.0 - before.0, after.1 - before.1);
    let beyond = counted.count_total.saturating_sub(delivered);
    assert!(room.client.connection().unwrap().receiving().is_some(), "the block is not complete");
    println!(
        "{beyond} allocations for {datagrams} datagrams, beside {delivered} for what they held"
    );
    assert!(datagrams > 5_000 && beyond < datagrams / 8, "{beyond} for {datagrams}");
}
