//! The maps of blocks on their way, which people look at: both ends, with losses, and without a bound on the
//! block.

use haulier_proto::connection::{Block, BlockMap, ChunkMap, SliceState};

use crate::lan::{Lan, Way, client_config, server_config};

fn count(chunk: &ChunkMap, state: SliceState) -> usize {
    chunk.states().filter(|it| *it == state).count()
}

fn sum(map: &BlockMap, state: SliceState) -> usize {
    map.open.iter().map(|chunk| count(chunk, state)).sum()
}

/// Every sixth datagram down is lost: a map that shows all slices as arrived would be false.
#[test]
fn a_map_shows_what_is_on_the_way_what_arrived_and_what_is_missing() {
    let mut lan = Lan::joined(server_config(), client_config());
    let world = Block::new(8, vec![5; 600_000]);
    lan.peer().set_max_rate_bps(100_000_000);
    lan.peer().send_block(&world).unwrap();
    assert_eq!(lan.client(0).receiving_map(8), None, "nothing was announced");
    let (mut sent, mut seen, mut unfinished) = (0, [0; 3], 0);
    while lan.client(0).receiving().is_none_or(|it| it.done < 400_000) {
        lan.run_with(1, |way, _| {
            sent += usize::from(way == Way::Down(0));
            way != Way::Down(0) || sent % 6 != 0
        });
        unfinished = unfinished.max(lan.client(0).unfinished_bytes());
        if let (Some(out), Some(home)) = (lan.peer().sending_map(8), lan.client(0).receiving_map(8))
        {
            assert_eq!((out.tag, out.chunks, home.tag, home.chunks), (8, 3, 8, 3));
            assert!(out.first <= home.first, "nothing is done before it is here");
            let known = sum(&out, SliceState::InFlight) + sum(&out, SliceState::Missing);
            seen[0] = seen[0].max(known);
            seen[1] = seen[1].max(sum(&home, SliceState::Missing));
            seen[2] = seen[2].max(sum(&home, SliceState::Arrived));
            for chunk in out.open.iter().chain(&home.open) {
                assert_eq!(chunk.states().count(), usize::from(chunk.slices));
            }
        }
    }
    assert!(seen.iter().all(|&most| most > 0), "{seen:?}");
    assert!((1..600_000).contains(&unfinished), "{unfinished}");
    lan.run(1000);
    assert_eq!(lan.client(0).unfinished_bytes(), 0, "all of it is verified");
    assert_eq!((lan.peer().sending_map(8), lan.client(0).receiving_map(8)), (None, None));
}

/// A viewer of a server of thousands must not make it copy all that is open.
#[test]
fn a_map_has_no_more_chunks_than_were_asked_for() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.peer().send_block(&Block::new(1, vec![5; 4 << 20])).unwrap();
    lan.run_with(40, |way, _| way != Way::Up(0));
    let whole = lan.peer().sending_map(usize::MAX).unwrap();
    let bounded = lan.peer().sending_map(1).unwrap();
    assert_eq!((bounded.open.len(), whole.open.len()), (1, whole.open_chunks));
    assert_eq!(bounded.open[0], whole.open[0]);
    assert_eq!(bounded.open_chunks, whole.open_chunks);
}

/// A connection has an age, to be shown to people.
#[test]
fn a_connection_has_an_age() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(250);
    lan.client(0).send_message("still here").unwrap();
    lan.settle();
    assert_eq!(lan.peer().age().as_millis(), 250);
}
