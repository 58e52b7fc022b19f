//! The line of those for whom there is no seat yet (CROWDS, "The line").
//!
//! A place is the name of a request whose address is proven. Its client asks again now and then, and learns
//! its place; when a seat becomes free, the first who still ask are called, with a datagram that was made
//! when they asked last, and the seat is kept for them until they have missed their next questions.
//!
//! The invariant: seats are given in the order of the places, and no place is left behind one that came after
//! it and still asks. What is done for a question does not depend on how long the line is: who is where is
//! found out once in a while for all, after a time and not after a number of questions.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use super::admission::Prefix;
use super::memory::RequestName;
use crate::{FourTuple, Instant};

/// Questions a second that all in line together are told to ask: 2,000 datagrams of 1200 bytes are 19 Mbit/s,
/// and some 1 % of a core.
const QUESTIONS_PER_SECOND: u32 = 2_000;

/// The bounds of the time after which a client is told to ask again. What is free is told at once, so this is
/// for those whose call was lost, and shows that they are there.
const MIN_AGAIN: Duration = Duration::from_secs(1);
const MAX_AGAIN: Duration = Duration::from_secs(10);

/// For those who have no place: so many do not come back together (a client adds a fifth at random).
const AGAIN_WITHOUT_PLACE: Duration = Duration::from_secs(30);

/// Who has not asked for so many of its intervals has left.
const INTERVALS_TO_LEAVE: u32 = 3;

/// Places are counted anew after this long.
const COUNTED_FOR: Duration = Duration::from_millis(100);

/// Free seats that the estimate looks back at.
const FREED: usize = 64;

/// Places of one prefix.
const MAX_OF_PREFIX: usize = 1_024;

/// Who waits.
#[derive(Clone, Debug)]
struct Place {
    name: RequestName,
    path: FourTuple,
    asked: Instant,
    /// How many are before it, itself included, when it was counted last.
    rank: u32,
    /// What calls it.
    call: Vec<u8>,
    is_called: bool,
}

/// What somebody who asks is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There is a seat.
    Called,
    /// There is none yet.
    Waits { place: Option<u32>, estimate: Option<Duration>, again: Duration },
}

/// The line.
#[derive(Debug, Default)]
pub(super) struct Line {
    max_places: usize,
    /// In the order in which they came.
    places: BTreeMap<u64, Place>,
    numbers: BTreeMap<RequestName, u64>,
    of_prefix: BTreeMap<Prefix, usize>,
    came: u64,
    counted_at: Option<Instant>,
    /// When seats became free, the newest last.
    freed: VecDeque<Instant>,
    /// Calls to be sent.
    calls: VecDeque<(FourTuple, Vec<u8>)>,
}

