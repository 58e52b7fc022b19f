//! A program at one end of a connection. It gives or takes files, is run again until all have arrived, and
//! reports how each try ended.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use haulier_core::Instant;
use haulier_files::giver::{GiverConfig, Start as GiverStart};
use haulier_files::messages::Request;
use haulier_files::reason::{DONE, Fault, INCOMPLETE, Reason};
use haulier_files::taker::{Ask, TakerConfig};
use haulier_proto::connection::{CloseCode, CloseReason, Connection, Event};
use haulier_sim::Rng;
use haulier_sim::hosts::{App, Start};

use super::folder::{Folder, Left};
use super::giving::GivingEnd;
use super::jobs::Speed;
use super::store::Store;
use super::taking::TakingEnd;

/// Chunks in memory, each end (docs/FILES.md, "Limits"), in bytes.
const MAX_HELD_BYTES: u64 = 64 << 18;

/// What both programs and the scenario share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) store: Rc<RefCell<Store>>,
    pub(super) folder: Rc<RefCell<Folder>>,
    pub(super) ledger: Rc<RefCell<Ledger>>,
    /// Of the giver's disk, and of the taker's.
    pub(super) speeds: [Speed; 2],
    pub(super) first_ask: Ask,
    pub(super) seed: u64,
}

/// What happened until now.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) tries: u64,
    pub(super) tries_since_healed: u64,
    pub(super) received_bytes: u64,
    pub(super) is_done: bool,
    /// The faults of disks that may be reported.
    pub(super) may_be_full: bool,
    pub(super) may_fail: bool,
    pub(super) giver_may_fail: bool,
    pub(super) wrong: Option<String>,
    pub(super) last_end: String,
}

enum Role {
    Gives(Box<GivingEnd>),
    Takes(Box<TakingEnd>),
    /// It does not run.
    Gone,
}

/// A program.
pub(super) struct End {
    role: Role,
    shared: Shared,
    /// A client that gives, or one that takes.
    is_client: bool,
    gives: bool,
    is_fresh: bool,
    is_over: bool,
    runs_again: Option<Instant>,
}

impl End {
    pub(super) fn client(shared: &Shared, gives: bool) -> Self {
        let (shared, role) = (shared.clone(), Role::Gone);
        let (is_fresh, is_over, runs_again) = (true, false, None);
        Self { role, shared, is_client: true, gives, is_fresh, is_over, runs_again }
    }

    /// What a server does for a client.
    pub(super) fn server(shared: &Shared, now: Instant, request: &Bytes) -> Self {
        let request = Request::read(request).expect("a request of our own");
        let mut end = Self::client(shared, request != Request::Put);
        end.is_client = false;
        end.role = match request {
            Request::Get { .. } => end.gives(now, GiverStart::AtOnce),
            Request::Open { .. } => end.gives(now, GiverStart::Offer),
            Request::Put => end.takes(now, TakerConfig::new(Ask::Inbox)),
        };
        end
    }

    fn gives(&self, now: Instant, start: GiverStart) -> Role {
        let config = GiverConfig::new(start);
        let Shared { store, speeds, .. } = &self.shared;
        Role::Gives(Box::new(GivingEnd::new(now, config, store, speeds[0], self.rng(1))))
    }

    fn takes(&self, now: Instant, config: TakerConfig) -> Role {
        let Shared { store, folder, speeds, .. } = &self.shared;
        let offered = store.borrow().loaded();
        let taking = TakingEnd::new(now, config, folder, offered, speeds[1], self.rng(2));
        Role::Takes(Box::new(taking))
    }

    fn rng(&self, purpose: u64) -> Rng {
        let tries = self.shared.ledger.borrow().tries;
        Rng::stream(self.shared.seed ^ tries << 8, 7_000 + purpose)
    }

    /// The program is gone, without a word.
    pub(super) fn crash(&mut self, left: Left) {
        if let Role::Takes(taking) = &mut self.role {
            taking.leave(left);
        }
        self.settle();
        self.role = Role::Gone;
    }

    pub(super) fn held_bytes(&self) -> u64 {
        match &self.role {
            Role::Gives(giving) => giving.held_bytes(),
            Role::Takes(taking) => taking.held_bytes(),
            Role::Gone => 0,
        }
    }

    pub(super) fn describe(&self) -> String {
        match &self.role {
            Role::Gives(giving) => giving.describe(),
            Role::Takes(taking) => taking.describe(),
            Role::Gone => "gone".to_owned(),
        }
    }

    fn accuse(&self, what: String) {
        self.shared.ledger.borrow_mut().accuse(what);
    }

