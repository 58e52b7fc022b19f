//! The bytes that a receiver is sent, whatever it reports: at most twice those that reached it, and a flight.
//!
//! A receiver of a block has a link whose rate falls to a tenth. A receiver that reports this is sent less;
//! one that reports as before ([`Says`]) would be sent what its link carried earlier, and so would the
//! clients that share the link, and the next client at its address. The invariant: the bytes that the server
//! sent are compared with the bytes that came out of the link, not with any report.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use haulier_core::Instant;
use haulier_proto::client::ClientConfig;
use haulier_proto::connection::{Block, ConnectionConfig};

use super::receiver::{Heard, Receiver, Says, Turn};
use crate::attack::Attacker;
use crate::hosts::{ClientHost, Keyed, Script, ServerHost, configs};
use crate::{Access, HostId, LinkConfig, RateChange, Rng, World, address};

/// A link whose rate falls to a tenth.
#[derive(Clone, Copy)]
struct Path {
    before_bps: u64,
    /// Each way.
    delay: Duration,
    queue_bytes: u64,
    changes: Instant,
}

/// Some hundred datagrams are in flight.
const SHORT: Path = Path {
    before_bps: 50_000_000,
    delay: Duration::from_millis(30),
    queue_bytes: 64 << 10,
    changes: Instant::from_millis(2_500),
};

/// Some thousands are in flight: on the short path a receiver that denies the newest thousand reports nothing
/// any more, and the window stays full.
const LONG: Path = Path {
    before_bps: 50_000_000,
    delay: Duration::from_millis(500),
    queue_bytes: 1 << 20,
    changes: Instant::from_millis(5_000),
};

/// The time from the change until the receiver leaves: in it a lie that is believed brings five times the
/// bound.
const LASTS: Duration = Duration::from_millis(5_500);

/// More than one transfer can send in that time.
const BLOCK_BYTES: usize = 48 << 20;

/// When the next client comes to the address. What the server sends it in the first two round trips is at
/// most 1.5 times what it sends a client at an address that it does not know.
const NEXT_COMES_AFTER: Duration = Duration::from_secs(1);
const MAX_MORE: f64 = 1.5;

/// One number of 256 is never sent, and a connection that acknowledges it is closed: of 1,000 receivers that
/// acknowledge this many numbers which never arrived, one has named no such number.
const SURELY_CAUGHT: u64 = 1_800;

impl Path {
    /// The bytes that may be in flight: those at the old rate in a round trip and in the second after which a
    /// sender without answers stops [H-4.5b].
    fn flight_bytes(self) -> u64 {
        let lasts = 1_000 + 2 * self.delay.as_millis() as u64;
        self.before_bps / 8 * lasts / 1_000
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Fed {
    /// Bytes that the server sent since the link changed, and those of them that reached the receiver.
    pub sent: u64,
    /// See [`sent`](Self::sent).
    pub reached: u64,
    /// The maximum, over all moments, of the bytes sent beyond twice those that had reached it.
    pub most_beyond: u64,
    /// The number of datagrams that the receiver has acknowledged and never got.
    pub lies: u64,
    /// The server closed the connection.
    pub is_closed: bool,
    /// Bytes that were sent to the next client at the address before its answers counted.
    pub to_the_next: u64,
}

/// Runs a receiver, and then another client at its address.
///
/// # Errors
/// How the bound was broken, or that an honest receiver was closed.
pub fn fed(says: Says, seed: u64) -> Result<Fed, String> {
    let path = if matches!(says, Says::AllButNewest(1..)) { LONG } else { SHORT };
    let (fed, flight) = (run(path, Some(says), seed), path.flight_bytes());
    if fed.most_beyond > flight {
        return Err(format!("{says:?}: {fed:?}, at most {flight} beyond"));
    }
    let is_liar = says.is_caught() && !says.finds_no_room();
    let is_as_expected = match is_liar {
        true => fed.lies > 0 && (fed.is_closed || fed.lies < SURELY_CAUGHT),
        false => fed.lies == 0 && !fed.is_closed,
    };
    if !is_as_expected {
        return Err(format!("{says:?}: to lie and to be closed, or not: {fed:?}"));
    }
    if says.finds_no_room() {
        // The server knows no more of its link than before the change.
        return Ok(fed);
    }
    let usual = run(path, None, seed).to_the_next;
    if fed.to_the_next as f64 > MAX_MORE * usual as f64 {
        return Err(format!("{says:?}: the next client is flooded: {fed:?}, else {usual}"));
    }
    Ok(fed)
}

/// What becomes of a receiver, if there is one, and of the client after it.
fn run(path: Path, says: Option<Says>, seed: u64) -> Fed {
    let (mut world, mut rng) = (World::new(seed), Rng::stream(seed, 101));
    let (server, client) = configs(Keyed::Secret, ConnectionConfig::default());
    let host = ServerHost::giving(Block::new(1, rng.bytes(BLOCK_BYTES)), server, seed);
    let server = world.add(host, address(1), &Access::default());
    let Path { before_bps, delay, queue_bytes, changes } = path;
    let leaves = changes + LASTS;
    let mut link = LinkConfig::new(before_bps, delay).with_queue(queue_bytes);
    link.rate_changes = vec![RateChange { at: changes, rate_bps: before_bps / 10 }];
    let heard = Rc::new(RefCell::new(Heard::default()));
    if let Some(says) = says {
        let turn = Turn { changes, leaves, before_bps };
        let receiver = Receiver::new((says, turn), rng, heard.clone());
        world.add(Attacker::new(receiver), neighbour(5_000), &link.clone().into());
    }
    let sent = |world: &World| world.host(server).server.stats().bytes_sent;
    world.run_to(changes);
    let (sent_before, reached_before) = (sent(&world), heard.borrow().bytes);
    let mut most_beyond = 0;
    while world.now() < leaves {
        world.run_to(world.now() + Duration::from_millis(10));
        let reached = heard.borrow().bytes - reached_before;
        most_beyond = most_beyond.max((sent(&world) - sent_before).saturating_sub(2 * reached));
    }
    let (sent, reached) = (sent(&world) - sent_before, heard.borrow().bytes - reached_before);
    let Heard { lies, is_closed, .. } = *heard.borrow();
    let to_the_next = next(&mut world, (server, client), &link, leaves + NEXT_COMES_AFTER, seed);
    Fed { sent, reached, most_beyond, lies, is_closed, to_the_next }
}

fn neighbour(port: u16) -> SocketAddr {
    let mut at = address(7);
    at.set_port(port);
    at
}

/// An honest client comes to the same address.
fn next(
    world: &mut World,
    (server, client): (HostId<ServerHost>, ClientConfig),
    link: &LinkConfig,
    comes: Instant,
    seed: u64,
) -> u64 {
    // One copy: the spacing of several would show the server the link.
    let honest = ClientHost::new(Script::idle(), client.with_copies(1), comes, seed);
    world.add(honest, neighbour(6_000), &link.clone().into());
    world.run_to(comes);
    let before = world.host(server).server.stats().bytes_sent;
    // The handshake's round trip, and one of the block's.
    world.run_to(comes + 5 * link.delay);
    world.host(server).server.stats().bytes_sent - before
}
