//! T3, T7, T8, T16: datagrams that were forged, or changed on the way.

use std::time::Duration;

use haulier_proto::connection::{CloseReason, Event};
use haulier_proto::internals::{DataHeader, Frame, Role, WireId, open_tag};
use haulier_sim::hosts::PROTOCOL_ID;
use haulier_sim::{Rng, Shot, address};

use crate::support::{BOTH, Keyed, Pair, SERVER, Town, drain, last, ms};

/// An attacker that knows everything about a connection except its ids, in mode `open` too: a million forged
/// closes, resets and acks at each end, from the addresses of the two ends. None is accepted.
#[test]
fn t3_t16_a_million_blind_guesses_close_and_ack_nothing() {
    for keyed in BOTH {
        let mut pair = Pair::connected(keyed);
        let before = pair.settled();
        let mut rng = Rng::new(7);
        let mut plain = Vec::new();
        Frame::Close { code: 0, reason: "" }.write(&mut plain);
        let mut out = Vec::new();
        for round in 0..1_000_000u32 {
            out.clear();
            let (to, sender) = (WireId(rng.next_u64().to_le_bytes()), rng.next_u64().to_le_bytes());
            let from = if round % 2 == 0 { Role::Client } else { Role::Server };
            if round % 8 == 7 {
                out.push(0x08);
                out.extend_from_slice(&to.0);
                out.extend_from_slice(&sender);
            } else {
                DataHeader { from, phase: false, to, number: rng.below(40) as u32 }.write(&mut out);
                out.extend_from_slice(&plain);
                let tag = open_tag(PROTOCOL_ID, sender, &out);
                out.extend_from_slice(&tag);
            }
            assert!(!pair.takes(from == Role::Client, &out));
        }
        // Of these few resets the client takes none.
        let resets = drain(&mut pair.server, pair.now);
        assert!(resets.len() <= 30, "{} resets", resets.len());
        for (_, reset) in resets {
            assert!(reset[0] == 0x08 && !pair.takes(false, &reset));
        }
        pair.assert_untouched(&before);
    }
}

/// An observer on the path knows the receiver's id, for it is in the clear. With keys that helps nothing: a
/// hundred thousand forged datagrams to the right id, and resets, change nothing. In mode `open` the id of
/// the sender stands in the tag, and the observer wins: that is what `open` means, and it is tested below
/// so that the limit is on record.
#[test]
fn t3_t16_an_observer_without_keys_closes_nothing() {
    let mut pair = Pair::connected(Keyed::Secret);
    let before = pair.settled();
    let mut rng = Rng::new(8);
    let wire = pair.wire.clone();
    for _ in 0..100_000 {
        let (to_server, mut bytes) = rng.pick(&wire).clone();
        // A real header with a fresh number, and a tag that is a guess.
        if bytes[0] & 0xfc == 0x0c {
            bytes[9..13].copy_from_slice(&(rng.below(100) as u32).to_le_bytes());
            let at = bytes.len() - 16;
            bytes[at..].copy_from_slice(&rng.bytes(16));
        } else if !to_server {
            bytes = [&[0x08][..], &rng.bytes(16)].concat();
        } else {
            continue;
        }
        assert!(!pair.takes(to_server, &bytes));
    }
    pair.assert_untouched(&before);
}

/// Mode `open` does not protect from an observer: one datagram with both ids ends the connection. A
/// test of what is not promised.
#[test]
fn t16_in_mode_open_an_observer_can_close() {
    let mut pair = Pair::connected(Keyed::Open);
    let of = |to_server: bool| {
        let data = |(to, bytes): &&(bool, Vec<u8>)| *to == to_server && bytes[0] & 0xfc == 0x0c;
        let bytes = &pair.wire.iter().find(data).unwrap().1;
        <[u8; 8]>::try_from(&bytes[1..9]).unwrap()
    };
    let (server_id, client_id) = (of(true), of(false));
    let mut out = Vec::new();
    let header =
        DataHeader { from: Role::Client, phase: false, to: WireId(server_id), number: 1000 };
    header.write(&mut out);
    Frame::Close { code: 0, reason: "" }.write(&mut out);
    let tag = open_tag(PROTOCOL_ID, client_id, &out);
    out.extend_from_slice(&tag);
    assert!(pair.takes(true, &out));
    while pair.server.poll_event(pair.now).is_some() {}
    let _none = drain(&mut pair.server, pair.now);
    while pair.server.poll_event(pair.now).is_some() {}
    assert_eq!(pair.server.stats().connections, 0);
}

