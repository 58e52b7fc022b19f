//! What became of datagrams.

use super::*;
use crate::bulk::flight::{Fate, Flight, Flights};

fn flights(count: u64, apart_micros: u64) -> Flights {
    let mut flights = Flights::default();
    for number in 0..count {
        let sent_at = micros(number * apart_micros);
        let fate = Fate::InFlight;
        flights.push(Flight { number, sent_at, bytes: 1228.0, slice: None, fate, backlog: 0.0 });
    }
    flights
}

fn fates(flights: &Flights) -> Vec<Fate> {
    flights.from(0).map(|flight| flight.fate).collect()
}

fn lose(flight: &Flight) -> Fate {
    if flight.fate == Fate::InFlight { Fate::Lost } else { flight.fate }
}

#[test]
fn what_was_overtaken_is_lost_and_comes_to_life_when_it_is_late() {
    let mut flights = flights(6, 1000);
    flights.on_received(0..=0, |_, _| {});
    flights.on_received(2..=3, |_, _| {});
    flights.settle(lose);
    assert_eq!(fates(&flights)[..4], [Fate::Received, Fate::Lost, Fate::Received, Fate::Received]);
    assert_eq!((fates(&flights)[4], flights.settled()), (Fate::InFlight, 4));
    let mut news = Vec::new();
    flights.on_received(0..=3, |flight, before| news.push((flight.number, before)));
    assert_eq!(news, [(1, Fate::Lost)], "each is news once");
    assert_eq!(fates(&flights)[1], Fate::Received);
    flights.check_invariants();
}

/// Once a datagram that counted as lost has come 2 ms behind its successors, others get as long, and a
/// quarter more. Those that an ack names for the first time, however far below its largest, are no such.
#[test]
fn reordering_is_learned() {
    let mut flights = flights(20, 1000);
    flights.on_received(2..=2, |_, _| {});
    flights.on_received(1..=1, |_, _| {});
    flights.settle(lose);
    assert_eq!(fates(&flights)[..3], [Fate::Lost, Fate::Received, Fate::Received], "none learned");
    flights.on_received(0..=0, |_, _| {});
    flights.on_received(4..=4, |_, _| {});
    flights.settle(lose);
    assert_eq!(fates(&flights)[3], Fate::InFlight, "1 ms is not long any more");
    flights.on_received(6..=6, |_, _| {});
    flights.settle(lose);
    assert_eq!(fates(&flights)[3], Fate::Lost);
}

#[test]
fn what_is_given_up_is_not_lost_and_old_entries_go() {
    let mut flights = flights(3_000, 100);
    flights.on_received(0..=9, |_, _| {});
    flights.give_up();
    assert!(flights.get(9).is_none(), "no more than an ack can name are kept");
    assert_eq!(flights.get(2_990).unwrap().fate, Fate::GivenUp);
    assert_eq!(flights.from(0).count(), 1024);
    let mut before = None;
    flights.on_received(2_990..=2_990, |_, fate| before = Some(fate));
    assert_eq!(before, Some(Fate::GivenUp));
    flights.settle(lose);
    flights.check_invariants();
}
