//! The packet layer in the world: a server under a fragment bomb.

#![allow(clippy::unwrap_used, reason = "a test program")]

use std::collections::BTreeMap;
use std::time::Duration;

use haulier_article::congestion::GoodBadConfig;
use haulier_article::endpoint::{Endpoint, EndpointConfig};
use haulier_article::fragment::{Fragment, FragmentPool, FragmentPoolConfig};
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::{self, ProtocolId};
use haulier_article::time::earliest;
use haulier_article::{Instant, MAX_PACKET_BYTES, Sequence};
use haulier_sim::game::{GamePackets, Traffic};
use haulier_sim::{LinkConfig, Node, NodeId, Probability, Rng, World};

const HOSTILE_PACKETS: u64 = 1_000_000;
const SECONDS: u64 = 10;

/// Hostile fragments a tick of 1 ms, of all attackers together.
const PER_TICK: u64 = HOSTILE_PACKETS / (SECONDS * 1_000);

enum Role {
    /// One endpoint for each address it hears from, and one pool for all.
    Server(Box<Server>),
    /// 60 packets a second, of which one in four is cut into fragments.
    Honest(Box<GamePackets>),
    /// Fragments of packets that are never whole.
    Attacker(Box<Attacker>),
}

struct Server {
    pool: FragmentPool,
    endpoints: BTreeMap<NodeId, Endpoint>,
    /// Payloads accepted, by who sent them: whole packets and fragmented ones.
    accepted: BTreeMap<NodeId, (u64, u64)>,
    hostile: u64,
}

struct Attacker {
    rng: Rng,
    next: Instant,
    left_in_tick: u64,
    per_tick: u64,
    sent: u64,
}

impl Attacker {
    /// A fragment of the shape that holds the most memory; its number goes on slowly, so that 256 packets
    /// fill, and now and then jumps.
    fn fragment(&mut self, datagram: &mut Vec<u8>) {
        let sequence = match self.rng.below(1_000) {
            0 => self.rng.below(65_536) as u16,
            _ => (self.sent / 255) as u16,
        };
        let count = if self.rng.below(10) == 0 { 2 + self.rng.below(255) as usize } else { 256 };
        let index = (self.sent as usize % 255).min(count - 2);
        let fragment = Fragment::new(Sequence::new(sequence), index, count, &[0xee; 1024]).unwrap();
        datagram.resize(MAX_PACKET_BYTES, 0);
        let length =
            packet::write(FragmentPacket(fragment), ProtocolId::PACKETS, datagram).unwrap();
        datagram.truncate(length);
        self.sent += 1;
    }
}

struct TestNode {
    role: Role,
    remote: Option<NodeId>,
}

impl Node for TestNode {
    fn handle_link(&mut self, to: NodeId) {
        self.remote = Some(to);
    }