/// An attacker on the path flips a bit of every datagram in turn: each is preceded by a changed copy of
/// itself, with its own source. The transfer completes, what is delivered is right, and no connection is
/// closed. In mode `open` too: a checksum finds flipped bits.
#[test]
fn t8_a_flipped_copy_before_every_datagram() {
    for keyed in BOTH {
        for seed in 0..20 {
            let mut town = Town::new(keyed, 100_000);
            let mut rng = Rng::new(seed);
            town.on_path(move |from, to, datagram, out| {
                let original = datagram.clone();
                let bits = 8 * datagram.len() as u64;
                let bit = if rng.below(4) == 0 { rng.below(256) } else { rng.below(bits) };
                let at = (bit / 8) as usize % datagram.len();
                datagram[at] ^= 1 << (bit % 8);
                out.push(Shot::spoofed(from, to, original));
            });
            town.assert_joins(ms(20_000));
            town.world.run_to(ms(22_000));
            assert!(town.is_open(), "{keyed:?} {seed}: {:?}", last(town.client()));
        }
    }
}

/// A third of all datagrams arrive with flipped bits and nothing else in their place. It takes longer.
#[test]
fn t8_a_third_of_everything_is_damaged() {
    for keyed in BOTH {
        for seed in 0..20 {
            let mut town = Town::new(keyed, 100_000);
            let mut rng = Rng::new(100 + seed);
            town.on_path(move |_, _, datagram, _| {
                if rng.below(3) == 0 {
                    let at = rng.below(datagram.len() as u64) as usize;
                    datagram[at] ^= 1 << rng.below(8);
                }
            });
            town.assert_joins(ms(60_000));
        }
    }
}

/// The first response's frames are damaged, and its welcome is not. The welcome is read once only, so a
/// client that took it for part of a bad datagram could never read another: the join hung until its
/// time-out. It counts as a lost datagram now.
#[test]
fn t8_a_response_damaged_behind_its_welcome_is_a_lost_datagram() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 50_000);
        let mut left = 1;
        town.on_path(move |_, _, datagram, _| {
            if datagram[0] == 0x07 && left > 0 {
                left -= 1;
                let at = datagram.len() - 20;
                datagram[at] ^= 1;
            }
        });
        town.assert_joins(ms(2_000));
    }
}

/// A refusal of this request, without a check.
fn refusal(request: &[u8], code: u8) -> Vec<u8> {
    [&[0x06], &request[5..13], &[code, 0], &[0; 16]].concat()
}

/// A refusal without a check says "another secret", from an observer of the request: a hint and no more.
/// The client goes on asking, and the server's welcome makes it forget the hint.
#[test]
fn t16_a_false_refusal_does_not_keep_a_client_out() {
    for keyed in BOTH {
        for code in 0..=9u8 {
            let mut town = Town::new(keyed, 50_000);
            town.on_path(move |from, to, datagram, out| {
                if datagram[0] == 0x04 && to == address(SERVER) {
                    out.push(Shot::spoofed(to, from, refusal(datagram, code)));
                }
            });
            town.assert_joins(ms(3_000));
        }
        // A hint that no welcome contradicts is believed, after a second.
        let mut town = Town::new(keyed, 50_000);
        town.on_path(|from, to, datagram, out| {
            if datagram[0] == 0x04 {
                out.push(Shot::spoofed(to, from, refusal(datagram, 2)));
                datagram.clear();
            }
        });
        town.world.run_to(ms(3_000));
        let refused = matches!(last(town.client()), Some(Event::Closed(CloseReason::Refused(_))));
        assert!(refused, "{:?}", last(town.client()));
        let closed = town.client().app.first(|event| matches!(event, Event::Closed(_)));
        assert!(closed.unwrap() >= Duration::from_secs(1));
    }
}
