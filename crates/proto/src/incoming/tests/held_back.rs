//! A slow application, a sender that is gone, and the time that each is given.

use super::*;

const SECOND: u64 = 1000;

fn at(ms: u64) -> Instant {
    NOW + Duration::from_millis(ms)
}

/// The sender may send as much as the memory has room for, then nothing more until the application reads.
/// That time counts against no deadline.
#[test]
fn an_application_that_does_not_read_stops_the_sender_and_is_no_failure() {
    let small = IncomingConfig { max_block_bytes: 1 << 20, max_unread_bytes: 0, ..config() };
    let mut to = IncomingBlocks::new(NOW, small);
    let mut number = 0;
    while to.credit.left() >= 5 {
        Sent::new(number, 1 << 20).send(&mut to);
        number += 1;
    }
    // The rest goes to a block that cannot be finished.
    let open = Sent::new(number, 1 << 20);
    open.announce(&mut to);
    let left = to.credit.left() as u32;
    (0..left).for_each(|chunk| {
        to.on_slice(NOW, &open.source(chunk, 1434, 0)).unwrap();
    });
    assert!((1..=4).contains(&number) && to.credit.left() == 0, "{number} {left}");
    assert!(to.memory_bytes() <= 1 << 22);
    while to.progress_due() >= ProgressDue::Now {
        let mark = to.on_progress_sent();
        to.on_progress_heard(mark);
    }
    assert_eq!((to.failure(at(1000 * SECOND)), to.deadline()), (None, None));
    assert!(next_block(&mut to).is_some());
    assert!(to.credit.left() >= 1);
    assert_eq!(to.progress_due(), ProgressDue::MustArrive, "from nothing: it must be said at once");
    to.check_invariants();
}

/// A sender gives up all blocks that it has announced, before it receives any progress frame: its credit is
/// used up, and no block is left whose progress would report more credit.
#[test]
fn a_sender_that_cancels_hears_of_its_credit() {
    let mut to = receiver();
    let first = to.credit.get();
    for number in 0..first as u32 {
        Sent::new(number, 5000).announce(&mut to);
    }
    for number in 0..first as u32 {
        to.on_cancel(NOW, number, 0, 0).unwrap();
    }
    let (credit, floor, entries) = said(&to);
    assert!(credit > first && floor == first as u32 && entries.is_empty());
    assert_eq!(to.progress_due(), ProgressDue::MustArrive);
    let mark = to.on_progress_sent();
    assert_eq!(to.progress_due(), ProgressDue::WithAck, "until it is heard");
    to.on_progress_heard(mark);
    assert_eq!(to.progress_due(), ProgressDue::No);
}

#[test]
fn a_sender_without_progress_ends_the_connection_and_a_pause_does_not_count() {
    let sent = Sent::new(0, 2 << 20);
    let mut to = receiver();
    sent.announce(&mut to);
    to.on_slice(NOW, &sent.source(1, 1434, 0)).unwrap();
    assert_eq!(to.deadline(), Some(at(30 * SECOND)));
    to.on_slice(at(10 * SECOND), &sent.source(0, 1434, 0)).unwrap();
    to.on_slice(at(20 * SECOND), &sent.source(0, 1434, 0)).unwrap();
    assert_eq!(to.deadline(), Some(at(40 * SECOND)), "a duplicate is no progress");
    assert_eq!(to.failure(at(40 * SECOND - 1)), None);
    assert_eq!(to.failure(at(40 * SECOND)), Some(Fault::NoProgress));
    // The time in which the sender waited for the application.
    assert_eq!(to.patience.on_pause(at(15 * SECOND), true), None);
    assert_eq!(to.failure(at(400 * SECOND)), None);
    let pause = to.patience.on_pause(at(115 * SECOND), false).unwrap();
    assert_eq!((pause, to.deadline()), (Duration::from_secs(100), Some(at(140 * SECOND))));
}

/// While nothing is held of a block its sender may be silent about it for as long as it likes: the program
/// that has the bytes may have none for now. What it holds of a chunk, or of a block that is handed out
/// whole, has to go on.
#[test]
fn a_sender_of_which_nothing_is_held_may_pause() {
    let sent = Sent::new(0, 2 << 20);
    for delivery in [Delivery::Chunks, Delivery::InOrder, Delivery::Blocks] {
        let mut to = IncomingBlocks::new(NOW, IncomingConfig { delivery, ..config() });
        sent.announce(&mut to);
        assert_eq!(to.failure(at(4000 * SECOND)), None, "nothing was begun");
        sent.send_chunk(&mut to, 0, 1434);
        while to.poll_event(NOW).is_some() {}
        let is_held = delivery == Delivery::Blocks;
        assert_eq!(to.failure(at(3600 * SECOND)).is_some(), is_held, "{delivery:?}");
        if !is_held {
            to.on_slice(at(3600 * SECOND), &sent.source(1, 1434, 0)).unwrap();
            assert_eq!(to.deadline(), Some(at(3630 * SECOND)), "{delivery:?}");
        }
    }
}

#[test]
fn a_block_that_crawls_ends_the_connection() {
    let sent = Sent::new(0, 200_000);
    let mut to = receiver();
    sent.announce(&mut to);
    // 60 s and 100 s at 16 kbit/s, twice.
    for second in 0..320 {
        assert_eq!(to.failure(at(second * SECOND)), None, "{second}");
        to.on_slice(at(second * SECOND), &sent.source(0, 1000, second as usize % 199)).unwrap();
        if second % 29 == 28 {
            // It starts the chunk over again and again.
            let chunk = to.slots.open_mut(0).unwrap().open_mut(0).unwrap();
            *chunk = chunk::OpenChunk::new(cut_of(200_000, 1000), Vec::new());
        }
    }
    assert_eq!(to.failure(at(320 * SECOND)), Some(Fault::NoProgress));
}

#[test]
fn slices_whose_announcement_never_comes_are_abandoned() {
    let sent = Sent::new(0, 200_000);
    let mut to = receiver();
    assert_eq!(to.deadline(), None);
    to.on_slice(at(0), &sent.source(0, 1000, 0)).unwrap();
    to.on_slice(at(10 * SECOND), &sent.source(0, 1000, 1)).unwrap();
    assert!(to.is_receiving());
    assert_eq!(to.deadline(), Some(at(40 * SECOND)));
    to.handle_timeout(at(40 * SECOND - 1));
    assert!(to.is_receiving());
    to.handle_timeout(at(40 * SECOND));
    assert_eq!((to.is_receiving(), to.deadline(), to.memory_bytes()), (false, None, 0));
}

/// Blocks that are begun together and do not fit: nothing could ever go on, so the connection ends, and says
/// why.
#[test]
fn blocks_that_do_not_fit_together_end_the_connection() {
    let small = IncomingConfig { max_block_bytes: 1 << 20, max_unread_bytes: 0, ..config() };
    let mut to = IncomingBlocks::new(NOW, small);
    let sent: Vec<_> = (0..8).map(|number| Sent::new(number, 1 << 20)).collect();
    sent.iter().for_each(|block| block.announce(&mut to));
    'all: for chunk in 0..3 {
        for block in &sent {
            if to.failure(NOW).is_some() {
                break 'all;
            }
            block.send_chunk(&mut to, chunk, 1434);
        }
    }
    assert_eq!((to.failure(NOW), to.deadline()), (Some(Fault::Resources), Some(Instant::ZERO)));
    assert!(to.memory_bytes() <= 3 << 20);
}
