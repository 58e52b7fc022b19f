//! The oracles: every lie, against a server and a client, under the bounds on memory and work; liars among
//! neighbours; servers that share a key. A check that finds a known fault must go on finding it.

use std::fmt::Debug;

use haulier_proto::internals::Role;
use haulier_sim::oracle::{
    KNOWN_FAULTS, Lie, Says, drill, fed, hoarders, is_known, neighbours, sisters, tokens,
};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

/// Runs a check of this fault with each seed. It must find nothing, or, if the fault is known, something.
fn judge<E: Debug>(fault: Option<u8>, name: &str, check: impl Fn(u64) -> Result<(), E>) {
    let found: Vec<_> =
        SEEDS.filter_map(|seed| check(seed).err().map(|what| (seed, what))).collect();
    for (seed, what) in &found {
        println!("{name}, seed {seed}: {what:?}");
    }
    if fault.is_some_and(is_known) {
        assert!(
            !found.is_empty(),
            "{name}: fault {fault:?} is found no more: take it out of KNOWN_FAULTS"
        );
    } else {
        assert!(found.is_empty(), "{name}, seed {}: {:?}", found[0].0, found[0].1);
    }
}

/// Memory, work at once and work in all, of both ends.
#[test]
fn a_lie_costs_no_more_than_it_brings() {
    for lie in Lie::ALL {
        // These two do harm to others only, below.
        let fault = lie.fault().filter(|fault| ![6, 7].contains(fault));
        for (role, name) in [(Role::Server, "server"), (Role::Client, "client")] {
            let name = format!("{lie:?} at a {name}");
            judge(fault, &name, |seed| drill(lie, role, seed));
        }
    }
}

/// The false reports of a liar do not harm the next client from its address.
#[test]
fn a_liar_harms_no_neighbour() {
    for lie in [Lie::SlowArrivals, Lie::FastArrivals, Lie::AckFlood, Lie::Announcements] {
        let fault = lie.fault().filter(|&fault| fault == 7);
        judge(fault, &format!("{lie:?} among neighbours"), |seed| neighbours(lie, seed));
    }
}

/// Any receiver, whatever it reports, is sent at most twice the bytes that reached it and a flight, and the
/// next client at its address is sent little more than at an unknown address.
#[test]
fn a_receiver_is_sent_no_more_than_its_link_takes() {
    for says in Says::ALL {
        judge(None, &format!("a receiver that says {says:?}"), |seed| {
            fed(says, seed).map(|fed| println!("{says:?}, seed {seed}: {fed:?}"))
        });
    }
}

/// The clients that make a server hold much memory are not always those with the largest single connection.
#[test]
fn hoarders_push_nobody_out() {
    judge(Some(6), "hoarders", hoarders);
}

/// A reset of one server does not end a connection of another that shares its keys.
#[test]
fn a_sister_resets_nothing() {
    judge(Some(2), "sisters", sisters);
}

/// One token is one admission, at its server, before it expires, whatever the clock does.
#[test]
fn a_token_is_taken_once() {
    judge(Some(4), "tokens", tokens);
}

/// Every known fault has something above that finds it.
#[test]
fn each_known_fault_has_its_finder() {
    let finders: Vec<u8> = Lie::ALL.into_iter().filter_map(Lie::fault).chain([2, 4]).collect();
    assert!(KNOWN_FAULTS.iter().all(|fault| finders.contains(fault)), "{finders:?}");
}
