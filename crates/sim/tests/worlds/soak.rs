//! A short soak, the seeds that once failed, and the wrap of the chunk id.

use haulier_article::chunk::ChunkId;
use haulier_article::{ArticleConfig, ArticlePeer, Instant};
use haulier_sim::soak::{self, Budget, Layers, Verdict};

#[test]
fn a_short_soak_finds_nothing() {
    let report = soak::run(2, Layers::Chunks, Budget::Transfers(400), |_| true);
    for failure in &report.failures {
        println!(
            "replay: haulier-lab soak --scenario {:#018x}   ({})",
            failure.scenario, failure.what
        );
    }
    assert!(report.is_ok(), "{} hangs, {} mismatches", report.hangs, report.mismatches);
    assert!(report.transfers >= 400);
    assert!(report.restarts > 0, "some scenarios should have had to start over");
}

#[test]
fn the_same_seed_is_the_same_soak() {
    let run = |seed| soak::run(seed, Layers::Both, Budget::Transfers(40), |_| true);
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).trace_hash, run(6).trace_hash);
}

/// Both layers on one link, and the packet layer alone on links that lose 99 % and take 10 s.
#[test]
fn a_short_soak_of_the_packet_layer_finds_nothing() {
    for (layers, budget) in [(Layers::Both, 60), (Layers::Packets, 30_000)] {
        let report = soak::run(3, layers, Budget::Transfers(budget), |_| true);
        for failure in &report.failures {
            println!(
                "replay: haulier-lab soak --layers {} --scenario {:#018x}   ({})",
                layers.name(),
                failure.scenario,
                failure.what
            );
        }
        assert!(report.is_ok(), "{} hangs, {} mismatches", report.hangs, report.mismatches);
        assert!(report.packets >= 10_000, "{layers:?}: {} packets", report.packets);
    }
}

/// Whole connections: restarts, crashes and changes of address among the faults.
#[test]
fn a_short_soak_of_connections_finds_nothing() {
    let report = soak::run(4, Layers::Connection, Budget::Transfers(200), |_| true);
    for failure in &report.failures {
        let (seed, what) = (failure.scenario, &failure.what);
        println!("replay: haulier-lab soak --layers connection --scenario {seed:#018x}   ({what})");
    }
    println!("{} scenarios, {} restarts", report.scenarios, report.restarts);
    assert!(report.is_ok(), "{} hangs, {} mismatches", report.hangs, report.mismatches);
    assert!(report.restarts > 0, "some connections should have ended early");
}

/// The door: an honest client gets in beside hostile ones within the bound that CROWDS states, and within
/// 30 s once they have stopped (issue 32: never, for the line stayed full of clients that had left).
#[test]
fn an_honest_client_gets_in_whoever_is_at_the_door() {
    let report = soak::run(5, Layers::Door, Budget::Transfers(150), |_| true);
    for failure in &report.failures {
        let (seed, what) = (failure.scenario, &failure.what);
        println!("replay: haulier-lab soak --layers door --scenario {seed:#018x}   ({what})");
    }
    println!("{} joins in {} scenarios", report.transfers, report.scenarios);
    assert!(report.is_ok(), "{} hangs, {} mismatches", report.hangs, report.mismatches);
}

/// Scenarios that failed once. They stay.
#[test]
fn seeds_that_once_failed() {
    for line in include_str!("seeds.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let (Some(layers), Some(seed), story) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let layers = Layers::ALL.into_iter().find(|known| known.name() == layers).unwrap();
        let seed = u64::from_str_radix(seed.trim_start_matches("0x"), 16).unwrap();
        let outcome = soak::run_scenario(seed, layers);
        assert_eq!(outcome.verdict, Verdict::Finished, "{line}\n{story:?}");
    }
}

/// More chunks in a row than there are chunk ids.
#[test]
fn chunk_ids_wrap_in_one_run() {
    let mut config = ArticleConfig::default();
    config.sender.first_chunk_id = ChunkId::new(9);
    config.receiver.first_chunk_id = ChunkId::new(9);
    let (mut a, mut b) = (ArticlePeer::new(config.clone()), ArticlePeer::new(config));
    let mut datagram = Vec::new();
    for i in 0..70_000u64 {
        let now = Instant::from_millis(i);
        a.send_chunk(i.to_le_bytes().to_vec()).unwrap();
        while a.poll_datagram(now, &mut datagram) {
            b.handle_datagram(now, &datagram).unwrap();
        }
        assert_eq!(b.pop_chunk().unwrap()[..], i.to_le_bytes());
        while b.poll_datagram(now, &mut datagram) {
            a.handle_datagram(now, &datagram).unwrap();
        }
    }
    assert_eq!(a.sender().stats().chunks_sent, 70_000);
    assert_eq!(a.sender().next_chunk_id(), ChunkId::new((9 + 70_000u32) as u16));
}
