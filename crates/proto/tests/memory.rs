//! The memory of connections, counted by the allocator, which requires a separate test program. It prints
//! the numbers that docs/PERFORMANCE.md quotes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test program"
)]

mod lan;

use haulier_proto::connection::{Block, Event};
use haulier_proto::internals::REQUEST_BYTES;
use haulier_proto::server::{ConnectionId, ServerEvent, ServerMachine};
use haulier_proto::{Instant, Machine};
use lan::{Lan, client_config, server_address, server_config};

/// A server and clients; every byte that the server allocates and frees is counted, and no other.
struct Counted {
    lan: Lan,
    held: i64,
    buffer: Vec<u8>,
}

impl Counted {
    fn new() -> Self {
        let mut lan = Lan::new(server_config());
        let mut held = 0;
        held += counted(|| {
            let mut config = server_config();
            // All are at one address.
            config.limits.handshakes_per_prefix = usize::MAX;
            lan.server = ServerMachine::new(lan.now, lan::UNIX_TIME, config, [9; 32]).unwrap();
        });
        Self { lan, held, buffer: Vec::with_capacity(1_300) }
    }

    /// Exchanges datagrams until none are left at this instant.
    fn settle(&mut self, world: Option<&Block>) {
        let Self { lan, held, buffer } = self;
        for _ in 0..10_000 {
            let mut is_quiet = true;
            *held += counted(|| poll_events(&mut lan.server, lan.now, world));
            loop {
                let mut to = None;
                *held += counted(|| to = lan.server.poll_datagram(lan.now, buffer));
                let Some(to) = to else { break };
                is_quiet = false;
                let n = lan.addresses.iter().position(|&address| address == to.remote).unwrap();
                let _refused = lan.clients[n].handle_datagram(lan.now, server_address(), buffer);
                while lan.clients[n].poll_event(lan.now).is_some() {}
            }
            for n in 0..lan.clients.len() {
                while lan.clients[n].poll_datagram(lan.now, buffer).is_some() {
                    is_quiet = false;
                    let (now, from) = (lan.now, lan.addresses[n]);
                    *held += counted(|| {
                        let _refused = lan.server.handle_datagram(now, from, buffer);
                        poll_events(&mut lan.server, now, world);
                    });
                }
            }
            if is_quiet {
                return;
            }
        }
        panic!("they never fall silent");
    }

    fn run(&mut self, millis: u64, step: u64) {
        for _ in 0..millis / step {
            self.lan.now = Instant::from_nanos(self.lan.now.as_nanos() + step * 1_000_000);
            self.held += counted(|| self.lan.server.handle_timeout(self.lan.now));
            for client in &mut self.lan.clients {
                client.handle_timeout(self.lan.now);
            }
            self.settle(None);
        }
    }
}

fn counted(mut act: impl FnMut()) -> i64 {
    allocation_counter::measure(&mut act).bytes_current
}

fn poll_events(server: &mut ServerMachine, now: Instant, world: Option<&Block>) {
    while let Some((id, event)) = server.poll_event(now) {
        if let (ServerEvent::Connecting { .. }, Some(world)) = (event, world) {
            server.connection_mut(id).unwrap().send_block(now, world).unwrap();
        }
    }
}

/// Memory that AWS-LC allocates in C, which is not counted: two key schedules of some 600 bytes.
const IN_C: i64 = 1_264;

/// Ten thousand idle players: at most 4 KiB each, and 128 MiB in all.
#[test]
fn idle_connections_are_small() {
    let mut room = Counted::new();
    for _ in 0..10_000 {
        room.lan.add(client_config());
    }
    let mut request = Vec::with_capacity(REQUEST_BYTES);
    let mut answer = Vec::with_capacity(REQUEST_BYTES);
    let Counted { lan, held, .. } = &mut room;
    for n in 0..10_000 {
        assert!(lan.clients[n].poll_datagram(lan.now, &mut request).is_some());
        let (now, from) = (lan.now, lan.addresses[n]);
        *held += counted(|| lan.server.handle_datagram(now, from, &mut request).unwrap());
        *held += counted(|| poll_events(&mut lan.server, lan.now, None));
        let mut answered = true;
        while answered {
            *held += counted(|| {
                answered = lan.server.poll_datagram(now, &mut answer).is_some();
            });
            if answered {
                let _refused = lan.clients[n].handle_datagram(now, server_address(), &mut answer);
            }
        }
        while lan.clients[n].poll_datagram(now, &mut request).is_some() {
            *held += counted(|| lan.server.handle_datagram(now, from, &mut request).unwrap());
            *held += counted(|| poll_events(&mut lan.server, lan.now, None));
        }
    }
    *held += counted(|| while lan.server.poll_datagram(lan.now, &mut answer).is_some() {});
    *held += counted(|| poll_events(&mut lan.server, lan.now, None));
    assert_eq!(lan.server.stats().connections, 10_000);
    assert_eq!(lan.server.stats().handshakes, 0, "all have proven their address");
    let each = *held / 10_000 + IN_C;
    let all = (*held + 10_000 * IN_C) as f64 / f64::from(1 << 20);
    println!("10,000 idle connections: {each} bytes each, {all:.1} MiB");
    assert!(each <= 3_920, "{each} bytes for an idle connection");
    assert!(all <= 128.0);
}

