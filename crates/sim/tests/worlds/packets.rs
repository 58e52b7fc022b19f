//! The packet layer in the world: a server under a fragment bomb.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use haulier_article::congestion::GoodBadConfig;
use haulier_article::endpoint::{Endpoint, EndpointConfig};
use haulier_article::fragment::{Fragment, FragmentPool, FragmentPoolConfig};
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::{self, ProtocolId};
use haulier_article::time::earliest;
use haulier_article::{
    ArticleConfig, Batch, FourTuple, Instant, MAX_PACKET_BYTES, Machine, Sequence,
};
use haulier_sim::attack::{Attacker, Mind};
use haulier_sim::hosts::ArticleHost;
use haulier_sim::hosts::game::{GamePackets, Traffic};
use haulier_sim::{Access, Host, LinkConfig, Probability, Rng, Shot, World, address};

const HOSTILE_PACKETS: u64 = 1_000_000;
const SECONDS: u64 = 10;

/// Hostile fragments a tick of 1 ms, of all attackers together.
const PER_TICK: u64 = HOSTILE_PACKETS / (SECONDS * 1_000);

const SERVER: u32 = 1;

/// One endpoint for each address it receives from, and one pool for all.
struct Server {
    pool: FragmentPool,
    endpoints: BTreeMap<SocketAddr, Endpoint>,
    /// Payloads accepted, by sender: whole packets and fragmented ones.
    accepted: BTreeMap<SocketAddr, (u64, u64)>,
    hostile: u64,
}

impl Host for Server {}

impl Machine for Server {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        let new = || Endpoint::new(EndpointConfig::default()).unwrap();
        let endpoint = self.endpoints.entry(path.remote).or_insert_with(new);
        self.hostile += u64::from(datagram.get(20) == Some(&0xee));
        if let Ok(Some(delivery)) = endpoint.handle_datagram(now, datagram, &mut self.pool) {
            let bytes = delivery.accept().len();
            let (whole, fragmented) = self.accepted.entry(path.remote).or_default();
            *(if bytes > 1_200 { fragmented } else { whole }) += 1;
        }
        while endpoint.poll_event().is_some() {}
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoints.values_mut().for_each(|endpoint| endpoint.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        for (&to, end) in &mut self.endpoints {
            end.poll_transmit(now, to.into(), batch);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoints.values().map(Endpoint::poll_timeout).fold(None, earliest)
    }
}

/// Fragments of packets that are never whole.
struct Bomber {
    rng: Rng,
    next: Instant,
    per_tick: u64,
    sent: u64,
}

impl Bomber {
    fn new(seed: u64, per_tick: u64) -> Self {
        Self { rng: Rng::new(seed), next: Instant::ZERO, per_tick, sent: 0 }
    }

    /// A fragment of the shape that holds the most memory; its number goes on slowly, so that 256 packets
    /// fill, and now and then jumps.
    fn fragment(&mut self) -> Vec<u8> {
        let sequence = match self.rng.below(1_000) {
            0 => self.rng.below(65_536) as u16,
            _ => (self.sent / 255) as u16,
        };
        let count = if self.rng.below(10) == 0 { 2 + self.rng.below(255) as usize } else { 256 };
        let index = (self.sent as usize % 255).min(count - 2);
        let fragment = Fragment::new(Sequence::new(sequence), index, count, &[0xee; 1024]).unwrap();
        let mut datagram = vec![0; MAX_PACKET_BYTES];
        let packet = FragmentPacket(fragment);
        let length = packet::write(packet, ProtocolId::PACKETS, &mut datagram).unwrap();
        datagram.truncate(length);
        self.sent += 1;
        datagram
    }
}

impl Mind for Bomber {
    fn wakes_at(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn wake(&mut self, now: Instant, out: &mut Vec<Shot>) {
        self.next = now + Duration::from_millis(1);
        out.extend((0..self.per_tick).map(|_| Shot::own(address(SERVER), self.fragment())));
    }
}

/// 60 packets a second, of which one in four is cut into fragments.
fn honest(seed: u64) -> ArticleHost {
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
    ArticleHost::new(ArticleConfig::default(), address(SERVER), ()).with_packets(game)
}

/// "Can I crash the server this way?" A million hostile fragments in ten seconds, 0.8 Gbit/s, from ten
/// peers at once, beside four honest players.
#[test]
fn a_million_hostile_fragments_do_not_touch_the_honest_players() {
    let config = FragmentPoolConfig::default().with_max_bytes(4 << 20);
    let mut world = World::new(11);
    let server = Server {
        pool: FragmentPool::new(config).unwrap(),
        endpoints: BTreeMap::new(),
        accepted: BTreeMap::new(),
        hostile: 0,
    };
    let server = world.add(server, address(SERVER), &Access::default());
    let jittery = Access::from(LinkConfig {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(10),
        reorder: true,
        ..LinkConfig::default()
    });
    let players =
        [1, 2, 3, 4].map(|seed| world.add(honest(seed.into()), address(10 + seed), &jittery));
    for seed in 100..110 {
        let bomber = Attacker::new(Bomber::new(seed.into(), PER_TICK / 10));
        world.add(bomber, address(seed), &jittery);
    }
    world.run_to(Instant::from_millis(SECONDS * 1_000 + 100));

    let state = world.host(server);
    let stats = state.pool.stats();
    println!("{} hostile packets; {stats:?}", state.hostile);
    assert!(state.hostile >= HOSTILE_PACKETS, "{} hostile packets", state.hostile);
    state.pool.check_invariants();
    assert!(stats.peak_bytes <= config.max_bytes, "{} bytes held", stats.peak_bytes);
    assert!(stats.peak_bytes > config.max_bytes * 9 / 10, "the cap was never reached");
    assert!(stats.evicted_for_own_peer > 500, "{stats:?}");
    for player in players {
        let game = world.host(player).game();
        let (whole, fragmented) = state.accepted[&world.address(player)];
        println!("player: {} sent, {whole} whole and {fragmented} put together", game.sent.len());
        assert!(fragmented > 100, "{fragmented}");
        assert_eq!(whole + fragmented, game.sent.len() as u64, "not all arrived");
        assert_eq!(game.wrong, None);
        assert_eq!(game.endpoint.stats().packets_lost, 0);
    }
}

/// The attacker spoofs the address of a player and knows the protocol id. This wire cannot distinguish
/// the two, so packets of fragments suffer; those that are whole do not, and once it is over all is well.
#[test]
fn a_spoofed_bomb_harms_fragments_of_that_player_only_while_it_lasts() {
    let mut pool = FragmentPool::default();
    let mut server = Endpoint::new(EndpointConfig::default()).unwrap();
    let mut player = Endpoint::new(EndpointConfig::default()).unwrap();
    let mut hostile = Bomber::new(5, 0);
    let mut datagram = Vec::new();
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
            accept(&hostile.fragment());
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
