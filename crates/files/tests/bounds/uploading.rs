//! Hostile givers: to an inbox, where what lies in the folder is compared with the quota after each step; and
//! to somebody who fetches.

use std::fs;
use std::path::Path;

use haulier_files::InboxQuota;
use haulier_files::pool::{DEFAULT_THREADS, DiskPool, PoolHandle, Wake};
use haulier_files::session::{Inbox, Place, Taking, Upload};
use haulier_files::taker::{Ask, TakerConfig};
use haulier_files::writer::Replace;
use haulier_proto::connection::Event;
use haulier_sim::oracle::program::Program;

use crate::draw::Draw;
use crate::liar::Liar;
use crate::meter::Meter;

/// Steps of a scenario: a second or two.
const STEPS: u64 = 2000;

/// Sessions at a time, and in all.
const SESSIONS: usize = 3;
const MAX_SESSIONS: u64 = 20;

/// The shortest entry of a list; and how many files a disk looks for in a scenario.
const MIN_ENTRY_BYTES: u64 = 12;
const MAX_LOOKED_AT: u64 = 4000;

/// One end of a transfer that takes, whatever it is for.
trait Session {
    fn handle(&mut self, liar: &Liar, event: Event);
    fn turn(&mut self, liar: &Liar);
    fn is_full(&self) -> bool;
    fn is_over(&self) -> bool;
}

struct ToInbox<'a> {
    upload: Upload<u8>,
    inbox: &'a std::cell::RefCell<Inbox<u8>>,
}

impl Session for ToInbox<'_> {
    fn handle(&mut self, liar: &Liar, event: Event) {
        self.upload.handle_event(&mut self.inbox.borrow_mut(), &liar.wire, event);
    }
    fn turn(&mut self, liar: &Liar) {
        self.upload.turn(&mut self.inbox.borrow_mut(), &liar.wire);
        self.upload.admit(&self.inbox.borrow());
        while self.upload.poll_event().is_some() {}
    }
    fn is_full(&self) -> bool {
        self.upload.is_full()
    }
    fn is_over(&self) -> bool {
        self.upload.is_over()
    }
}

struct ToFolder(Taking);

impl Session for ToFolder {
    fn handle(&mut self, liar: &Liar, event: Event) {
        self.0.handle_event(&liar.wire, event);
    }
    fn turn(&mut self, liar: &Liar) {
        self.0.turn(&liar.wire);
        if self.0.wants_admission() {
            self.0.admit(&liar.wire, None, 1 << 50);
        }
        while self.0.poll_event().is_some() {}
    }
    fn is_full(&self) -> bool {
        self.0.is_full()
    }
    fn is_over(&self) -> bool {
        !self.0.is_busy()
    }
}

pub(crate) fn to_an_inbox(seed: u64) -> Program {
    let mut draw = Draw(seed);
    let folder = tempfile::tempdir().unwrap();
    let most = 4096 + if draw.one_in(2) { draw.bits(21) } else { draw.below(8 << 20) };
    let replace = if draw.one_in(2) { Replace::Never } else { Replace::File };
    let quota = InboxQuota::new(most, most);
    let inbox = Inbox::new(Place::Folder(folder.path().to_owned()), replace, quota);
    let inbox = std::cell::RefCell::new(inbox);
    let begin = |pool: &PoolHandle, client| ToInbox {
        upload: Upload::new(&inbox.borrow(), pool, client),
        inbox: &inbox,
    };
    let check = |seed| {
        let (cost, files) = cost_of(folder.path());
        assert!(
            cost <= most,
            "seed {seed}: {files} files cost {cost}, at most {most}, {replace:?}"
        );
    };
    act(draw, begin, Liar::new, check, most)
}

pub(crate) fn to_a_fetch(seed: u64) -> Program {
    let mut draw = Draw(seed);
    let folder = tempfile::tempdir().unwrap();
    // What it has of a list comes unasked, and is looked for without a want.
    let ask = if draw.one_in(2) { Ask::Get } else { Ask::Open };
    let place = Place::Folder(folder.path().to_owned());
    let begin = |pool: &PoolHandle, _| {
        ToFolder(Taking::new(pool, TakerConfig::new(ask), place.clone(), Replace::File))
    };
    let lie = |seed, max_size| match ask {
        Ask::Get => Liar::new(seed, max_size).unasked(),
        _ => Liar::new(seed, max_size),
    };
    let mut done = act(draw, begin, lie, |_| (), 4 << 20);
    done.files = done.files.max(done.received_bytes / MIN_ENTRY_BYTES).min(MAX_LOOKED_AT);
    done
}

/// A session with its peer, and whether that is still there.
struct Pair<S> {
    session: S,
    liar: Liar,
    is_open: bool,
}

fn act<S: Session>(
    mut draw: Draw,
    mut begin: impl FnMut(&PoolHandle, u8) -> S,
    lie: impl Fn(u64, u64) -> Liar,
    check: impl Fn(u64),
    max_size: u64,
) -> Program {
    let seed = draw.0;
    let pool = DiskPool::new(DEFAULT_THREADS, Wake::default()).unwrap();
    let mut meter = Meter::new();
    let mut pairs: Vec<Pair<S>> = Vec::new();
    for step in 0..STEPS {
        let may_begin = meter.done.sessions < MAX_SESSIONS;
        if pairs.iter().filter(|it| it.is_open).count() < SESSIONS && may_begin {
            meter.done.sessions += 1;
            let session = begin(pool.handle(), draw.below(2) as u8);
            let liar = lie(draw.next(), max_size);
            pairs.push(Pair { session, liar, is_open: true });
        }
        for pair in &mut pairs {
            turn(pair, &mut meter);
        }
        let held = pairs.iter().map(|it| it.liar.wire.held_bytes.get() as u64).sum();
        meter.done.held_bytes = meter.done.held_bytes.max(held);
        pairs.retain(|it| it.is_open || !it.session.is_over());
        if step % 4 == 0 {
            check(seed);
        }
        // The threads of the disk come after: one core may be all there is.
        std::thread::yield_now();
    }
    meter.conclude(true)
}

fn turn<S: Session>(pair: &mut Pair<S>, meter: &mut Meter) {
    let Pair { session, liar, is_open } = pair;
    meter.turn(|| session.turn(liar));
    if !*is_open || session.is_full() {
        return;
    }
    let before = (liar.received_bytes, liar.files);
    let events = match liar.wire.is_closed.get() {
        true => vec![Event::Closed(haulier_proto::connection::CloseReason::ConnectionUnknown)],
        false => liar.next(),
    };
    meter.done.received_bytes += liar.received_bytes - before.0;
    meter.done.files += liar.files - before.1;
    for event in events {
        *is_open &= !matches!(event, Event::Closed(_));
        meter.turn(|| session.handle(liar, event));
    }
}

/// The cost of a folder by the rule of the documentation: a file costs its blocks of 4 KiB, one at least, and
/// a directory one block.
fn cost_of(folder: &Path) -> (u64, u64) {
    let (mut cost, mut files) = (0, 0);
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = item.metadata() else { continue };
        files += 1;
        cost += 4096;
        if metadata.is_dir() {
            let inside = cost_of(&item.path());
            (cost, files) = (cost + inside.0, files + inside.1);
        } else {
            cost += (metadata.len().max(1) - 1) / 4096 * 4096;
        }
    }
    (cost, files)
}