    fn handle_datagram(&mut self, now: Instant, from: NodeId, datagram: &[u8]) {
        match &mut self.role {
            Role::Server(server) => {
                let endpoint = server
                    .endpoints
                    .entry(from)
                    .or_insert_with(|| Endpoint::new(EndpointConfig::default()).unwrap());
                server.hostile += u64::from(datagram.get(20) == Some(&0xee));
                let delivery = endpoint.handle_datagram(now, datagram, &mut server.pool);
                if let Ok(Some(delivery)) = delivery {
                    let bytes = delivery.accept().len();
                    let (whole, fragmented) = server.accepted.entry(from).or_default();
                    *(if bytes > 1_200 { fragmented } else { whole }) += 1;
                }
                while endpoint.poll_event().is_some() {}
            }
            Role::Honest(game) => drop(game.handle_datagram(now, datagram)),
            Role::Attacker(_) => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match &mut self.role {
            Role::Server(server) => {
                server.endpoints.values_mut().for_each(|endpoint| endpoint.handle_timeout(now));
            }
            Role::Honest(game) => game.handle_timeout(now),
            Role::Attacker(attacker) => {
                attacker.next = now + Duration::from_millis(1);
                attacker.left_in_tick = attacker.per_tick;
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<NodeId> {
        match &mut self.role {
            Role::Server(server) => server
                .endpoints
                .iter_mut()
                .find_map(|(&to, end)| end.poll_datagram(now, datagram).then_some(to)),
            Role::Honest(game) => game.poll_datagram(now, datagram).then_some(self.remote?),
            Role::Attacker(attacker) => {
                attacker.left_in_tick = attacker.left_in_tick.checked_sub(1)?;
                attacker.fragment(datagram);
                self.remote
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.role {
            Role::Server(server) => {
                server.endpoints.values().map(Endpoint::poll_timeout).fold(None, earliest)
            }
            Role::Honest(game) => game.poll_timeout(),
            Role::Attacker(attacker) => Some(attacker.next),
        }
    }
}

fn honest(seed: u64) -> TestNode {
    let traffic = Traffic {
        interval: Some(Duration::from_nanos(16_666_667)),
        starts: Instant::from_millis(seed),
        ends: Some(Instant::from_millis(SECONDS * 1_000 - 500)),
        bytes: (100, 600),
        large: Probability::percent(25),
        large_bytes: (2_000, 6_000),
        refuse: Probability::NEVER,
    };
    let game = GamePackets::new(
        EndpointConfig::default(),
        GoodBadConfig::default(),
        FragmentPoolConfig::default(),
        traffic,
        seed,
    );
    TestNode { role: Role::Honest(Box::new(game)), remote: None }
}

fn attacker(seed: u64, per_tick: u64) -> TestNode {
    let attacker =
        Attacker { rng: Rng::new(seed), next: Instant::ZERO, left_in_tick: 0, per_tick, sent: 0 };
    TestNode { role: Role::Attacker(Box::new(attacker)), remote: None }
}

/// "Can I crash the server this way?" A million hostile fragments in ten seconds, 0.8 Gbit/s, from ten
/// peers at once, beside four honest players.
#[test]
fn a_million_hostile_fragments_do_not_touch_the_honest_players() {
    let config = FragmentPoolConfig { max_bytes: 4 << 20, ..FragmentPoolConfig::default() };
    let mut world = World::new(11);
    let server = world.add(TestNode {
        role: Role::Server(Box::new(Server {
            pool: FragmentPool::new(config).unwrap(),
            endpoints: BTreeMap::new(),
            accepted: BTreeMap::new(),
            hostile: 0,
        })),
        remote: None,
    });
    let players: Vec<NodeId> = (1..=4).map(|seed| world.add(honest(seed))).collect();
    let attackers: Vec<NodeId> =
        (0..10).map(|seed| world.add(attacker(100 + seed, PER_TICK / 10))).collect();
    let jittery = LinkConfig {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(10),
        reorder: true,
        ..LinkConfig::default()
    };
    for &node in players.iter().chain(&attackers) {
        world.connect(node, server, &jittery);
    }
    world.run_to(Instant::from_millis(SECONDS * 1_000 + 100));

    let Role::Server(state) = &world.node(server).role else { unreachable!() };
    let stats = state.pool.stats();
    println!("{} hostile packets; {stats:?}", state.hostile);
    assert!(state.hostile >= HOSTILE_PACKETS, "{} hostile packets", state.hostile);
    state.pool.check_invariants();
    assert!(stats.peak_bytes <= config.max_bytes, "{} bytes held", stats.peak_bytes);
    assert!(stats.peak_bytes > config.max_bytes * 9 / 10, "the cap was never reached");
    assert!(stats.evicted_for_own_peer > 500, "{stats:?}");
    for player in players {
        let Role::Honest(game) = &world.node(player).role else { unreachable!() };
        let (whole, fragmented) = state.accepted[&player];
        println!("player: {} sent, {whole} whole and {fragmented} put together", game.sent.len());
        assert!(fragmented > 100, "{fragmented}");
        assert_eq!(whole + fragmented, game.sent.len() as u64, "not all arrived");
        assert_eq!(game.wrong, None);
        assert_eq!(game.endpoint.stats().packets_lost, 0);
    }
}

/// The attacker spoofs the address of a player and knows the protocol id. This wire cannot tell the two
/// apart, so packets of fragments suffer; those that are whole do not, and once it is over all is well.
#[test]
fn a_spoofed_bomb_harms_fragments_of_that_player_only_while_it_lasts() {
    let mut pool = FragmentPool::default();
    let mut server = Endpoint::new(EndpointConfig::default()).unwrap();
    let mut player = Endpoint::new(EndpointConfig::default()).unwrap();
    let mut hostile =
        Attacker { rng: Rng::new(5), next: Instant::ZERO, left_in_tick: 0, per_tick: 0, sent: 0 };
    let (mut datagram, mut forged) = (Vec::new(), Vec::new());
    // While the bomb lasts; while what it left in the window times out; after that. Sent and accepted, whole
    // and fragmented.
    let (mut sent, mut accepted) = ([[0u32; 2]; 3], [[0u32; 2]; 3]);
    for frame in 0..1_500u64 {
        let now = Instant::from_millis(frame * 1_000 / 60);
        let phase = usize::from(frame >= 600) + usize::from(frame >= 900);
        let large = usize::from(frame % 4 == 1);
        player.send(now, &vec![1; [300, 3_000][large]]).unwrap();
        sent[phase][large] += 1;
        let mut accept = |datagram: &[u8]| {
            if let Ok(Some(delivery)) = server.handle_datagram(now, datagram, &mut pool) {
                accepted[phase][usize::from(delivery.accept().len() > 1_200)] += 1;
            }
        };
        while player.poll_datagram(now, &mut datagram) {
            accept(&datagram);
        }
        for _ in 0..if phase == 0 { 300 } else { 0 } {
            hostile.fragment(&mut forged);
            accept(&forged);
        }
        while server.poll_datagram(now, &mut datagram) {
            let _ = player.handle_datagram(now, &datagram, &mut FragmentPool::default());
        }
    }
    println!("sent {sent:?}, accepted {accepted:?} [whole, fragmented]");
    assert!(pool.stats().peak_bytes <= pool.config().max_bytes_per_peer);
    for phase in 0..3 {
        assert_eq!(accepted[phase][0], sent[phase][0], "whole packets suffered");
    }
    assert!(accepted[0][1] > sent[0][1] / 2, "most fragmented packets are lost to the bomb");
    assert!(accepted[1][1] + 5 > sent[1][1], "it heals too slowly");
    assert_eq!(accepted[2], sent[2], "it does not heal");
}