    /// Checks that the reported faults may be reported, and that no file received more bytes than it may.
    fn settle(&mut self) {
        let Shared { store, folder, ledger, .. } = &self.shared;
        let has_changed = |index| store.borrow().has_changed(index);
        match &mut self.role {
            Role::Gives(giving) => {
                for (index, fault) in std::mem::take(&mut giving.faults) {
                    let is_told = ledger.borrow().may_tell(&fault, has_changed(index), true);
                    if !is_told {
                        ledger
                            .borrow_mut()
                            .accuse(format!("the giver said {fault} of file {index}"));
                    }
                }
            }
            Role::Takes(taking) => {
                let is_honest = folder.borrow().is_honest;
                let is_any_changed = (0..store.borrow().files.len()).any(has_changed);
                for (path, fault) in std::mem::take(&mut taking.faults) {
                    let is_told = ledger.borrow().may_tell(&fault, is_any_changed, is_honest);
                    if !is_told {
                        ledger.borrow_mut().accuse(format!("the taker said {fault} of {path}"));
                    }
                }
                if taking.again > 0 && is_honest && !is_any_changed {
                    ledger.borrow_mut().accuse("a file was fetched again, whole".to_owned());
                }
                for (file, received) in std::mem::take(&mut taking.received) {
                    ledger.borrow_mut().received_bytes += received.bytes;
                    let is_twice = received.max_bytes.is_some_and(|max| received.bytes > max);
                    if is_twice && taking.again == 0 {
                        ledger.borrow_mut().accuse(format!("of file {file} {received:?} came"));
                    }
                }
            }
            Role::Gone => {}
        }
    }

    fn on_closed(&mut self, now: Instant, reason: &CloseReason) {
        let is_done = match &self.role {
            Role::Gives(giving) => self.is_client && giving.is_done,
            Role::Takes(taking) => self.is_client && taking.is_done,
            Role::Gone => false,
        };
        self.settle();
        let is_stated = match reason {
            CloseReason::Here(code) | CloseReason::There { code, .. } => {
                let known = [
                    DONE,
                    INCOMPLETE,
                    CloseCode::NO_PROGRESS,
                    CloseCode::BLOCK_DAMAGED,
                    CloseCode::SHUTTING_DOWN,
                    CloseCode::TIMED_OUT,
                ];
                known.contains(code)
            }
            _ => true,
        };
        if !is_stated {
            self.accuse(format!("it ended with {reason:?}"));
        }
        let mut ledger = self.shared.ledger.borrow_mut();
        ledger.last_end = format!("{reason:?}");
        ledger.is_done |= is_done;
        let pause = Duration::from_millis(300 * ledger.tries.min(10));
        self.runs_again = (self.is_client && !ledger.is_done).then_some(now + pause);
        drop(ledger);
        self.role = Role::Gone;
        self.is_over = true;
    }
}

impl Ledger {
    fn accuse(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    /// Whether this fault may be reported in the present state.
    fn may_tell(&self, fault: &Fault, has_changed: bool, is_honest: bool) -> bool {
        match fault.reason {
            Reason::Changed => has_changed,
            Reason::WrongRoot => has_changed || !is_honest,
            Reason::NoRoom => self.may_be_full,
            Reason::NotStored => self.may_fail || fault.text == "in use",
            Reason::Unreadable => self.giver_may_fail,
            _ => false,
        }
    }
}

impl App for End {
    fn begin(&mut self, now: Instant, start: &mut Start) {
        let tries = {
            let mut ledger = self.shared.ledger.borrow_mut();
            ledger.tries += 1;
            ledger.tries_since_healed += 1;
            ledger.tries
        };
        (self.is_fresh, self.is_over, self.runs_again) = (true, false, None);
        let request = if self.gives {
            self.shared.store.borrow_mut().load();
            self.role = self.gives(now, GiverStart::WhenAsked);
            Request::Put
        } else {
            let ask = if tries == 1 { self.shared.first_ask } else { Ask::Open };
            let config = TakerConfig::new(ask);
            let request = config.request().expect("a client asks");
            self.role = self.takes(now, config);
            request
        };
        start.config.request = request.to_bytes();
        start.seed = Rng::stream(self.shared.seed ^ tries << 16, 7_100).key();
    }

    fn hear(&mut self, now: Instant, event: Event) {
        self.is_fresh = true;
        let reason = match &event {
            Event::Closed(reason) => Some(reason.clone()),
            _ => None,
        };
        match &mut self.role {
            Role::Gives(giving) => giving.hear(now, event),
            Role::Takes(taking) => taking.hear(now, event),
            Role::Gone => {}
        }
        if let Some(reason) = reason {
            self.on_closed(now, &reason);
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        if self.is_fresh && !self.is_over {
            return Some(Instant::ZERO);
        }
        match &self.role {
            Role::Gives(giving) => giving.wakes_at(),
            Role::Takes(taking) => taking.wakes_at(),
            Role::Gone => None,
        }
    }

    fn works_at(&self) -> Option<Instant> {
        match &self.role {
            Role::Takes(taking) => taking.works_at(),
            Role::Gives(_) | Role::Gone => None,
        }
    }

    fn is_full(&self) -> bool {
        matches!(&self.role, Role::Takes(taking) if taking.is_full())
    }

    fn work(&mut self, now: Instant) {
        if let Role::Takes(taking) = &mut self.role {
            self.is_fresh |= taking.work(now);
        }
    }

    fn act(&mut self, now: Instant, connection: &mut Connection) {
        self.is_fresh = false;
        match &mut self.role {
            Role::Gives(giving) => giving.act(now, connection),
            Role::Takes(taking) => taking.act(now, connection),
            Role::Gone => {}
        }
        let held = self.held_bytes();
        if held > MAX_HELD_BYTES {
            self.accuse(format!("{held} bytes of chunks in memory"));
        }
    }

    fn begins_again(&self, _now: Instant) -> Option<Instant> {
        self.runs_again
    }
}
