//! The rules of STANDARD-1, section 8, one by one: what a peer must not send, and how this end reacts.

#![allow(
    clippy::single_range_in_vec_init,
    reason = "sets of chunks are lists of ranges, often of one"
)]

use bytes::Bytes;
use haulier_files::giver::{
    Giver, GiverAction, GiverConfig, MAX_EARLY_CHUNKS, MAX_WANTS, Made, Start,
};
use haulier_files::messages::{Form, Message, Want};
use haulier_files::names::SafePath;
use haulier_files::offer::{Content, Entry, Offer};
use haulier_files::reason::{ANOTHER_FILE, BAD_OFFER, NO_SUCH_FILE, NOT_UNDERSTOOD, Reason};
use haulier_files::taker::{Ask, FinishError, Local, Taker, TakerAction, TakerConfig};
use haulier_files::{BlockTag, Ranges};
use haulier_proto::Instant;
use haulier_proto::connection::{ChunkValue, CloseCode};

const NOW: Instant = Instant::from_millis(0);
const MIB: u64 = 1 << 20;
const ROOT: [u8; 32] = [7; 32];
const VALUE: ChunkValue = ChunkValue::from_bytes([7; 32]);

fn entry(path: &str, content: Content) -> Entry {
    Entry::new(SafePath::new(path).unwrap(), content)
}

fn known(size: u64) -> Offer {
    Offer::new(vec![entry("a", Content::Known { size, root: ROOT })]).unwrap()
}

fn bytes_of(message: &Message) -> Bytes {
    message.to_bytes().into()
}

fn actions_of(taker: &mut Taker) -> Vec<TakerAction> {
    std::iter::from_fn(|| taker.poll_action()).collect()
}

/// With which code it closes, if it does.
fn code_of_taker(taker: &mut Taker) -> Option<CloseCode> {
    let closes = actions_of(taker).into_iter().filter_map(|action| match action {
        TakerAction::Close { code, .. } => Some(code),
        _ => None,
    });
    closes.last()
}

fn code_of_giver(giver: &mut Giver) -> Option<CloseCode> {
    let actions = std::iter::from_fn(|| giver.poll_action());
    let closes = actions.filter_map(|action| match action {
        GiverAction::Close { code, .. } => Some(code),
        _ => None,
    });
    closes.last()
}

/// A taker that has this offer, was admitted, and has nothing of its files.
fn taking(config: TakerConfig, offer: &Offer) -> Taker {
    let mut taker = Taker::new(NOW, config);
    taker.handle_message(NOW, &bytes_of(&Message::Offer(offer.to_bytes().into())));
    taker.handle_admission(NOW, Ok(u64::MAX));
    (0..offer.len()).for_each(|file| taker.handle_inspected(NOW, file, Local::Absent));
    assert_eq!(code_of_taker(&mut taker), None);
    taker
}

#[test]
fn an_offer_that_is_not_safe_ends_the_transfer() {
    let offer = |paths: [&str; 2]| {
        let entry =
            |path: &str| [&[2, path.len() as u8][..], path.as_bytes(), &[0; 8], &[1]].concat();
        [&[2][..], &entry(paths[0]), &entry(paths[1])].concat()
    };
    for (paths, code) in [
        (["a", "b"], None),
        (["a", "../b"], Some(BAD_OFFER)),
        (["a", "/etc/passwd"], Some(BAD_OFFER)),
        (["a", "A"], Some(BAD_OFFER)),
        (["a", "a/b"], Some(BAD_OFFER)),
        (["a", ".bashrc"], Some(BAD_OFFER)),
        (["a", "u\u{308}"], Some(BAD_OFFER)),
    ] {
        let mut taker = Taker::new(NOW, TakerConfig::new(Ask::Open));
        taker.handle_message(NOW, &bytes_of(&Message::Offer(offer(paths).into())));
        assert_eq!(code_of_taker(&mut taker), code, "{paths:?}");
    }
    let mut taker = Taker::new(NOW, TakerConfig::new(Ask::Open));
    taker.handle_message(NOW, &bytes_of(&Message::Offer(Bytes::from_static(&[0]))));
    assert_eq!(code_of_taker(&mut taker), Some(NO_SUCH_FILE), "nothing at all");
}

