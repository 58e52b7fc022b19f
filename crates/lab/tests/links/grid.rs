//! The grid, by a handful of its cells: what is measured must be right before it is compared.

use std::time::Duration;

use haulier_lab::grid::{self, Cell, Kit, Moment, Outcome, SLICES, Strategy};

fn cell(number: u32) -> Cell {
    Cell::numbered(number).unwrap()
}

/// The tuned cell of this kind, with a queue of 512 KiB.
fn deep(rate: u64, rtt: u64, loss_permille: u64) -> Cell {
    let is_it = |cell: &Cell| {
        (cell.rate_mbit, cell.rtt_ms, cell.loss_permille) == (rate, rtt, loss_permille)
            && cell.queue_bytes == 512 << 10
            && cell.burst_length == 0
    };
    Cell::tuned().find(is_it).unwrap()
}

/// Short links, long ones, good ones, bad ones, shallow queues and deep ones.
const HANDFUL: [u32; 6] = [0, 183, 410, 700, 1079, 1500];

#[test]
fn every_strategy_delivers() {
    let kit = Kit::new(1);
    for number in HANDFUL {
        for strategy in Strategy::ALL {
            let outcome = grid::run(strategy, &cell(number), 3, &kit);
            let what = format!("{} in {}: {outcome:?}", strategy.name(), cell(number));
            assert_eq!(outcome.hang, None, "{what}");
            assert!(outcome.known_after.is_some_and(|after| after >= outcome.took), "{what}");
            assert!(outcome.slices_sent >= strategy.slices(), "{what}");
            // Luck with the losses wins a little, never half.
            assert!(outcome.ratio() > 0.8, "{what}");
            assert!(outcome.peak_queue_bytes <= cell(number).queue_bytes, "{what}");
        }
    }
}

/// A seed is a run, and watching it changes nothing.
#[test]
fn a_run_can_be_replayed() {
    let kit = Kit::new(1);
    for strategy in Strategy::ALL {
        let run = |seed| grid::run(strategy, &cell(410), seed, &kit);
        let outcome = run(3);
        assert_eq!(outcome, run(3), "{}", strategy.name());
        assert_ne!(outcome.took, run(4).took, "{}", strategy.name());
        let (replayed, moments) = grid::replay(strategy, &cell(410), 3, &kit);
        assert_eq!(outcome, replayed, "{}", strategy.name());
        let last = moments.last().unwrap();
        assert_eq!(Some(last.after), outcome.known_after, "{}", strategy.name());
        assert_eq!(last.slices_sent, outcome.slices_sent, "{}", strategy.name());
        let is_in_order = |pair: &[Moment]| pair[0].after <= pair[1].after;
        assert!(moments.windows(2).all(is_in_order), "{moments:?}");
        assert!(last.is_whole && !moments[0].is_whole, "{moments:?}");
    }
}

/// 256 packets of 1088 bytes take 222.8 ms at 10 Mbit/s, and the way takes 10 ms and some jitter. A burst
/// into a queue that holds it meets the limit except for the jitter, and wastes nothing. Its packets wait
/// half of the 222.8 ms on average.
#[test]
fn a_burst_into_a_deep_queue_meets_the_limit() {
    let outcome = grid::run(Strategy::BurstResend, &deep(10, 20, 0), 0, &Kit::new(1));
    assert!((1.0..1.02).contains(&outcome.ratio()), "{outcome:?}");
    assert_eq!((outcome.slices_sent, outcome.dropped_bytes), (SLICES, 0), "{outcome:?}");
    let wait = outcome.mean_wait.as_secs_f64() * 1e3;
    assert!((105.0..115.0).contains(&wait), "{outcome:?}");
    // What left while the rest came at 1 Gbit/s: two packets and a bit.
    let peak = 256 * grid::SLICE_WIRE_BYTES;
    assert!((peak - 4 * 1088..=peak).contains(&outcome.peak_queue_bytes), "{outcome:?}");
}

/// A window of 10 that doubles: 10, 20, 40, 80 and 106 packets are five flights, of which the last is there
/// after four round trips and a half.
#[test]
fn slow_start_doubles_in_each_round_trip() {
    let outcome = grid::run(Strategy::SlowStart, &deep(100, 300, 0), 0, &Kit::new(1));
    let trips = outcome.took.as_secs_f64() / 0.3;
    assert!((4.5..4.75).contains(&trips), "{trips} round trips");
    assert_eq!(outcome.slices_sent, SLICES);
}

/// What the visit, the quiet and the handshake cost is not in the time of a warm block.
#[test]
fn a_warm_block_is_timed_alone() {
    let kit = Kit::new(1);
    let run = |strategy| grid::run(strategy, &deep(100, 300, 0), 0, &kit);
    let (warm, ticket) = (run(Strategy::Warm), run(Strategy::ColdTicket));
    assert!(warm.took < Duration::from_millis(700), "{warm:?}");
    assert!(ticket.took > Duration::from_millis(300), "{ticket:?}");
    assert!(warm.slices_sent < 2 * SLICES, "slices of the visit: {warm:?}");
    assert_eq!(ticket.limit - warm.limit, Duration::from_millis(150));
}

/// What is counted as dropped is what was sent in vain where nothing else is lost.
#[test]
fn drops_are_counted_in_bytes() {
    let shallow = cell(2 * 5 * 9 * 4);
    assert_eq!(shallow.to_string(), "cell 360: 10 Mbit/s, 20 ms, loss 0 %, queue 32 KiB");
    let outcome = grid::run(Strategy::BurstResend, &shallow, 0, &Kit::new(1));
    let Outcome { dropped_bytes, slices_sent, .. } = outcome;
    assert_eq!(dropped_bytes % grid::SLICE_WIRE_BYTES, 0);
    assert!(dropped_bytes / grid::SLICE_WIRE_BYTES >= slices_sent - SLICES - 30, "{outcome:?}");
    assert!(outcome.peak_queue_bytes > 30 << 10, "{outcome:?}");
}

/// Nothing is to be sent while the sender waits for the answer to a chunk. That the answer comes is no call
/// that came late: a late caller may send four times what the queue is known to hold.
#[test]
fn what_answers_a_chunk_does_not_flood_the_queue() {
    let outcome = grid::run(Strategy::ColdTicket, &cell(847), 0, &Kit::new(1));
    assert!(outcome.peak_queue_bytes < 40 << 10, "75 KiB, and 32 without the mistake: {outcome:?}");
}

/// 30 % are lost, so that no train is whole enough to give a rate. The resent slices have to cover that loss.
#[test]
fn losses_count_where_no_rate_is_found() {
    let outcome = grid::run(Strategy::ColdTicket, &cell(889), 1, &Kit::new(1));
    assert!(outcome.ratio() < 3.0, "3.4 with the 2 % that are assumed: {outcome:?}");
}
