//! A peer that says anything at all: no panic, nothing stored that was not compared, and no more asked of
//! the program than the bounds say. Each run prints its seed.

use std::collections::BTreeMap;

use bytes::Bytes;
use haulier_files::giver::{Giver, GiverAction, GiverConfig, MAX_BLOCKS, MAX_READS, Made, Start};
use haulier_files::messages::{Form, Message, Want};
use haulier_files::names::SafePath;
use haulier_files::offer::{Content, Entry, Offer};
use haulier_files::packing::Packing;
use haulier_files::pieces::{OlderPiece, Piece, Recipe};
use haulier_files::reason::{Fault, Reason};
use haulier_files::taker::{
    Ask, FinishError, Local, MAX_ACTIVE, MAX_WRITES, Taker, TakerAction, TakerConfig, TakerEvent,
};
use haulier_files::{BlockTag, Ranges};
use haulier_proto::Instant;
use haulier_proto::connection::ChunkValue;

const FILES: u32 = 12;
const CHUNK: u64 = 1 << 18;

struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Mostly a file that there is.
    fn file(&mut self) -> u32 {
        if self.below(50) == 0 { self.next() as u32 } else { self.below(u64::from(FILES)) as u32 }
    }

    fn number(&mut self) -> u64 {
        let bits = self.below(64);
        self.next() >> bits
    }

    fn ranges(&mut self) -> Ranges {
        let ranges = (0..self.below(4)).map(|_| (self.number() >> 14, self.below(9)));
        ranges
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(start, length)| start..start + length)
            .collect()
    }

    fn bytes(&mut self, max: u64) -> Bytes {
        (0..self.below(max)).map(|_| self.next() as u8).collect()
    }

    fn fault(&mut self) -> Fault {
        Fault::new(Reason::from_code(self.below(12)), "why")
    }

    fn message(&mut self, offer: &Offer, number: u32) -> Bytes {
        let file = self.file() % 1_000_000;
        let form = match self.below(4) {
            0 => Form::Any(self.ranges()),
            1 => Form::Whole,
            2 => Form::Recipe,
            _ => Form::Pieces(self.ranges()),
        };
        let message = match self.below(12) {
            0 => return self.bytes(40),
            1 => Message::Offer(offer.to_bytes().into()),
            2 => Message::Go { accepts_packed: self.below(2) == 0 },
            3 => Message::End { file, length: self.number() >> 14, root: [0; 32] },
            4 => Message::Stored { file },
            5 => Message::Refused { file, fault: self.fault() },
            6 => Message::Failed { file, fault: self.fault() },
            7 if self.below(20) == 0 => Message::Done,
            _ => Message::Want(Want { number, file, form }),
        };
        message.to_bytes().into()
    }

    fn tag(&mut self) -> BlockTag {
        let (file, want) = (self.file() % 1_000_000, self.below(6) as u32);
        let offset = (self.number() >> 34) << 20;
        match self.below(12) {
            0 => BlockTag::Offer,
            1 | 2 => BlockTag::Whole { file, want },
            3 => BlockTag::Part { file, want, offset },
            4..=7 => BlockTag::Part { file, want, offset: offset % (8 << 20) },
            8 => BlockTag::Packed { file, want, offset },
            9 => BlockTag::Recipe { file, want },
            _ => BlockTag::Pieces { file, want },
        }
    }
}

fn offer() -> Offer {
    let entries = (0..FILES).map(|at| {
        let size = u64::from(at) * 700_000;
        let content = match at % 4 {
            0 => Content::Sized(size),
            3 if at > 8 => Content::Stream,
            _ => Content::Known { size, root: [at as u8 % 3; 32] },
        };
        Entry::new(SafePath::new(&format!("file{at}")).unwrap(), content)
    });
    Offer::new(entries.collect()).unwrap()
}