#[test]
fn blocks_that_do_not_fit_their_file_are_refused() {
    let sized = Offer::new(vec![entry("a", Content::Sized(3 * MIB + 5))]).unwrap();
    let whole = BlockTag::Whole { file: 0, want: 1 };
    let part = |offset| BlockTag::Part { file: 0, want: 1, offset };
    let packed = BlockTag::Packed { file: 0, want: 1, offset: 0 };
    let understood = [
        (known(MIB), whole, MIB, ROOT),
        (sized.clone(), part(0), MIB, [1; 32]),
        (sized.clone(), part(3 * MIB), 5, [1; 32]),
        (sized.clone(), packed, 99, [1; 32]),
    ];
    let wrong = [
        (known(MIB), whole, MIB, [8; 32], ANOTHER_FILE),
        (known(MIB), whole, MIB + 1, ROOT, NOT_UNDERSTOOD),
        (known(MIB), BlockTag::Whole { file: 0, want: 2 }, MIB, ROOT, NOT_UNDERSTOOD),
        (known(MIB), BlockTag::Whole { file: 1, want: 1 }, MIB, ROOT, NOT_UNDERSTOOD),
        (known(MIB), BlockTag::Offer, 5, ROOT, NOT_UNDERSTOOD),
        (sized.clone(), part(0), 0, ROOT, NOT_UNDERSTOOD),
        (sized.clone(), part(0), MIB + 1, ROOT, NOT_UNDERSTOOD),
        (sized.clone(), part(0), 4 * MIB, ROOT, NOT_UNDERSTOOD),
        (sized.clone(), part(MIB), 65 * MIB, ROOT, NOT_UNDERSTOOD),
        (sized.clone(), part(64 * MIB), 5, ROOT, NOT_UNDERSTOOD),
        (sized, packed, 3 * MIB, ROOT, NOT_UNDERSTOOD),
    ];
    let announce = |offer: &Offer, tag: u64, length, root, accepts: bool| {
        let config = TakerConfig::new(Ask::Open);
        let mut taker = taking(if accepts { config.with_packed() } else { config }, offer);
        taker.handle_announced(NOW, tag, length, root);
        code_of_taker(&mut taker)
    };
    for (offer, tag, length, root) in understood {
        assert_eq!(announce(&offer, tag.to_u64(), length, root, true), None, "{tag:?} {length}");
    }
    for (offer, tag, length, root, code) in wrong {
        let closed = announce(&offer, tag.to_u64(), length, root, true);
        assert_eq!(closed, Some(code), "{tag:?} {length}");
    }
    assert_eq!(announce(&known(MIB), 0, 1, ROOT, true), Some(NOT_UNDERSTOOD), "a tag of nothing");
    assert_eq!(announce(&known(MIB), packed.to_u64(), 99, ROOT, false), Some(NOT_UNDERSTOOD));
}

#[test]
fn messages_out_of_turn_close() {
    let offer = known(MIB);
    let list = bytes_of(&Message::Offer(offer.to_bytes().into()));
    let want = Message::Want(Want { number: 1, file: 0, form: Form::Whole });
    let far = Message::End { file: 5, length: 1, root: ROOT };
    for message in [bytes_of(&Message::Done), bytes_of(&want), list.clone(), bytes_of(&far)] {
        let mut taker = taking(TakerConfig::new(Ask::Open), &offer);
        taker.handle_message(NOW, &message);
        assert_eq!(code_of_taker(&mut taker), Some(NOT_UNDERSTOOD), "{message:?}");
    }
    let mut taker = Taker::new(NOW, TakerConfig::new(Ask::Open));
    taker.handle_announced(NOW, BlockTag::Whole { file: 0, want: 1 }.to_u64(), MIB, ROOT);
    assert_eq!(code_of_taker(&mut taker), Some(NOT_UNDERSTOOD), "a file before the offer");
    let end = Message::End { file: 0, length: 1, root: ROOT };
    let stored = Message::Stored { file: 1 };
    let go = Message::Go { accepts_packed: false };
    for message in
        [list, bytes_of(&end), bytes_of(&stored), bytes_of(&go), Bytes::from_static(&[99])]
    {
        let mut giver = Giver::new(NOW, GiverConfig::new(Start::Offer), offer.clone());
        giver.handle_message(&message);
        assert_eq!(code_of_giver(&mut giver), Some(NOT_UNDERSTOOD), "{message:?}");
    }
    let mut giver = Giver::new(NOW, GiverConfig::new(Start::WhenAsked), offer);
    giver.handle_message(&bytes_of(&want));
    assert_eq!(code_of_giver(&mut giver), Some(NOT_UNDERSTOOD), "a want before go");
}

