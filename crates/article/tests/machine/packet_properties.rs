//! Properties of the packet layer: random losses, orders and copies against trivial models.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use haulier_article::ack::{AckBits, PacketFate, ReceivedPackets, SentPackets};
use haulier_article::congestion::{CongestionController, CongestionMode, GoodBad, GoodBadConfig};
use haulier_article::fragment::{
    Fragment, FragmentPool, FragmentPoolConfig, Reassembler, ReassemblyError, split,
};
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::numbered::NumberedPacket;
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{
    Instant, PacketDropReason, RttEstimator, Sequence, Sequence32, SequenceNumber,
};
use proptest::prelude::*;

use crate::support::{data, framed, ms};

/// The article's rule for good and bad mode, counted in steps as `vectors/README.md` words it.
#[derive(Debug)]
struct StepModel {
    mode: CongestionMode,
    recovery: u32,
    good_steps: u32,
    lasted: bool,
}

impl StepModel {
    /// One step of 100 ms; times are in steps of that length, halved exactly.
    fn step(&mut self, bad: bool) {
        match (self.mode, bad) {
            (CongestionMode::Good, true) => {
                if !self.lasted {
                    self.recovery = (self.recovery * 2).min(600 * 64);
                }
                (self.mode, self.good_steps, self.lasted) = (CongestionMode::Bad, 0, false);
            }
            (CongestionMode::Good, false) => {
                self.good_steps += 1;
                if self.good_steps.is_multiple_of(100) {
                    self.recovery = (self.recovery / 2).max(10 * 64);
                    self.lasted = true;
                }
            }
            (CongestionMode::Bad, true) => self.good_steps = 0,
            (CongestionMode::Bad, false) => {
                self.good_steps += 1;
                if self.good_steps * 64 >= self.recovery {
                    (self.mode, self.good_steps) = (CongestionMode::Good, 0);
                }
            }
        }
    }
}