/// What the wire says, in any order, and a disk that answers in any order too.
fn torment_taker(seed: u64) {
    let (mut draw, offer) = (Draw(seed), offer());
    let ask = [Ask::Get, Ask::Open, Ask::Inbox][draw.below(3) as usize];
    let mut taker = Taker::new(Instant::from_millis(0), TakerConfig::new(ask).with_packed());
    let mut due: Vec<TakerAction> = Vec::new();
    let mut blocks: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut is_closed, mut finishing) = (false, 0);
    for step in 0..400 {
        let now = Instant::from_millis(step);
        match draw.below(8) {
            _ if step == 3 => {
                taker.handle_message(
                    now,
                    &Message::Offer(offer.to_bytes().into()).to_bytes().into(),
                );
            }
            0 if step > 300 || draw.below(4) == 0 => {
                let bytes = draw.message(&offer, 0);
                taker.handle_message(now, &bytes);
            }
            1 | 2 if !taker.is_full() && blocks.len() < 32 => {
                let tag = draw.tag();
                let file = tag.file().and_then(|file| offer.entry(file));
                let size = file.and_then(|it| it.size()).unwrap_or(1 << 20);
                let length = match draw.below(4) {
                    0 => draw.number(),
                    1 => 1 << 20,
                    _ => size,
                };
                blocks.insert(tag.to_u64(), length);
                taker.handle_announced(now, tag.to_u64(), length, [draw.below(3) as u8; 32]);
            }
            3..=5 if !taker.is_full() && !blocks.is_empty() => {
                let at = draw.below(blocks.len() as u64) as usize;
                let (&tag, &length) = blocks.iter().nth(at).unwrap();
                match draw.below(8) {
                    0 => {
                        blocks.remove(&tag);
                        taker.handle_cancelled(now, tag, draw.next() as u32);
                    }
                    1 => {
                        blocks.remove(&tag);
                        taker.handle_complete(now, tag);
                    }
                    _ => {
                        let offset = draw.below(length.div_ceil(CHUNK).max(1)) * CHUNK;
                        let bytes = CHUNK.min(length.saturating_sub(offset)) as usize;
                        taker.handle_chunk(
                            now,
                            tag,
                            offset,
                            Bytes::from_static(&[7; CHUNK as usize]).slice(..bytes),
                            ChunkValue::from_bytes([7; 32]),
                        );
                    }
                }
            }
            _ if !due.is_empty() => {
                let at = draw.below(due.len() as u64) as usize;
                answer_taker(&mut taker, now, due.swap_remove(at), &mut draw);
            }
            _ => {}
        }
        while let Some(action) = taker.poll_action() {
            assert!(!is_closed, "seed {seed}: after the close {action:?}");
            is_closed = matches!(action, TakerAction::Close { .. });
            let compares = matches!(
                action,
                TakerAction::Finish { .. }
                    | TakerAction::CopyFile { .. }
                    | TakerAction::MakeDirectory { .. }
            );
            finishing += u32::from(compares);
            due.push(action);
        }
        while let Some(event) = taker.poll_event() {
            if matches!(event, TakerEvent::Stored { .. }) {
                assert!(finishing > 0, "seed {seed}: nothing is stored that was not compared");
            }
        }
        let writes = due.iter().filter(|it| matches!(it, TakerAction::Write { .. })).count();
        assert!(writes <= 2 * MAX_WRITES + 80, "seed {seed}: {writes}");
        let looks = due.iter().filter(|it| matches!(it, TakerAction::Inspect { .. })).count();
        assert!(looks <= MAX_ACTIVE, "seed {seed}");
        let _ = taker.progress(now);
    }
}

fn answer_taker(taker: &mut Taker, now: Instant, action: TakerAction, draw: &mut Draw) {
    let is_good = draw.below(10) > 0;
    match action {
        TakerAction::ReadOffer { list } => taker.handle_offer(Offer::read(&list)),
        TakerAction::Admit { .. } => taker.handle_admission(now, Ok(draw.number())),
        TakerAction::Inspect { file } => {
            let local = match draw.below(8) {
                0 => Local::Here,
                1 => Local::Partial { chunks: draw.ranges() },
                2 => Local::Older,
                3 => Local::Refused(draw.fault()),
                4 => Local::Unproven,
                _ => Local::Absent,
            };
            taker.handle_inspected(now, file, local);
        }
        TakerAction::Write { file, offset, data, .. } => {
            let range = offset..offset + data.len() as u64;
            taker.handle_written(now, file, if is_good { Ok(range) } else { Err(draw.fault()) });
        }
        TakerAction::WritePacked { file, offset, max_bytes, .. } => {
            taker.handle_written(now, file, Ok(offset..offset + draw.below(max_bytes.max(1))));
        }
        TakerAction::CutOlder { file } => {
            let piece = Piece { length: 20_000, hash: [draw.below(2) as u8; 16] };
            taker.handle_older(now, file, Ok(vec![OlderPiece { offset: draw.number(), piece }]));
        }
        TakerAction::CopyPieces { file, .. } => taker.handle_copied(now, file, Ok(())),
        TakerAction::Finish { file, .. }
        | TakerAction::CopyFile { file, .. }
        | TakerAction::MakeDirectory { file } => {
            let finished = if is_good { Ok(()) } else { Err(FinishError::WrongRoot) };
            taker.handle_finished(now, file, finished);
        }
        _ => {}
    }
}