#[test]
fn more_wants_than_may_wait_close() {
    let entries =
        (0..400).map(|at| entry(&format!("{at}"), Content::Known { size: MIB, root: ROOT }));
    let offer = Offer::new(entries.collect()).unwrap();
    let asked = |wants: u32, ranges: u64| {
        let mut giver = Giver::new(NOW, GiverConfig::new(Start::Offer), offer.clone());
        for number in 1..=wants {
            let ranges = (0..ranges).map(|at| at * 2..at * 2 + 1).collect();
            let want = Want { number, file: number - 1, form: Form::Any(ranges) };
            giver.handle_message(&bytes_of(&Message::Want(want)));
        }
        code_of_giver(&mut giver)
    };
    // Eight are begun at once.
    let most = MAX_WANTS as u32 + 8;
    assert_eq!((asked(most, 0), asked(most + 1, 0)), (None, Some(NOT_UNDERSTOOD)));
    assert_eq!((asked(16, 4096), asked(17, 4096)), (None, Some(NOT_UNDERSTOOD)));
    let want = |number, file, form| bytes_of(&Message::Want(Want { number, file, form }));
    let mut giver = Giver::new(NOW, GiverConfig::new(Start::Offer), offer.clone());
    giver.handle_message(&want(2, 0, Form::Whole));
    giver.handle_message(&want(2, 1, Form::Whole));
    assert_eq!(code_of_giver(&mut giver), Some(NOT_UNDERSTOOD), "a number that was there");
    let mut giver = Giver::new(NOW, GiverConfig::new(Start::Offer), offer);
    giver.handle_message(&want(1, 0, Form::Pieces(Ranges::up_to(9))));
    let tag = BlockTag::Recipe { file: 0, want: 0 };
    let recipe = haulier_files::pieces::Recipe::new(Vec::new()).unwrap();
    giver.handle_made(tag, Ok(Made::Recipe(recipe)));
    assert_eq!(code_of_giver(&mut giver), Some(NOT_UNDERSTOOD), "pieces that are not there");
}

/// All of a large file is wanted by the connection at once, and only 32 chunks are read.
#[test]
fn before_the_offer_is_acknowledged_few_chunks_go() {
    for content in [Content::Known { size: 40 * MIB, root: ROOT }, Content::Stream] {
        let offer = Offer::new(vec![entry("a", content)]).unwrap();
        let mut giver = Giver::new(NOW, GiverConfig::new(Start::AtOnce), offer);
        let run = |giver: &mut Giver| {
            let mut chunks = 0;
            while let Some(action) = giver.poll_action() {
                match action {
                    GiverAction::SendBlock { tag: tag @ BlockTag::Whole { .. }, .. } => {
                        (0..160).for_each(|at| giver.handle_wanted_chunk(tag, at << 18, 1 << 18));
                    }
                    GiverAction::Read { tag, offset, .. } => {
                        chunks += 1;
                        giver.handle_read(tag, offset, Ok(Bytes::from_static(&[0; 1 << 18])));
                    }
                    GiverAction::MakePart { tag, max_bytes, .. } => {
                        chunks += (max_bytes >> 18) as u32;
                        giver.handle_made(
                            tag,
                            Ok(Made::PipePart(vec![0; max_bytes as usize].into())),
                        );
                    }
                    _ => {}
                }
            }
            chunks
        };
        let early = run(&mut giver);
        assert!((24..=MAX_EARLY_CHUNKS).contains(&early), "{content:?}: {early}");
        giver.handle_offer_acked();
        giver.handle_block_sent(NOW, BlockTag::Part { file: 0, want: 0, offset: 0 });
        assert!(run(&mut giver) > 0, "{content:?}");
    }
}

/// A taker that has everything that was to come unasked holds no more than may come early.
#[test]
fn what_comes_before_the_offer_is_held_and_bounded() {
    let mut taker = Taker::new(NOW, TakerConfig::new(Ask::Get));
    let tag = BlockTag::Whole { file: 0, want: 0 }.to_u64();
    taker.handle_announced(NOW, tag, 400 * MIB, ROOT);
    for at in 0..u64::from(MAX_EARLY_CHUNKS) {
        taker.handle_chunk(NOW, tag, at << 18, Bytes::from_static(&[0; 1 << 18]), VALUE);
    }
    assert!(!taker.is_full(), "or the offer would never be read");
    assert_eq!(code_of_taker(&mut taker), None);
    taker.handle_message(NOW, &bytes_of(&Message::Offer(known(400 * MIB).to_bytes().into())));
    assert!(taker.is_full(), "the program is to look first");
    taker.handle_admission(NOW, Ok(0));
    taker.handle_inspected(NOW, 0, Local::Absent);
    let actions = actions_of(&mut taker);
    let writes = actions.iter().filter(|it| matches!(it, TakerAction::Write { .. }));
    assert_eq!(writes.count(), MAX_EARLY_CHUNKS as usize);
    let mut taker = Taker::new(NOW, TakerConfig::new(Ask::Get));
    taker.handle_announced(NOW, tag, 400 * MIB, ROOT);
    (0..200).for_each(|at| {
        taker.handle_chunk(NOW, tag, at << 18, Bytes::from_static(&[0; 9]), VALUE);
    });
    assert_eq!(code_of_taker(&mut taker), Some(NOT_UNDERSTOOD));
}

