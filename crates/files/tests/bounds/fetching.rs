//! Hostile takers of a server of files, beside an honest one: each wants what takes longest to make, or
//! anything at all.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use bytes::Bytes;
use haulier_files::Ranges;
use haulier_files::giver::{GiverConfig, Start};
use haulier_files::messages::{Form, Message, Want};
use haulier_files::offer::Root;
use haulier_files::pool::{DEFAULT_THREADS, DiskPool, Wake};
use haulier_files::session::{Giving, Library, Link, LinkSpeed};
use haulier_files::tree_cache::TreeCache;
use haulier_proto::connection::{
    Block, BlockHandle, BlockNumber, CloseCode, CloseReason, Event, SendError, WantedChunk,
};
use haulier_sim::oracle::program::{AFTER_NANOS, LATENCY_NANOS, Program};

use crate::draw::Draw;
use crate::meter::{Meter, cpu_nanos};

/// A large file, of holes: half a minute of one core to cut, and hours of a server's that cuts it for each.
const LARGE_BYTES: u64 = 24 << 30;

/// The file that the honest client wants a part of: too large to be hashed when it is loaded.
const SMALL_BYTES: u64 = 65 << 20;

/// Hostile ones: as many as there are threads.
const LIARS: usize = 4;

/// The server's side: which blocks it sends.
#[derive(Default)]
struct Wire {
    blocks: RefCell<BTreeSet<u32>>,
    numbers: Cell<u32>,
    is_closed: Cell<bool>,
    held_bytes: Cell<usize>,
}

impl Link for Wire {
    fn send_message(&self, _: Bytes) -> Result<(), SendError> {
        Ok(())
    }
    fn send_block(&self, _: &Block) -> Result<BlockHandle, SendError> {
        self.numbers.set(self.numbers.get() + 1);
        let number = self.numbers.get();
        self.blocks.borrow_mut().insert(number);
        Ok(BlockHandle::from_bits(number))
    }
    fn cancel_block(&self, handle: BlockHandle, _: u32) {
        self.blocks.borrow_mut().remove(&handle.to_bits());
    }
    fn decline_block(&self, _: BlockNumber, _: u32) {}
    fn have_chunks(&self, _: Root, _: Vec<u8>) {}
    fn want_chunk(&self) -> Option<WantedChunk> {
        None
    }
    fn provide_chunk(&self, _: BlockHandle, _: u32, _: Bytes) {}
    fn arrived_bytes(&self, _: BlockHandle) -> u64 {
        0
    }
    fn all_acked(&self) -> bool {
        true
    }
    fn speed(&self) -> LinkSpeed {
        LinkSpeed::default()
    }
    fn hold_bytes(&self, bytes: usize) {
        self.held_bytes.set(bytes);
    }
    fn close(&self, _: CloseCode, _: &str) {
        self.is_closed.set(true);
    }
}

/// A client that wants one thing after the other, and takes none of it.
struct Taker {
    giving: Giving,
    wire: Wire,
    wants: u32,
}

impl Taker {
    fn new(library: &Arc<Library>, pool: &DiskPool) -> Self {
        let config = GiverConfig::new(Start::Offer);
        let mut giving = Giving::new(library, pool.handle(), config, "").unwrap();
        let wire = Wire::default();
        giving.handle_event(&wire, &Event::Connected);
        Self { giving, wire, wants: 0 }
    }

    fn file(&self, name: &str) -> u32 {
        let entries = self.giving.offer().entries();
        entries.iter().position(|it| it.path.as_str() == name).unwrap() as u32
    }

    fn want(&mut self, file: u32, form: Form) -> u64 {
        self.wants += 1;
        let message = Message::Want(Want { number: self.wants, file, form }).to_bytes();
        let bytes = message.len() as u64;
        self.giving.handle_event(&self.wire, &Event::Message { channel: 0, data: message.into() });
        bytes
    }