fn acks_agree<S: SequenceNumber>(first: S, arrivals: &[(u16, bool)]) {
    let (mut sent, mut received) =
        (SentPackets::starting_at(first, Duration::from_secs(1)), ReceivedPackets::new());
    // By the age that a number had when it was sent: what arrived, and what was reported.
    let (mut arrived, mut acked) = (BTreeSet::new(), BTreeSet::new());
    let mut sequence_of = Vec::new();
    for (i, &(back, answers)) in arrivals.iter().enumerate() {
        sequence_of.push(sent.on_sent(ms(i as u64), 10).sequence);
        // The packet that arrives now was sent up to 60 packets ago; a copy may come again.
        let which = i.saturating_sub(usize::from(back));
        let is_new = received.check(ms(i as u64), sequence_of[which]);
        assert_eq!(is_new.is_ok(), arrived.insert(which), "{is_new:?}");
        if is_new.is_ok() {
            received.on_accepted(ms(i as u64), sequence_of[which], 10);
        }
        let acks = received.ack_bits().unwrap();
        let newest = *arrived.last().unwrap();
        assert_eq!(acks.ack, sequence_of[newest]);
        let expected: Vec<S> = (0..=32)
            .filter_map(|n| newest.checked_sub(n))
            .filter(|number| arrived.contains(number))
            .map(|number| sequence_of[number])
            .collect();
        assert_eq!(acks.sequences().collect::<Vec<_>>(), expected);
        if answers {
            for number in sent.on_ack(ms(i as u64), acks).acked() {
                let which = sequence_of.iter().rposition(|known| known == number).unwrap();
                assert!(acked.insert(which), "{which} was acked twice");
            }
        }
        sent.check_invariants();
        received.check_invariants();
    }
    assert!(acked.is_subset(&arrived), "acked, and never arrived");
    for (which, &sequence) in sequence_of.iter().enumerate().rev().take(256) {
        let expected =
            if acked.contains(&which) { PacketFate::Acked } else { PacketFate::InFlight };
        assert_eq!(sent.fate(sequence), Some(expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Whatever is lost, copied or out of order: acks say what arrived, each packet is acked at most
    /// once, with numbers of both sizes and across their wrap.
    #[test]
    fn acks_say_what_arrived(
        first in any::<u16>(),
        arrivals in prop::collection::vec((0u16..60, any::<bool>()), 1..400),
    ) {
        acks_agree(Sequence::new(first), &arrivals);
        acks_agree(Sequence32::new(u32::from(first).wrapping_sub(200)), &arrivals);
    }

    /// Packets of all sizes, their fragments in any order within a window, some twice: each is put
    /// together exactly once, and nothing is left in the pool.
    #[test]
    fn fragments_in_any_order_give_each_packet_once(
        first in any::<u16>(),
        sizes in prop::collection::vec(1usize..9_000, 1..40),
        shuffle in any::<u64>(),
    ) {
        let packets: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(i, &n)| data(i, n)).collect();
        let mut fragments = vec![];
        for (i, packet) in packets.iter().enumerate() {
            let sequence = Sequence::new(first.wrapping_add(i as u16));
            fragments.extend(split(sequence, packet).unwrap().map(|fragment| (i, fragment)));
        }
        let copies: Vec<_> = fragments.iter().step_by(3).copied().collect();
        fragments.extend(copies);
        let mut state = shuffle;
        for at in (1..fragments.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            fragments.swap(at, (state >> 33) as usize % (at + 1));
        }
        let (mut pool, mut peer) = (FragmentPool::default(), Reassembler::new());
        let mut whole = HashMap::new();
        for (i, fragment) in fragments {
            match peer.handle_fragment(Instant::ZERO, &fragment, &mut pool) {
                Ok(Some(packet)) => {
                    prop_assert_eq!(packet, &packets[i]);
                    prop_assert!(whole.insert(i, ()).is_none(), "packet {} twice", i);
                }
                Ok(None) => {}
                Err(reason) => prop_assert_eq!(reason, ReassemblyError::Duplicate),
            }
            pool.check_invariants();
        }
        prop_assert_eq!(whole.len(), packets.len());
        prop_assert_eq!(pool.stats().used_bytes, 0);
    }

    /// Any fragments of any peers at any times: the caps hold, the books balance, and when all peers have
    /// left nothing is held.
    #[test]
    fn a_pool_keeps_its_caps(
        steps in prop::collection::vec((0usize..6, any::<u16>(), 0usize..8, 1usize..9, 0u64..400), 1..600),
    ) {
        let config = FragmentPoolConfig::default()
            .with_max_fragments(8)
            .with_max_bytes_per_peer(12_000)
            .with_max_bytes(30_000);
        let mut pool = FragmentPool::new(config).unwrap();
        let mut peers: Vec<Reassembler> = (0..6).map(|_| Reassembler::new()).collect();
        let block = [1; 1024];
        let mut now = Instant::ZERO;
        for (peer, sequence, index, count, wait) in steps {
            now = now + Duration::from_millis(wait);
            // Mostly numbers near each other, so that packets fill.
            let sequence = if sequence % 9 == 0 { sequence } else { sequence % 12 };
            let fragment = Fragment::new(Sequence::new(sequence), index, count, &block);
            if let Ok(fragment) = fragment {
                let _refused = peers[peer].handle_fragment(now, &fragment, &mut pool);
            }
            pool.check_invariants();
            peers[peer].check_invariants();
        }
        peers.iter_mut().for_each(|peer| peer.clear(&mut pool));
        pool.check_invariants();
        prop_assert_eq!((pool.stats().used_bytes, pool.stats().peers), (0, 0));
    }

    /// Every header there is comes back as it was written.
    #[test]
    fn headers_come_back(
        sequence in any::<u16>(),
        acks in prop::option::of((any::<u16>(), any::<u32>())),
        payload in prop::collection::vec(any::<u8>(), 0..1_180),
    ) {
        let acks = acks.map(|(ack, bits)| AckBits { ack: Sequence::new(ack), bits });
        let sequence = Sequence::new(sequence);
        let mut packets = vec![NumberedPacket::Payload { sequence, acks, payload: &payload }];
        packets.extend(acks.map(NumberedPacket::Ack));
        for packet in packets {
            let bytes = framed(packet, ProtocolId::PACKETS);
            prop_assert_eq!(packet::read(ProtocolId::PACKETS, &bytes), Ok(packet));
            let as_fragment = packet::read::<FragmentPacket<'_>>(ProtocolId::PACKETS, &bytes);
            prop_assert_eq!(as_fragment, Err(PacketDropReason::BadType));
        }
    }

    /// The controller, which counts time, against the rule in steps.
    #[test]
    fn good_and_bad_mode_follow_the_rule_in_steps(
        stretches in prop::collection::vec((any::<bool>(), 1u32..350), 1..30),
    ) {
        let mut controller = GoodBad::started_at(GoodBadConfig::default(), Instant::ZERO);
        let mut model =
            StepModel { mode: CongestionMode::Good, recovery: 40 * 64, good_steps: 0, lasted: false };
        let mut now = 0;
        for (bad, steps) in stretches {
            // Bad stretches are short, or nothing else would ever happen.
            for _ in 0..if bad { steps / 40 + 1 } else { steps } {
                now += 100;
                let rtt = Duration::from_millis(if bad { 251 } else { 250 });
                controller.on_conditions(ms(now), rtt);
                model.step(bad);
                prop_assert_eq!(controller.mode(), model.mode, "at {} ms", now);
                let recovery = Duration::from_millis(100) * model.recovery / 64;
                prop_assert_eq!(controller.recovery(), recovery, "at {} ms", now);
            }
        }
    }

    /// The smoothed value lies between the smallest and the largest sample, and never below the minimum.
    #[test]
    fn rtt_values_stay_among_the_samples(
        samples in prop::collection::vec((1u64..5_000, 0u64..100), 1..50),
    ) {
        let mut rtt = RttEstimator::new();
        let mut seen: BTreeMap<u64, ()> = BTreeMap::new();
        for (sample, delay) in samples {
            rtt.on_sample(Duration::from_millis(sample), Duration::from_millis(delay));
            seen.insert(sample, ());
            let (min, max) = (*seen.keys().next().unwrap(), *seen.keys().last().unwrap());
            let range = Duration::from_millis(min)..=Duration::from_millis(max);
            prop_assert_eq!(rtt.min_rtt(), Some(Duration::from_millis(min)));
            prop_assert_eq!(rtt.latest_rtt(), Some(Duration::from_millis(sample)));
            prop_assert!(range.contains(&rtt.smoothed_rtt().unwrap()));
            prop_assert!(rtt.rttvar().unwrap() <= Duration::from_millis(max));
        }
    }
}