/// The memory of a handshake that is never completed, with the world begun to its client. The default of
/// `ServerLimits::handshakes` is the maximum number of such handshakes.
#[test]
fn handshakes_in_progress_are_small() {
    let world = Block::new(1, vec![7; 1 << 20]);
    let mut room = Counted::new();
    let (mut request, mut answer) = (Vec::with_capacity(1_300), Vec::with_capacity(1_300));
    for n in 0..1_000 {
        room.lan.add(client_config());
        let Counted { lan, held, .. } = &mut room;
        while lan.clients[n].poll_datagram(lan.now, &mut request).is_some() {
            let (now, from) = (lan.now, lan.addresses[n]);
            *held += counted(|| {
                lan.server.handle_datagram(now, from, &mut request).unwrap();
                poll_events(&mut lan.server, now, Some(&world));
                while lan.server.poll_datagram(now, &mut answer).is_some() {}
            });
        }
    }
    assert_eq!(room.lan.server.stats().handshakes, 1_000);
    let each = room.held / 1_000 + IN_C;
    println!("1,000 handshakes in progress: {each} bytes each");
    assert!(each <= 16 << 10, "{each} bytes for a handshake");
}

/// The memory of a client that received the world and was then idle for a minute: the lists of datagrams in
/// flight, of events and of what was sent are freed. They are so many that what a server has for all hardly
/// counts.
#[test]
fn connections_are_small_again_after_a_block() {
    let world = Block::new(1, vec![7; 256 << 10]);
    // Once per process: 9 MB of tables.
    haulier_proto::prepare();
    let mut room = Counted::new();
    let empty = room.held;
    for _ in 0..100 {
        room.lan.add(client_config());
    }
    room.settle(Some(&world));
    let active = (room.held - empty) / 100 + IN_C;
    room.run(4_000, 2);
    assert_eq!(room.lan.server.stats().handshakes, 0);
    room.run(60_000, 500);
    // The repair slices belong to the block, and are freed with it.
    drop(world);
    let ids: Vec<_> = room.lan.server.connections().collect();
    let repairs = |id: &ConnectionId| {
        room.lan.server.connection(*id).map_or(0, |it| it.stats().repair_slices_sent)
    };
    let is_repaired = ids.iter().map(repairs).sum::<u64>() > 0;
    let common = if is_repaired { 256 << 10 } else { 0 };
    let after = (room.held - empty - common) / 100 + IN_C;
    println!("a client in the middle of a block: {active} bytes; a minute later: {after}");
    assert!(after <= 4_096, "{after} bytes for a connection that got its block");
    assert!(active <= 64 << 10, "{active} bytes for a connection in a block");
}

/// A forged first message only increments a counter: nothing is allocated.
#[test]
fn forged_requests_take_no_memory() {
    let mut lan = Lan::new(server_config());
    // The budget for refusals is used up first, because refusals allocate.
    lan.server = {
        let mut config = server_config();
        config.limits.answers_per_second = 0;
        ServerMachine::new(lan.now, lan::UNIX_TIME, config, [1; 32]).unwrap()
    };
    let n = lan.add(client_config());
    let mut request = Vec::new();
    assert!(lan.clients[n].poll_datagram(lan.now, &mut request).is_some());
    let mut forged = Vec::with_capacity(REQUEST_BYTES);
    let counted = allocation_counter::measure(|| {
        for at in 3..1_000 {
            forged.clear();
            forged.extend_from_slice(&request);
            forged[at] ^= 0x55;
            assert!(lan.server.handle_datagram(lan.now, server_address(), &mut forged).is_err());
        }
    });
    assert_eq!(counted.count_total, 0, "allocations for a thousand forged requests");
}

/// A block being sent is shared: a hundred clients of one world need a hundred windows, not a hundred
/// worlds.
#[test]
fn a_block_is_held_once_for_all_clients() {
    let world = Block::new(1, vec![7; 256 << 10]);
    let mut lan = Lan::new(server_config());
    (0..8).for_each(|_| {
        lan.add(client_config());
    });
    lan.settle();
    let ids: Vec<_> = lan.server.connections().collect();
    let counted = allocation_counter::measure(|| {
        for &id in &ids {
            lan.server.connection_mut(id).unwrap().send_block(lan.now, &world).unwrap();
        }
    });
    let each = counted.bytes_current / ids.len() as i64;
    println!("a block being sent: {each} bytes for each client");
    assert!(each < 16 << 10, "{each} bytes for each client of one world");
    lan.run(3_000);
    for events in &lan.client_events {
        assert!(events.iter().any(|event| matches!(event, Event::Block { .. })));
    }
}
