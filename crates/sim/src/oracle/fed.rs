//! What a receiver is sent, whatever it says: at most twice what reached it, and a flight.
//!
//! A receiver of a block has a link that becomes a tenth of what it was. One that says so is sent less; one
//! that goes on as before ([`Says`]) would be sent what its link took once, as would whoever shares that
//! link, and the next client at its address. The invariant: what is compared is what the server sent and
//! what came out of the link, not what anyone says.

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

/// The link before and after, with this delay each way and this queue.
const BEFORE_BPS: u64 = 50_000_000;
const AFTER_BPS: u64 = 5_000_000;
const DELAY: Duration = Duration::from_millis(30);
const QUEUE_BYTES: u64 = 64 << 10;

/// When it changes: the server has then sent 9,000 datagrams, and may have 65,536 in flight. And when the
/// receiver leaves: what a lie that is believed brings in that time is five times the bound.
const CHANGES: Instant = Instant::from_millis(2_500);
const LEAVES: Instant = Instant::from_millis(8_000);

/// What may be on its way: at the old rate for the second after which a sender that hears nothing sends no
/// more [H-4.5b], and a round trip.
const FLIGHT_BYTES: u64 = BEFORE_BPS / 8 * 1_060 / 1_000;

/// More than one transfer has in that time.
const BLOCK_BYTES: usize = 48 << 20;

/// When the next client comes to the address. What the server sends it in the first two round trips is at
/// most 1.5 times what it sends a client at an address that it does not know.
const NEXT_COMES: Instant = Instant::from_millis(9_000);
const LOOKED_AT: Duration = Duration::from_millis(150);
const MAX_MORE: f64 = 1.5;

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Fed {
    /// Bytes that the server sent since the link changed, and those of them that reached the receiver.
    pub sent: u64,
    /// See [`sent`](Self::sent).
    pub reached: u64,
    /// The most by which at any moment more was sent than twice what had reached it.
    pub most_beyond: u64,
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
    let fed = run(Some(says), seed);
    if fed.most_beyond > FLIGHT_BYTES {
        return Err(format!("{says:?}: {fed:?}, at most {FLIGHT_BYTES} beyond"));
    }
    // One that denies what it got may keep a window full: it is sent no more, and is no one's harm. At its
    // address the rate is known from before.
    if says.is_caught() && !fed.is_closed && fed.sent < fed.reached {
        return Ok(fed);
    }
    if fed.is_closed != says.is_caught() {
        return Err(format!("{says:?}: to be closed or not: {fed:?}"));
    }
    let usual = run(None, seed).to_the_next;
    if fed.to_the_next as f64 > MAX_MORE * usual as f64 {
        return Err(format!("{says:?}: the next client is flooded: {fed:?}, else {usual}"));
    }
    Ok(fed)
}

/// What becomes of a receiver, if there is one, and of the client after it.
fn run(says: Option<Says>, seed: u64) -> Fed {
    let (mut world, mut rng) = (World::new(seed), Rng::stream(seed, 101));
    let (server, client) = configs(Keyed::Secret, ConnectionConfig::default());
    let host = ServerHost::giving(Block::new(1, rng.bytes(BLOCK_BYTES)), server, seed);
    let server = world.add(host, address(1), &Access::default());
    let mut link = LinkConfig::new(BEFORE_BPS, DELAY).with_queue(QUEUE_BYTES);
    link.rate_changes = vec![RateChange { at: CHANGES, rate_bps: AFTER_BPS }];
    let heard = Rc::new(RefCell::new(Heard::default()));
    if let Some(says) = says {
        let turn = Turn { changes: CHANGES, leaves: LEAVES, before_bps: BEFORE_BPS };
        let receiver = Receiver::new((says, turn), rng, heard.clone());
        world.add(Attacker::new(receiver), neighbour(5_000), &link.clone().into());
    }
    let sent = |world: &World| world.host(server).server.stats().bytes_sent;
    world.run_to(CHANGES);
    let (sent_before, reached_before) = (sent(&world), heard.borrow().bytes);
    let mut most_beyond = 0;
    while world.now() < LEAVES {
        world.run_to(world.now() + Duration::from_millis(10));
        let reached = heard.borrow().bytes - reached_before;
        most_beyond = most_beyond.max((sent(&world) - sent_before).saturating_sub(2 * reached));
    }
    let (sent, reached) = (sent(&world) - sent_before, heard.borrow().bytes - reached_before);
    let is_closed = heard.borrow().is_closed;
    let to_the_next = next(&mut world, server, client, &link, seed);
    Fed { sent, reached, most_beyond, is_closed, to_the_next }
}

fn neighbour(port: u16) -> SocketAddr {
    let mut at = address(7);
    at.set_port(port);
    at
}

/// An honest client comes to the same address.
fn next(
    world: &mut World,
    server: HostId<ServerHost>,
    client: ClientConfig,
    link: &LinkConfig,
    seed: u64,
) -> u64 {
    // One copy: the spacing of several would show the server the link.
    let honest = ClientHost::new(Script::idle(), client.with_copies(1), NEXT_COMES, seed);
    world.add(honest, neighbour(6_000), &link.clone().into());
    world.run_to(NEXT_COMES);
    let before = world.host(server).server.stats().bytes_sent;
    world.run_to(NEXT_COMES + LOOKED_AT);
    world.host(server).server.stats().bytes_sent - before
}