impl Line {
    /// A line of so many places at most; with 0 there is none.
    pub(super) fn new(max_places: usize) -> Self {
        Self { max_places, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether somebody without a place has to take one, because others wait or there is no seat.
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

    /// Somebody whose address is proven asks, while so many seats are free. `call` is what is to be sent when
    /// it is called.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        name: RequestName,
        path: FourTuple,
        free: usize,
        call: &[u8],
    ) -> Turn {
        if !self.has(&name) && !self.take_place(now, name, path, call) {
            return Turn::Waits { place: None, estimate: None, again: AGAIN_WITHOUT_PLACE };
        }
        let place = self.numbers.get(&name).and_then(|number| self.places.get_mut(number));
        if let Some(place) = place {
            (place.asked, place.path) = (now, path);
        }
        let is_old = |at: Instant| now.since(at) >= COUNTED_FOR;
        if self.counted_at.is_none_or(is_old) {
            self.count(now);
        }
        self.call(free);
        let Some(place) = self.numbers.get(&name).and_then(|number| self.places.get(number)) else {
            return Turn::Waits { place: None, estimate: None, again: AGAIN_WITHOUT_PLACE };
        };
        if place.is_called {
            return Turn::Called;
        }
        let estimate = self.estimate(now, place.rank);
        Turn::Waits { place: Some(place.rank), estimate, again: self.again() }
    }

    fn take_place(
        &mut self,
        now: Instant,
        name: RequestName,
        path: FourTuple,
        call: &[u8],
    ) -> bool {
        let of_prefix = self.of_prefix.entry(Prefix::of(path.remote)).or_default();
        if self.places.len() >= self.max_places || *of_prefix >= MAX_OF_PREFIX {
            if *of_prefix == 0 {
                self.of_prefix.remove(&Prefix::of(path.remote));
            }
            return false;
        }
        *of_prefix += 1;
        self.came += 1;
        // Who has just come is the last; it is counted right with all others.
        let rank = u32::try_from(self.places.len() + 1).unwrap_or(u32::MAX);
        self.numbers.insert(name, self.came);
        let place = Place { name, path, asked: now, rank, call: call.to_vec(), is_called: false };
        self.places.insert(self.came, place);
        true
    }

    /// Who has a seat, or does not want one any more.
    pub(super) fn leave(&mut self, name: &RequestName) {
        let place = self.numbers.remove(name).and_then(|number| self.places.remove(&number));
        let Some(place) = place else { return };
        let prefix = Prefix::of(place.path.remote);
        if let Some(count) = self.of_prefix.get_mut(&prefix) {
            *count -= 1;
            if *count == 0 {
                self.of_prefix.remove(&prefix);
            }
        }
    }

    /// A seat became free, of so many that are free now.
    pub(super) fn on_freed(&mut self, now: Instant, free: usize) {
        if self.max_places == 0 {
            return;
        }
        if self.freed.len() == FREED {
            self.freed.pop_front();
        }
        self.freed.push_back(now);
        self.call(free);
    }

    /// The next call to be sent.
    pub(super) fn next_call(&mut self) -> Option<(FourTuple, Vec<u8>)> {
        self.calls.pop_front()
    }

    /// Forgets who has left, and finds out the places of the others.
    fn count(&mut self, now: Instant) {
        self.counted_at = Some(now);
        let patience = self.again() * INTERVALS_TO_LEAVE;
        let gone = self.places.values().filter(|place| now.since(place.asked) > patience);
        let gone: Vec<_> = gone.map(|place| place.name).collect();
        gone.iter().for_each(|name| self.leave(name));
        for (rank, place) in (1..).zip(self.places.values_mut()) {
            place.rank = rank;
        }
    }

    /// Calls the first, as many as there are seats.
    fn call(&mut self, free: usize) {
        for place in self.places.values_mut().take(free) {
            if !place.is_called {
                place.is_called = true;
                self.calls.push_back((place.path, place.call.clone()));
            }
        }
    }

    /// When somebody is to ask again.
    fn again(&self) -> Duration {
        let all = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        (Duration::from_secs(1) * all / QUESTIONS_PER_SECOND).clamp(MIN_AGAIN, MAX_AGAIN)
    }

    /// How long it may take until so many seats are free: from the newest of those that became free.
    fn estimate(&self, now: Instant, place: u32) -> Option<Duration> {
        let (first, last) = (self.freed.front()?, self.freed.len());
        let mean = now.since(*first) / u32::try_from(last).unwrap_or(u32::MAX).max(1);
        Some(mean.saturating_mul(place))
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.places.len() <= self.max_places, "too many in line");
        assert_eq!(self.places.len(), self.numbers.len(), "one place each");
        assert_eq!(self.of_prefix.values().sum::<usize>(), self.places.len(), "by prefix");
        let named = |(number, place): (&u64, &Place)| self.numbers.get(&place.name) == Some(number);
        assert!(self.places.iter().all(named), "a name for each place");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u8) -> FourTuple {
        FourTuple::new(([10, 0, 0, n], 4000).into())
    }

    fn ask(line: &mut Line, millis: u64, n: u8, free: usize) -> Turn {
        let turn = line.ask(Instant::from_millis(millis), [n; 16], at(n), free, &[n]);
        line.check_invariants();
        turn
    }

    fn place(turn: Turn) -> Option<u32> {
        match turn {
            Turn::Waits { place, .. } => place,
            Turn::Called => panic!("called"),
        }
    }

    #[test]
    fn seats_are_given_in_the_order_of_the_line() {
        let mut line = Line::new(10);
        assert!(line.is_before(&[1; 16], 0) && !line.is_before(&[1; 16], 1));
        assert_eq!([1, 2, 3].map(|n| place(ask(&mut line, 0, n, 0))), [1, 2, 3].map(Some));
        line.on_freed(Instant::from_millis(500), 1);
        assert_eq!(line.next_call(), Some((at(1), alloc::vec![1])));
        assert_eq!(line.next_call(), None);
        // Nobody takes the seat before the one who was called.
        assert_eq!(place(ask(&mut line, 510, 3, 1)), Some(3));
        assert_eq!(ask(&mut line, 520, 1, 1), Turn::Called);
        line.leave(&[1; 16]);
        assert_eq!(place(ask(&mut line, 700, 3, 0)), Some(2));
        assert!(line.is_before(&[4; 16], 1), "who comes later is behind them");
    }

    #[test]
    fn who_does_not_ask_any_more_loses_its_place() {
        let mut line = Line::new(10);
        (1..=3).for_each(|n| assert_eq!(place(ask(&mut line, 0, n, 0)), Some(n.into())));
        for millis in (900..5_000).step_by(900) {
            assert_ne!(ask(&mut line, millis, 3, 0), Turn::Called);
        }
        assert_eq!((place(ask(&mut line, 5_000, 3, 0)), line.len()), (Some(1), 1));
        assert_eq!(ask(&mut line, 5_100, 3, 1), Turn::Called);
    }

    #[test]
    fn the_line_is_bounded_and_who_has_no_place_comes_back_later() {
        let mut line = Line::new(2);
        let mut again = [1, 2, 3].map(|n| ask(&mut line, 0, n, 0));
        assert_eq!(again.map(place), [Some(1), Some(2), None]);
        again.sort_by_key(|turn| matches!(turn, Turn::Waits { place: None, .. }));
        assert!(matches!(again[2], Turn::Waits { again, .. } if again == AGAIN_WITHOUT_PLACE));
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
