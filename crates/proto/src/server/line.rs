//! The line of clients for whom there is no seat yet (CROWDS, "The line").
//!
//! A place belongs to the name of a request whose address is proven. Its client asks again now and then, and
//! learns its place. When a seat is free, the clients whose turn it is (`turns.rs`) are called, several for
//! each seat, with datagrams that were made when they took their places. The first that answers gets the
//! seat. A client that answers and finds the seat taken is *owed* the next: that seat is held for it alone.
//!
//! ```text
//!   waits --called with others--> called --asks, no seat--> owed --a seat for it alone--> held
//!                                   '------------- asks, a seat ------> seated <-- asks -----'
//! ```
//!
//! The invariants: a seat is held for one client at a time, and only until that client has missed three
//! questions; whatever other networks do, a network waits for at most one turn of each of them; and no
//! question looks at all places, except for [`count`](Line::count), at most every 100 ms.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use super::admission::Prefix;
use super::memory::RequestName;
use super::turns::{Group, Groups};
use crate::{FourTuple, Instant};

/// Questions a second of all clients in line together: 4,000 datagrams of 1200 bytes are 38 Mbit/s,
/// and some 2 % of a core. With 2,000, a full line of clients that have left would last for 25 s.
const QUESTIONS_PER_SECOND: u32 = 4_000;

/// The bounds of the time after which a client has to ask again. A free seat is announced by a call at once,
/// so the question is for clients whose call was lost, and shows the server that the client still waits.
const MIN_AGAIN: Duration = Duration::from_secs(1);
const MAX_AGAIN: Duration = Duration::from_secs(10);

/// A client has left after this number of questions that it should have asked and did not.
const INTERVALS_TO_LEAVE: u32 = 3;

/// Places are counted anew after this time.
const COUNTED_FOR: Duration = Duration::from_millis(100);

/// The time in which a called client is expected to answer: three round trips of a distant player. Then
/// others are called in its stead.
const CALL_PATIENCE: Duration = Duration::from_secs(1);

/// The number of clients that are called for one seat; those beyond the first are of networks of which no
/// client was called yet. Some clients in line have left silently, or do not mean to come; called alone, each
/// of these would keep the others waiting for [`CALL_PATIENCE`].
const CALLED_PER_SEAT: usize = 4;

/// The number of freed seats that the estimate is made from.
const FREED: usize = 64;

/// Places of one source: a sixteenth of the line.
const MAX_OF_SOURCE: usize = 1_024;

/// How near its seat a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    /// It was called, with others.
    Called(Instant),
    /// It answered too late, and the next free seat is its own.
    Owed,
    /// It was called alone, and a seat is held for it.
    Held,
}

/// A client that waits.
#[derive(Clone, Debug)]
struct Place {
    name: RequestName,
    path: FourTuple,
    /// It has left if it does not ask until then.
    leaves_at: Instant,
    /// Its position in the line, from 1, when places were counted last.
    rank: u32,
    /// The datagram that calls it, and the number of its turn once it was called.
    call: Vec<u8>,
    turn: u64,
    state: State,
}

impl Place {
    fn groups(&self) -> Groups {
        groups(self.path)
    }
}

fn groups(path: FourTuple) -> Groups {
    let source = Prefix::of(path.remote);
    [source.network(), source]
}

/// The answer to a client that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A seat is free for the client.
    Called,
    /// No seat is free for the client yet.
    Waits { place: Option<u32>, estimate: Option<Duration>, again: Duration },
}

/// The line.
#[derive(Debug, Default)]
pub(super) struct Line {
    max_places: usize,
    /// The places, by the order in which their clients came.
    places: BTreeMap<u64, Place>,
    numbers: BTreeMap<RequestName, u64>,
    turns: Group,
    by_end: BTreeSet<(Instant, u64)>,
    /// Those called with others that may still answer in time.
    called: BTreeSet<(Instant, u64)>,
    /// Those that are owed a seat, in the order of their turns.
    owed: BTreeSet<(u64, u64)>,
    /// Those for which a seat is held.
    held: BTreeSet<u64>,
    /// Places taken and turns given, which are numbered together.
    counter: u64,
    counted_at: Option<Instant>,
    /// When seats became free, the newest last.
    freed: VecDeque<Instant>,
    /// Calls to be sent.
    calls: VecDeque<(FourTuple, Vec<u8>)>,
}