#[test]
fn the_program_may_refuse_and_stop() {
    let mut taker = Taker::new(NOW, TakerConfig::new(Ask::Open));
    taker.handle_message(NOW, &bytes_of(&Message::Offer(known(1).to_bytes().into())));
    taker.handle_admission(NOW, Err(Reason::NoRoom.into()));
    assert_eq!(code_of_taker(&mut taker), Some(haulier_files::reason::NOT_STORED));
    let mut taker = taking(TakerConfig::new(Ask::Open), &known(MIB));
    taker.close(haulier_files::reason::INTERRUPTED, "stopped");
    let actions = actions_of(&mut taker);
    assert!(matches!(actions[..], [TakerAction::Abandon { file: 0 }, TakerAction::Close { .. }]));
}

/// Another file with the same root was resumed, so the connection does not deliver its chunks for this one:
/// the chunks here are reported to it, and the others are wanted again. After three retries the file fails.
#[test]
fn a_block_that_is_complete_without_all_chunks_is_wanted_again() {
    let mut taker = taking(TakerConfig::new(Ask::Open), &known(MIB));
    actions_of(&mut taker);
    let announced = |taker: &mut Taker, want| {
        let tag = BlockTag::Whole { file: 0, want }.to_u64();
        taker.handle_announced(NOW, tag, MIB, ROOT);
        tag
    };
    let tag = announced(&mut taker, 1);
    taker.handle_chunk(NOW, tag, 0, Bytes::from_static(&[0; 1 << 18]), VALUE);
    taker.handle_complete(NOW, tag);
    assert_eq!(code_of_taker(&mut taker), None, "a write is on its way");
    taker.handle_written(NOW, 0, Ok(0..1 << 18));
    for want in 2..=4 {
        let actions = actions_of(&mut taker);
        let said = actions.iter().find_map(|action| match action {
            TakerAction::HaveChunks { root, chunks } => Some((*root, chunks.clone())),
            _ => None,
        });
        assert_eq!(said, Some((ROOT, [0..1].into_iter().collect())), "{actions:?}");
        let tag = announced(&mut taker, want);
        taker.handle_complete(NOW, tag);
    }
    assert_eq!(code_of_taker(&mut taker), Some(haulier_files::reason::INCOMPLETE));
}

/// The disk loses a chunk of a file, again and again, and the giver sends the whole file for it each time, as
/// it may. It was blamed for more than twice the file, and the connection closed.
#[test]
fn what_comes_for_a_lost_chunk_does_not_count_towards_twice_the_file() {
    const SIZE: u64 = 5 * MIB;
    let mut taker = Taker::new(NOW, TakerConfig::new(Ask::Open));
    taker.handle_message(NOW, &bytes_of(&Message::Offer(known(SIZE).to_bytes().into())));
    taker.handle_admission(NOW, Ok(u64::MAX));
    taker.handle_inspected(NOW, 0, Local::Absent);
    let mut missing = 0..SIZE;
    for lost in 1..6 {
        let wanted = actions_of(&mut taker).into_iter().find_map(|action| match action {
            TakerAction::SendMessage(message) => match Message::read(&message) {
                Ok(Message::Want(want)) => Some(want.number),
                _ => None,
            },
            _ => None,
        });
        let tag = BlockTag::Whole { file: 0, want: wanted.unwrap() }.to_u64();
        taker.handle_announced(NOW, tag, SIZE, ROOT);
        for offset in missing.step_by(1 << 18) {
            let chunk = Bytes::from_static(&[0; 1 << 18]);
            taker.handle_chunk(NOW, tag, offset, chunk, VALUE);
            taker.handle_written(NOW, 0, Ok(offset..offset + (1 << 18)));
        }
        taker.handle_complete(NOW, tag);
        let actions = actions_of(&mut taker);
        let is_finishing = |action: &_| matches!(action, TakerAction::Finish { .. });
        assert!(actions.iter().any(is_finishing), "{lost}: {actions:?}");
        let chunks = Ranges::from_iter([0..19]);
        taker.handle_finished(NOW, 0, Err(FinishError::Missing { chunks }));
        missing = SIZE - (1 << 18)..SIZE;
    }
}