    /// Anything; a block that was sent is declined.
    fn lie(&mut self, draw: &mut Draw) -> u64 {
        let blocks = std::mem::take(&mut *self.wire.blocks.borrow_mut());
        for handle in blocks.into_iter().map(BlockHandle::from_bits) {
            self.giving.handle_event(&self.wire, &Event::BlockDeclined { handle, code: 0 });
        }
        let file = draw.below(u64::from(self.giving.offer().len()) + 1) as u32;
        let units = |draw: &mut Draw| {
            let start = draw.bits(30).min((1 << 30) - 2);
            Ranges::from_iter([start..start + 1 + draw.below((1 << 30) - 1 - start)])
        };
        let form = match draw.below(4) {
            0 => Form::Recipe,
            1 => Form::Whole,
            2 => Form::Any(units(draw)),
            _ => Form::Any(Ranges::new()),
        };
        self.want(file, form)
    }
}

pub(crate) fn beside_an_honest_one(seed: u64) -> Program {
    let mut draw = Draw(seed);
    let folder = tempfile::tempdir().unwrap();
    let large = fs::File::create(folder.path().join("large")).unwrap();
    large.set_len(LARGE_BYTES).unwrap();
    let small = fs::File::create(folder.path().join("small")).unwrap();
    small.set_len(SMALL_BYTES).unwrap();
    let served = [("s".to_owned(), folder.path().to_owned())];
    let library = Arc::new(Library::load(&served, TreeCache::beside()).unwrap());
    let pool = DiskPool::new(DEFAULT_THREADS, Wake::default()).unwrap();
    let mut meter = Meter::new();
    let mut liars: Vec<Taker> = (0..LIARS).map(|_| Taker::new(&library, &pool)).collect();
    meter.done.sessions = LIARS as u64 + 1;
    // The first scenario is the one in which each wants what takes longest.
    for liar in &mut liars {
        let (file, form) = (liar.file("s/large"), Form::Recipe);
        meter.done.received_bytes += meter_turn(&mut meter, || liar.want(file, form));
    }
    let mut honest = Taker::new(&library, &pool);
    let small = honest.file("s/small");
    let asked = cpu_nanos();
    honest.want(small, Form::Any(Ranges::new()));
    while honest.wire.blocks.borrow().is_empty() {
        meter.turn(|| honest.giving.turn(&honest.wire));
        for liar in &mut liars {
            meter.turn(|| liar.giving.turn(&liar.wire));
            if seed > 1 && !liar.wire.is_closed.get() && draw.one_in(3) {
                meter.done.received_bytes += meter_turn(&mut meter, || liar.lie(&mut draw));
            }
        }
        let held = liars.iter().map(|it| it.wire.held_bytes.get() as u64).sum();
        meter.done.held_bytes = meter.done.held_bytes.max(held);
        meter.done.latency_nanos = cpu_nanos() - asked;
        if meter.done.latency_nanos > LATENCY_NANOS {
            // It would take a while until it says so.
            return finish(meter, pool);
        }
        std::thread::yield_now();
    }
    // All are gone: so is what they wanted.
    for liar in &mut liars {
        let gone = Event::Closed(CloseReason::ConnectionUnknown);
        meter.turn(|| liar.giving.handle_event(&liar.wire, &gone));
    }
    drop((liars, honest));
    let gone = cpu_nanos();
    let mut quiet = 0;
    // Nothing waits, and nothing is begun by what was being done.
    while quiet < 1000 && meter.done.after_nanos <= AFTER_NANOS {
        let is_quiet = format!("{:?}", pool.handle()).contains("0 urgent jobs, 0 idle ones");
        quiet = if is_quiet { quiet + 1 } else { 0 };
        meter.done.after_nanos = cpu_nanos() - gone;
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    finish(meter, pool)
}

fn meter_turn<R>(meter: &mut Meter, act: impl FnOnce() -> R) -> R {
    meter.turn(act)
}

fn finish(meter: Meter, pool: DiskPool) -> Program {
    let done = meter.conclude(false);
    drop(pool);
    done
}
