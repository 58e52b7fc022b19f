//! The memory that a peer can make this end hold: it stays within the limits, and this end reports all of it.

use proptest::prelude::*;

use super::*;
use crate::channels::receiver::MAX_CHANNEL_LIMIT_BYTES;

/// Bytes allocated by what `run` does.
fn allocated(run: impl FnOnce()) -> i64 {
    allocation_counter::measure(run).bytes_current
}

/// The maximum that a channel holds besides its window and an eighth of it, as docs/CHANNELS.md says: 256
/// messages that are held or unread (16 and 20 KiB), their tables of pages (24 KiB), 257 runs of numbers
/// (8 KiB).
const MAX_CHANNEL_BOOKS: usize = 72 << 10;

#[test]
fn one_byte_of_every_message_is_held_for_what_it_is() {
    let (channels, window) = (256, 1 << 20);
    let mut receiver = MessageReceiver::new(channels, window);
    let held = allocated(|| {
        for channel in 0..=255 {
            for number in 0..256 {
                let frame = MessageFrame { channel, ..part(number, 4096, 4000, &[1]) };
                assert_eq!(receiver.receive(&frame), Ok(Arrival::New));
            }
        }
    });
    receiver.check_invariants();
    assert_eq!(held, receiver.memory_bytes() as i64);
    // 65,536 bytes arrived in parts of one: for each a page of 1024 bytes, its bits, and 160 of books.
    assert!(held <= 256 * 256 * 1312, "{held}");
    // Not one message more.
    let frame = whole(0, 256, &[]);
    assert_eq!(receiver.receive(&frame), Err(MessageViolation::BeyondLimit));
}

/// The lowest number never comes: what is remembered of the others does not grow.
#[test]
fn a_number_that_never_comes_costs_no_memory() {
    let mut receiver = MessageReceiver::new(1, WINDOW);
    for number in 1..100_000 {
        receiver.receive(&unordered(whole(0, number, &[1]))).unwrap();
        assert!(receiver.pop().is_some());
        let _sent = receiver.poll_limit(18, &mut Vec::new());
    }
    receiver.check_invariants();
    assert!(receiver.memory_bytes() <= 1024, "{}", receiver.memory_bytes());
    // Every second one: then the limit stops it, because only what was read raises it.
    let mut receiver = MessageReceiver::new(1, WINDOW);
    let last = (1..).step_by(2).find(|&number| {
        let refused = receiver.receive(&unordered(whole(0, number, &[]))).is_err();
        while receiver.pop().is_some() {}
        let _sent = receiver.poll_limit(18, &mut Vec::new());
        receiver.check_invariants();
        refused
    });
    assert!(last.unwrap() <= 2 * 256 + 1, "{last:?}");
    assert!(receiver.memory_bytes() <= 8192 + 1024, "{}", receiver.memory_bytes());
}

#[derive(Clone, Debug)]
struct Step {
    channel: u8,
    number: u64,
    is_unordered: bool,
    /// Length, offset and length of a part.
    part: Option<(u32, u32)>,
    bytes: usize,
    reads: usize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = prop_oneof![4 => 0..20u64, 2 => 0..300u64, 1 => any::<u64>()];
    let part = prop::option::of((1..70_000u32, prop_oneof![0..3000u32, any::<u32>()]));
    let bytes = prop_oneof![0..3usize, 0..3000usize];
    let step = (0..5u8, number, any::<bool>(), part, bytes, 0..3usize);
    let step = step.prop_map(|(channel, number, is_unordered, part, bytes, reads)| Step {
        channel,
        number,
        is_unordered,
        part,
        bytes,
        reads,
    });
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Whatever arrives: memory is what it says, within the limits, and gone with the receiver.
    #[test]
    fn memory_is_what_it_says(steps in steps()) {
        let window = 65_536;
        let mut receiver = MessageReceiver::new(4, window);
        let mut limits = Vec::with_capacity(1 << 16);
        let mut held = 0;
        for step in steps {
            let data = &message(step.bytes)[..];
            let mut frame = MessageFrame {
                is_unordered: step.is_unordered,
                ..whole(step.channel, step.number, data)
            };
            // As a reader of frames lets it through.
            if let Some((whole, offset)) = step.part
                && !data.is_empty()
                && whole <= 65_536
                && offset <= whole
                && data.len() <= (whole - offset) as usize
            {
                frame.part = Some(MessagePart { whole, offset });
            }
            held += allocated(|| {
                let _violation = receiver.receive(&frame);
                for _ in 0..step.reads {
                    let _read = receiver.pop();
                }
                while receiver.poll_limit(MAX_CHANNEL_LIMIT_BYTES, &mut limits).is_some() {}
            });
            receiver.check_invariants();
            prop_assert_eq!(held, receiver.memory_bytes() as i64);
            let most = 4 * (window as usize * 9 / 8 + MAX_CHANNEL_BOOKS);
            prop_assert!(receiver.memory_bytes() <= most, "{}", receiver.memory_bytes());
        }
        prop_assert_eq!(allocated(|| drop(receiver)), -held);
    }
}
