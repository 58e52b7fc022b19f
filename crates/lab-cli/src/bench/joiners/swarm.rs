//! Many clients on one socket: each a machine of its own, and honest.
//!
//! A datagram says in its second to ninth byte for which client it is (STANDARD-1, 2.2 and 3). The
//! invariant: a client that may have something to send is in `ready`. Of any other client the heap has the
//! deadline, or an earlier one at which the deadline is looked up again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::{Duration, Instant as Moment};

use bytes::Bytes;
use haulier::proto::client::{ClientConfig, ClientMachine};
use haulier::proto::connection::{CloseCode, Event};
use haulier::proto::{AesSupport, Batch, Ecn, FourTuple, Instant, Machine, Platform};
use haulier::udp;

/// The id of a client in what it receives, and in its requests, which have a version in front.
const RECEIVED_ID: std::ops::Range<usize> = 1..9;
const REQUESTED_ID: std::ops::Range<usize> = 5..13;

type WireId = [u8; 8];

/// The clients that join, and the block that they expect.
pub(super) struct Plan {
    pub(super) config: ClientConfig,
    pub(super) block: Bytes,
    pub(super) clients: usize,
    /// Clients that join at the same time.
    pub(super) at_once: usize,
}

/// The results of the clients until now.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// The join times of the clients that have their block.
    pub(super) times: Vec<Duration>,
    /// Clients that have not got it, and will not.
    pub(super) failed: usize,
    /// Why the first of them did not.
    pub(super) why: Option<String>,
    /// Clients that waited in line.
    pub(super) queued: usize,
    /// Bytes of all datagrams that clients sent, without headers.
    pub(super) sent_bytes: u64,
}

/// Clients behind one socket.
pub(super) struct Swarm {
    plan: Plan,
    /// One for each client that has begun.
    players: Vec<Player>,
    by_id: HashMap<WireId, usize>,
    ready: VecDeque<usize>,
    deadlines: BinaryHeap<Reverse<(Instant, usize)>>,
    pub(super) tally: Tally,
}

struct Player {
    /// `None` once it has nothing more to send.
    machine: Option<Box<ClientMachine>>,
    began: Moment,
    /// Known once it has sent a request.
    id: Option<WireId>,
    planned: Option<Instant>,
    is_ready: bool,
    is_over: bool,
    is_queued: bool,
}

impl Swarm {
    /// The machines of clients that begin together are made before any of them begins, because real players
    /// have computers of their own.
    pub(super) fn new(plan: Plan, now: Instant) -> Self {
        let mut swarm = Self {
            players: Vec::with_capacity(plan.clients),
            by_id: HashMap::with_capacity(plan.at_once),
            ready: VecDeque::new(),
            deadlines: BinaryHeap::new(),
            tally: Tally::default(),
            plan,
        };
        for _ in 0..swarm.plan.at_once.min(swarm.plan.clients) {
            swarm.begin(now);
        }
        swarm
    }

    /// Starts the clock of the clients that begin together.
    pub(super) fn set_begun(&mut self, at: Moment) {
        self.players.iter_mut().for_each(|player| player.began = at);
    }

    pub(super) fn is_over(&self) -> bool {
        self.tally.times.len() + self.tally.failed >= self.plan.clients
    }

    /// Counts the clients that are not done as failed.
    pub(super) fn give_up(&mut self) {
        let missing = self.plan.clients - self.tally.times.len() - self.tally.failed;
        if missing > 0 {
            self.tally.failed += missing;
            self.tally.why.get_or_insert_with(|| "not done in time".into());
        }
    }

    fn begin(&mut self, now: Instant) {
        let (began, at) = (Moment::now(), self.players.len());
        if at >= self.plan.clients {
            return;
        }
        let made = udp::seed().map_err(|error| error.to_string()).and_then(|seed| {
            let aes = if udp::has_aes() { AesSupport::Hardware } else { AesSupport::Software };
            let platform = Platform::new(seed, aes);
            let config = self.plan.config.clone();
            ClientMachine::new(now, config, platform).map_err(|error| error.to_string())
        });
        let machine = match made {
            Ok(machine) => Some(Box::new(machine)),
            Err(why) => {
                self.fail(why);
                None
            }
        };
        let is_over = machine.is_none();
        self.players.push(Player {
            machine,
            began,
            id: None,
            planned: None,
            is_ready: false,
            is_over,
            is_queued: false,
        });
        self.wake(at);
    }