impl Line {
    /// A line of at most `max_places` places; 0 means no line.
    pub(super) fn new(max_places: usize) -> Self {
        Self { max_places, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether this request has a place or needs one, because others wait or no seat is free.
    pub(super) fn is_before(&self, name: &RequestName, free: usize) -> bool {
        self.max_places > 0 && (free == 0 || !self.places.is_empty() || self.has(name))
    }

    fn has(&self, name: &RequestName) -> bool {
        self.numbers.contains_key(name)
    }

    /// Whether this request has a place, from this address.
    pub(super) fn knows(&self, name: &RequestName, path: FourTuple) -> bool {
        let place = self.numbers.get(name).and_then(|number| self.places.get(number));
        place.is_some_and(|place| place.path.has_remote_of(path))
    }

    /// A client whose address is proven asks, while `free` seats are free. `call` is the datagram that will
    /// call it.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        name: RequestName,
        path: FourTuple,
        free: usize,
        call: &[u8],
    ) -> Turn {
        self.forget_old(now);
        if !self.knows(&name, path) {
            // The request has a place from another address: that place is removed.
            self.leave(&name);
        }
        let again = self.again();
        if !self.has(&name) && !self.take_place(now, name, path, call) {
            return Turn::Waits { place: None, estimate: None, again: MAX_AGAIN };
        }
        let Some(&number) = self.numbers.get(&name) else {
            return Turn::Waits { place: None, estimate: None, again: MAX_AGAIN };
        };
        self.call(now, free, Some(number));
        self.count(now);
        let Some(place) = self.places.get_mut(&number) else { return Turn::Called };
        match place.state {
            State::Held => return Turn::Called,
            State::Called(_) if free > self.held.len() => return Turn::Called,
            State::Called(at) => {
                place.state = State::Owed;
                self.called.remove(&(at, number));
                self.owed.insert((place.turn, number));
                place.rank = u32::try_from(self.owed.len()).unwrap_or(u32::MAX);
            }
            State::Waits | State::Owed => {}
        }
        // The next seat is held for a client that is owed it, so it has to ask soon.
        let again = if place.state == State::Owed { MIN_AGAIN } else { again };
        self.by_end.remove(&(place.leaves_at, number));
        place.leaves_at = now + again * INTERVALS_TO_LEAVE;
        self.by_end.insert((place.leaves_at, number));
        let rank = place.rank;
        Turn::Waits { place: Some(rank), estimate: self.estimate(now, rank), again }
    }

    /// Takes a new place, if there is room or another place can be removed for it.
    fn take_place(
        &mut self,
        now: Instant,
        name: RequestName,
        path: FourTuple,
        call: &[u8],
    ) -> bool {
        let groups = groups(path);
        if self.turns.len_of(&groups) >= MAX_OF_SOURCE {
            return false;
        }
        if self.places.len() >= self.max_places {
            let last = self.turns.to_make_room(&groups).and_then(|last| self.places.get(&last));
            let Some(last) = last.map(|place| place.name) else { return false };
            self.leave(&last);
        }
        self.counter += 1;
        let number = self.counter;
        // The last position for now; `count` finds the right one.
        let rank = u32::try_from(self.places.len() + 1).unwrap_or(u32::MAX);
        let (leaves_at, call, state) = (now, call.to_vec(), State::Waits);
        self.numbers.insert(name, number);
        self.turns.insert(&groups, number, number);
        self.by_end.insert((leaves_at, number));
        self.places.insert(number, Place { name, path, leaves_at, rank, call, turn: 0, state });
        true
    }

    /// A client has a seat, or does not want one any more: removes its place.
    pub(super) fn leave(&mut self, name: &RequestName) {
        let Some(number) = self.numbers.remove(name) else { return };
        let Some(place) = self.places.remove(&number) else { return };
        self.turns.remove(&place.groups(), number);
        self.by_end.remove(&(place.leaves_at, number));
        match place.state {
            State::Waits => {}
            State::Called(at) => drop(self.called.remove(&(at, number))),
            State::Owed => drop(self.owed.remove(&(place.turn, number))),
            State::Held => drop(self.held.remove(&number)),
        }
    }

    /// A seat became free, and now `free` seats are free.
    pub(super) fn on_freed(&mut self, now: Instant, free: usize) {
        if self.max_places == 0 {
            return;
        }
        if self.freed.len() == FREED {
            self.freed.pop_front();
        }
        self.freed.push_back(now);
        self.forget_old(now);
        self.call(now, free, None);
    }

    /// The next call to be sent.
    pub(super) fn next_call(&mut self) -> Option<(FourTuple, Vec<u8>)> {
        self.calls.pop_front()
    }

    /// Forgets the clients that have left, and no longer expects answers from called clients that are silent.
    pub(super) fn forget_old(&mut self, now: Instant) {
        while let Some(&(at, number)) = self.by_end.first()
            && at < now
            && let Some(name) = self.places.get(&number).map(|place| place.name)
        {
            self.leave(&name);
        }
        // Their places are kept: if the call was lost, they will ask.
        while self.called.first().is_some_and(|&(at, _)| now.since(at) >= CALL_PATIENCE) {
            self.called.pop_first();
        }
    }

    /// Calls the clients whose turn it is: one for each seat that is owed, and [`CALLED_PER_SEAT`] for each
    /// other seat. The client that `asks` needs no call.
    fn call(&mut self, now: Instant, free: usize, asks: Option<u64>) {
        while self.held.len() < free
            && let Some((_, number)) = self.owed.pop_first()
        {
            self.held.insert(number);
            self.set(number, State::Held, asks);
        }
        let seats = free.saturating_sub(self.held.len());
        while self.called.len() < seats.saturating_mul(CALLED_PER_SEAT)
            && let Some(number) = self.turns.next(self.counter + 1, self.called.len() >= seats)
        {
            self.counter += 1;
            self.called.insert((now, number));
            if let Some(place) = self.places.get_mut(&number) {
                place.turn = self.counter;
            }
            self.set(number, State::Called(now), asks);
        }
    }

    fn set(&mut self, number: u64, state: State, asks: Option<u64>) {
        if let Some(place) = self.places.get_mut(&number) {
            place.state = state;
            if asks != Some(number) {
                self.calls.push_back((place.path, place.call.clone()));
            }
        }
    }

    /// Counts the positions of all places, unless they were counted within [`COUNTED_FOR`].
    fn count(&mut self, now: Instant) {
        if self.counted_at.is_some_and(|at| now.since(at) < COUNTED_FOR) {
            return;
        }
        self.counted_at = Some(now);
        // Clients that were called are before the others.
        let before = self.places.len() - self.turns.waiting();
        let order = self.owed.iter().map(|&(_, number)| number).chain(self.turns.in_order());
        let ranks = (1..=self.owed.len()).chain(before + 1..);
        for (number, rank) in order.zip(ranks) {
            if let Some(place) = self.places.get_mut(&number) {
                place.rank = u32::try_from(rank).unwrap_or(u32::MAX);
            }
        }
    }

    /// The time after which a client has to ask again.
    fn again(&self) -> Duration {
        let all = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        (Duration::from_secs(1) * all / QUESTIONS_PER_SECOND).clamp(MIN_AGAIN, MAX_AGAIN)
    }

    /// The estimated time until `place` seats become free, by the mean interval of the newest freed seats.
    fn estimate(&self, now: Instant, place: u32) -> Option<Duration> {
        let (first, last) = (self.freed.front()?, self.freed.len());
        let mean = now.since(*first) / u32::try_from(last).unwrap_or(u32::MAX).max(1);
        Some(mean.saturating_mul(place))
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.places.len() <= self.max_places, "too many in line");
        assert_eq!(self.places.len(), self.numbers.len(), "one place each");
        assert_eq!(self.places.len(), self.by_end.len(), "an end for each");
        let named = |(number, place): (&u64, &Place)| self.numbers.get(&place.name) == Some(number);
        assert!(self.places.iter().all(named), "a name for each place");
        self.turns.check_invariants();
        assert_eq!(self.turns.len(), self.places.len(), "a turn for each");
        let count =
            |is: fn(&State) -> bool| self.places.values().filter(|place| is(&place.state)).count();
        assert_eq!(count(|it| *it == State::Waits), self.turns.waiting(), "that wait");
        assert_eq!(count(|it| *it == State::Owed), self.owed.len(), "that are owed a seat");
        assert_eq!(count(|it| *it == State::Held), self.held.len(), "seats held");
        assert!(self.called.len() <= count(|it| matches!(it, State::Called(_))), "called");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of a network of its own.
    fn at(n: u8) -> FourTuple {
        FourTuple::new(([10, 0, n, 1], 4000).into())
    }

    fn ask_from(line: &mut Line, millis: u64, n: u8, path: FourTuple, free: usize) -> Turn {
        let turn = line.ask(Instant::from_millis(millis), [n; 16], path, free, &[n]);
        line.check_invariants();
        turn
    }

    fn ask(line: &mut Line, millis: u64, n: u8, free: usize) -> Turn {
        ask_from(line, millis, n, at(n), free)
    }

    fn place(turn: Turn) -> Option<u32> {
        match turn {
            Turn::Waits { place, .. } => place,
            Turn::Called => panic!("called"),
        }
    }

    fn calls(line: &mut Line) -> Vec<u8> {
        core::iter::from_fn(|| line.next_call()).flat_map(|(_, call)| call).collect()
    }

    /// Several are called, the first that comes has the seat, and whoever comes next is owed one.
    #[test]
    fn some_are_called_for_each_seat_and_none_comes_twice_in_vain() {
        let mut line = Line::new(10);
        assert!(line.is_before(&[1; 16], 0) && !line.is_before(&[1; 16], 1));
        (1..=6).for_each(|n| assert_eq!(place(ask(&mut line, 0, n, 0)), Some(n.into())));
        line.on_freed(Instant::from_millis(500), 1);
        assert_eq!(calls(&mut line), [1, 2, 3, 4]);
        assert_eq!(place(ask(&mut line, 510, 6, 1)), Some(6), "it was not called");
        assert_eq!(ask(&mut line, 520, 2, 1), Turn::Called);
        line.leave(&[2; 16]);
        assert_eq!(place(ask(&mut line, 530, 3, 0)), Some(1), "too late");
        assert_eq!(place(ask(&mut line, 540, 1, 0)), Some(2), "it is counted anew now and then");
        assert!(line.is_before(&[7; 16], 1), "whoever comes later is behind them");
        // The next seat is theirs alone, in the order of their turns.
        line.on_freed(Instant::from_millis(600), 1);
        assert_eq!(calls(&mut line), [1]);
        assert_eq!(place(ask(&mut line, 610, 3, 1)), Some(1));
        assert_eq!(place(ask(&mut line, 620, 4, 1)), Some(2), "called, but that seat is held");
        assert_eq!(ask(&mut line, 630, 1, 1), Turn::Called);
    }

    /// Those that left without a word: four are called at a time, and others a second later.
    #[test]
    fn a_call_that_is_not_answered_passes_on() {
        let mut line = Line::new(100);
        (1..=9).for_each(|n| assert_eq!(place(ask(&mut line, 0, n, 0)), Some(n.into())));
        line.on_freed(Instant::from_millis(500), 1);
        assert_eq!(calls(&mut line), [1, 2, 3, 4]);
        assert_eq!(place(ask(&mut line, 1_400, 9, 1)), Some(9));
        assert_eq!(place(ask(&mut line, 1_500, 9, 1)), Some(9));
        assert_eq!(calls(&mut line), [5, 6, 7, 8]);
        assert_eq!(ask(&mut line, 2_500, 9, 1), Turn::Called);
    }

    /// One that is owed a seat and comes no more holds it for three of its questions.
    #[test]
    fn a_seat_is_held_for_three_questions() {
        let mut line = Line::new(100);
        (1..=6).for_each(|n| assert_eq!(place(ask(&mut line, 0, n, 0)), Some(n.into())));
        line.on_freed(Instant::from_millis(100), 1);
        assert_eq!(ask(&mut line, 110, 2, 1), Turn::Called);
        line.leave(&[2; 16]);
        let Turn::Waits { again, .. } = ask(&mut line, 120, 1, 0) else { panic!("called") };
        assert_eq!(again, MIN_AGAIN);
        line.on_freed(Instant::from_millis(200), 1);
        for millis in (1_000..=3_000).step_by(500) {
            assert_ne!(ask(&mut line, millis, 6, 1), Turn::Called);
        }
        assert_eq!(ask(&mut line, 3_130, 6, 1), Turn::Called);
    }

    #[test]
    fn a_client_that_does_not_ask_any_more_loses_its_place() {
        let mut line = Line::new(10);
        (1..=3).for_each(|n| assert_eq!(place(ask(&mut line, 0, n, 0)), Some(n.into())));
        for millis in (900..5_000).step_by(900) {
            assert_ne!(ask(&mut line, millis, 3, 0), Turn::Called);
        }
        assert_eq!((place(ask(&mut line, 5_000, 3, 0)), line.len()), (Some(1), 1));
        assert_eq!(ask(&mut line, 5_100, 3, 1), Turn::Called);
    }

    /// Issue 32: a line full of clients that had left was emptied by nobody's question, for a newcomer was
    /// turned away before it was looked through.
    #[test]
    fn a_full_line_of_clients_that_left_is_emptied_by_a_newcomer() {
        let mut line = Line::new(100);
        (0..100).for_each(|n| assert_eq!(place(ask(&mut line, 0, n, 0)), Some(u32::from(n) + 1)));
        assert_eq!(place(ask(&mut line, 2_999, 200, 1)), None, "they may still be there");
        assert_eq!(ask(&mut line, 3_001, 200, 1), Turn::Called);
        assert_eq!(line.len(), 1);
    }

    /// A client has left after three of the intervals that it was named, however short the line is by then.
    #[test]
    fn a_line_that_becomes_short_forgets_nobody() {
        let mut line = Line::new(16_384);
        for n in 0..12_000_u32 {
            let path = FourTuple::new((core::net::Ipv4Addr::from_bits(n << 8), 4000).into());
            let mut name = [0; 16];
            name[..4].copy_from_slice(&n.to_le_bytes());
            let _place = line.ask(Instant::ZERO, name, path, 0, &[]);
        }
        let Turn::Waits { again, .. } = ask(&mut line, 0, 255, 0) else { panic!("called") };
        assert_eq!(again, Duration::from_secs(3));
        let names: Vec<_> =
            line.numbers.keys().copied().filter(|name| *name != [255; 16]).collect();
        names.iter().for_each(|name| line.leave(name));
        assert_eq!(place(ask(&mut line, 5_000, 1, 0)), Some(2));
        assert!(line.has(&[255; 16]));
    }

    /// One address with many places, another with one: they take turns.
    #[test]
    fn a_source_with_many_places_is_served_as_one_with_one() {
        let mut line = Line::new(100);
        for n in 1..=64 {
            let path = FourTuple::new(([10, 0, 1, 1], 1000 + u16::from(n)).into());
            assert!(place(ask_from(&mut line, 0, n, path, 0)).is_some());
        }
        ask(&mut line, 0, 99, 0);
        assert_eq!(place(ask(&mut line, 100, 99, 0)), Some(2));
        line.on_freed(Instant::from_millis(200), 1);
        assert_eq!(calls(&mut line), [1, 99], "one of each");
        assert_eq!(ask(&mut line, 210, 99, 1), Turn::Called);
    }

    /// A full line has room for a source with fewer places, at the cost of the largest.
    #[test]
    fn a_full_line_makes_room_for_another_source() {
        let mut line = Line::new(8);
        for n in 1..=9 {
            let path = FourTuple::new(([10, 0, 1, 1], 1000 + u16::from(n)).into());
            let turn = ask_from(&mut line, 0, n, path, 0);
            assert_eq!(place(turn), (n < 9).then_some(n.into()), "{n}");
            assert!(n < 9 || matches!(turn, Turn::Waits { again: MAX_AGAIN, .. }));
        }
        assert!(place(ask(&mut line, 100, 99, 0)).is_some());
        assert!(!line.has(&[8; 16]) && line.has(&[7; 16]), "the newest went");
        assert_eq!(line.len(), 8);
    }

    #[test]
    fn the_estimate_is_the_place_times_the_time_between_free_seats() {
        let mut line = Line::new(10);
        (1..=3).for_each(|n| assert_eq!(place(ask(&mut line, 0, n, 0)), Some(n.into())));
        (1..=10).for_each(|n| line.on_freed(Instant::from_millis(200 * n), 0));
        let Turn::Waits { estimate, .. } = ask(&mut line, 2_200, 3, 0) else { panic!("called") };
        assert_eq!(estimate, Some(Duration::from_millis(600)));
    }
}