fn torment_giver(seed: u64) {
    let (mut draw, offer) = (Draw(seed), offer());
    let start = [Start::AtOnce, Start::Offer, Start::WhenAsked][draw.below(3) as usize];
    let config = GiverConfig::new(start).with_packing(Packing::Auto, draw.below(2) == 0);
    let mut giver = Giver::new(Instant::from_millis(0), config, offer.clone());
    let mut due: Vec<GiverAction> = Vec::new();
    let (mut is_closed, mut number) = (false, 0);
    for step in 0..400 {
        let now = Instant::from_millis(step);
        match draw.below(4) {
            _ if step == 2 && start == Start::WhenAsked => {
                giver.handle_message(&Message::Go { accepts_packed: true }.to_bytes().into());
            }
            0 | 1 if step > 350 => {
                let bytes = draw.message(&offer, draw_number(&mut number));
                giver.handle_message(&bytes);
            }
            0 if step > 5 => {
                // Mostly what a taker may say.
                let (file, form) = (draw.below(u64::from(FILES)) as u32, Form::Any(Ranges::new()));
                let want = Want { number: draw_number(&mut number), file, form };
                giver.handle_message(&Message::Want(want).to_bytes().into());
            }
            _ if !due.is_empty() => {
                let at = draw.below(due.len() as u64) as usize;
                let action = due.swap_remove(at);
                answer_giver(&mut giver, now, action, &mut draw);
            }
            _ => giver.handle_offer_acked(),
        }
        while let Some(action) = giver.poll_action() {
            assert!(!is_closed, "seed {seed}: after the close {action:?}");
            is_closed = matches!(action, GiverAction::Close { .. });
            due.push(action);
        }
        while giver.poll_event().is_some() {}
        let count = |is: fn(&GiverAction) -> bool| due.iter().filter(|it| is(it)).count();
        assert!(count(|it| matches!(it, GiverAction::Read { .. })) <= MAX_READS, "seed {seed}");
        let making =
            count(|it| matches!(it, GiverAction::MakePart { .. } | GiverAction::MakePieces { .. }));
        assert!(making <= 1, "seed {seed}");
        let _ = giver.progress(now);
    }
    assert!(format!("{giver:?}").matches("Outgoing").count() <= MAX_BLOCKS);
}

fn draw_number(number: &mut u32) -> u32 {
    *number += 1;
    *number
}

fn answer_giver(giver: &mut Giver, now: Instant, action: GiverAction, draw: &mut Draw) {
    let is_good = draw.below(15) > 0;
    match action {
        GiverAction::MakePart { tag, max_bytes, .. } => {
            let made = match draw.below(4) {
                0 => Made::Packed { bytes: draw.bytes(50), length: max_bytes },
                1 => Made::PipePart(Bytes::from(vec![0; max_bytes.min(1 << 20) as usize])),
                _ => Made::Part { length: max_bytes },
            };
            giver.handle_made(tag, if is_good { Ok(made) } else { Err(draw.fault()) });
        }
        GiverAction::MakePieces { tag, .. } => giver.handle_made(tag, Ok(Made::Pieces)),
        GiverAction::MakeRecipe { tag, .. } => {
            let piece = Piece { length: 20_000, hash: [0; 16] };
            giver.handle_made(tag, Ok(Made::Recipe(Recipe::new(vec![piece; 9]).unwrap())));
        }
        GiverAction::MakeTree { tag, .. } => {
            giver.handle_made(tag, Ok(Made::Tree { size: draw.number(), root: [0; 32] }));
        }
        GiverAction::FindRoot { file } => giver.handle_root(file, Ok((draw.number(), [0; 32]))),
        GiverAction::SendBlock { tag, .. } => match draw.below(6) {
            0 => giver.handle_block_declined(tag),
            1 => giver.handle_block_sent(now, tag),
            _ => (0..40)
                .for_each(|_| giver.handle_wanted_chunk(tag, draw.number() & !0x3ffff, CHUNK)),
        },
        GiverAction::Read { tag, offset, .. } => {
            let read = if is_good { Ok(draw.bytes(9)) } else { Err(draw.fault()) };
            giver.handle_read(tag, offset, read);
        }
        GiverAction::Provide { tag, .. } if draw.below(9) == 0 => giver.handle_block_sent(now, tag),
        _ => {}
    }
}

#[test]
fn a_taker_survives_anything() {
    (0..3000).for_each(torment_taker);
}

#[test]
fn a_giver_survives_anything() {
    (0..3000).for_each(torment_giver);
}