    fn fail(&mut self, why: String) {
        self.tally.failed += 1;
        self.tally.why.get_or_insert(why);
    }

    fn wake(&mut self, at: usize) {
        let player = &mut self.players[at];
        if player.machine.is_some() && !player.is_ready {
            player.is_ready = true;
            self.ready.push_back(at);
        }
    }

    /// Hears what a client has to say.
    fn turn(&mut self, now: Instant, at: usize) {
        let mut is_over = false;
        loop {
            let player = &mut self.players[at];
            let Some(machine) = &mut player.machine else { break };
            let Some(event) = machine.poll_event(now) else { break };
            match event {
                Event::Block { data, .. } => {
                    let took = player.began.elapsed();
                    machine.close(now, CloseCode::DONE, "");
                    if std::mem::replace(&mut player.is_over, true) {
                        continue;
                    }
                    is_over = true;
                    if data == self.plan.block {
                        self.tally.times.push(took);
                    } else {
                        self.fail("this is another block".into());
                    }
                }
                Event::Queued { .. } => {
                    let is_first = !std::mem::replace(&mut player.is_queued, true);
                    self.tally.queued += usize::from(is_first);
                }
                Event::Closed(reason) if !player.is_over => {
                    player.is_over = true;
                    is_over = true;
                    self.fail(reason.to_string());
                }
                _ => {}
            }
        }
        self.wake(at);
        if is_over {
            self.begin(now);
        }
    }

    /// A client that has nothing to send waits for its deadline. One that is closed for good is released.
    fn rest(&mut self, at: usize) {
        let player = &mut self.players[at];
        player.is_ready = false;
        let Some(machine) = &player.machine else { return };
        let deadline = machine.poll_timeout();
        if machine.is_closed() && deadline.is_none() {
            self.tally.sent_bytes += machine.wire_bytes().sent;
            player.machine = None;
            player.id.take().map(|id| self.by_id.remove(&id));
            return;
        }
        if let Some(due) = deadline
            && player.planned.is_none_or(|planned| due < planned)
        {
            player.planned = Some(due);
            self.deadlines.push(Reverse((due, at)));
        }
    }
}

impl Machine for Swarm {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let id = datagram.get(RECEIVED_ID).and_then(|id| WireId::try_from(id).ok());
        let Some(&at) = id.and_then(|id| self.by_id.get(&id)) else { return };
        if let Some(machine) = &mut self.players[at].machine {
            let _counted = machine.handle_marked_datagram(now, path, ecn, datagram);
            self.turn(now, at);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&Reverse((due, at))) = self.deadlines.peek()
            && due <= now
        {
            self.deadlines.pop();
            let player = &mut self.players[at];
            if player.planned != Some(due) {
                continue; // It was brought forward.
            }
            player.planned = None;
            if let Some(machine) = &mut player.machine {
                machine.handle_timeout(now);
                self.turn(now, at);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        while !batch.is_full()
            && let Some(&at) = self.ready.front()
        {
            let (player, before) = (&mut self.players[at], batch.len());
            if let Some(machine) = &mut player.machine {
                machine.poll_transmit(now, batch);
            }
            if player.id.is_none()
                && let Some((_, request)) = batch.iter().nth(before)
                && let Some(id) = request.get(REQUESTED_ID).and_then(|id| id.try_into().ok())
            {
                player.id = Some(id);
                self.by_id.insert(id, at);
            }
            if batch.is_full() {
                return; // It may have more.
            }
            self.ready.pop_front();
            self.rest(at);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(Instant::ZERO);
        }
        self.deadlines.peek().map(|Reverse((due, _))| *due)
    }
}
