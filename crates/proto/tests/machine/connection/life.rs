//! Keys, addresses, timeouts and closing (STANDARD-1, 2.3 and 5).

use std::time::Duration;

use haulier_proto::connection::{Block, CloseCode, CloseReason, ConnectionState, Event};
use haulier_proto::credentials::Secret;
use haulier_proto::internals::DataHeader;
use haulier_proto::server::{ServerEvent, ServerMachine};
use haulier_proto::{DropReason, Instant, Machine};

use super::{end_of, ends_at_server};
use crate::lan::{Lan, UNIX_TIME, Way, address, client_config, server_address, server_config};

#[test]
fn keys_are_updated_under_loss_and_reordering() {
    let mut server = server_config();
    server.connection.datagrams_per_key = 40;
    server.connection.max_rate_bps = 20_000_000;
    let mut lan = Lan::joined(server, client_config());
    lan.peer().send_block(&Block::new(1, vec![5; 500_000])).unwrap();
    let mut n = 0u64;
    lan.run_with(6_000, |_, _| {
        n += 1;
        !n.is_multiple_of(9)
    });
    assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Block { .. })));
    let (here, there) = (lan.client(0).stats(), lan.peer().stats());
    assert!(there.key_updates >= 3, "{} updates", there.key_updates);
    // H-2.3b: the other direction follows.
    assert!(here.key_updates.abs_diff(there.key_updates) <= 1);
    assert_eq!(here.datagrams_refused, 0, "late datagrams open with the previous key");
    assert_eq!(end_of(&lan, 0), None);
}

#[test]
fn an_old_key_lasts_two_minutes_at_most() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(130_000);
    assert_eq!(lan.client(0).stats().key_updates, 1);
    assert_eq!(lan.client(0).state(), ConnectionState::Connected);
}

/// H-5.1a: two idle ends keep their connection, with occasional pings.
#[test]
fn an_idle_connection_stays() {
    let mut lan = Lan::joined(server_config(), client_config());
    let mut datagrams = 0;
    lan.run(1_000);
    lan.run_with(60_000, |_, _| {
        datagrams += 1;
        true
    });
    assert_eq!(lan.client(0).state(), ConnectionState::Connected);
    assert_eq!(lan.peer().state(), ConnectionState::Connected);
    assert!((20..=60).contains(&datagrams), "{datagrams} datagrams in a minute");
}

#[test]
fn silence_ends_both_sides() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run_with(16_000, |_, _| false);
    assert_eq!(end_of(&lan, 0), Some(&CloseReason::TimedOut));
    assert_eq!(ends_at_server(&lan), [&CloseReason::TimedOut]);
    assert_eq!(lan.server.stats().connections, 0);
}

/// H-5.3: a close is repeated until it is answered, so that two may be lost.
#[test]
fn a_close_survives_the_loss_of_two() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(1_000);
    lan.client(0).close(CloseCode::application(300).unwrap(), "the player left");
    assert_eq!(
        lan.client(0).send_message(&b"x"[..]).unwrap_err().to_string(),
        "the connection is not open"
    );
    let mut ups = 0;
    lan.run_with(3_000, |way, _| {
        ups += u32::from(matches!(way, Way::Up(_)));
        !matches!(way, Way::Up(_)) || ups > 2
    });
    assert_eq!(ups, 3, "three closes, the third is answered");
    let [CloseReason::There { code, reason }] = &ends_at_server(&lan)[..] else { panic!() };
    assert_eq!((code.0, reason.as_str()), (300, "the player left"));
    assert_eq!(lan.server.stats().connections, 0);
    assert!(lan.clients[0].is_closed());
    assert_eq!(lan.clients[0].poll_timeout(), None);
}

/// The application reads its statistics when it gets the close event, and a driver keeps running until then.
#[test]
fn a_closed_connection_is_kept_until_the_next_event() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(1_000);
    lan.client(0).close(CloseCode::DONE, "");
    let (now, from, mut datagram) = (lan.now, lan.addresses[0], Vec::new());
    lan.clients[0].poll_datagram(now, &mut datagram).expect("a close");
    let _refused = lan.server.handle_datagram(now, from, &mut datagram);
    let (id, event) = lan.server.poll_event(now).expect("it has closed");
    assert!(matches!(event, ServerEvent::Connection(Event::Closed(_))));
    while lan.server.poll_datagram(now, &mut datagram).is_some() {}
    assert!(lan.server.connection(id).is_some());
    assert_eq!((lan.server.poll_event(now), lan.server.stats().connections), (None, 0));
}

/// 5.2: a client whose NAT mapping expired has a new address; the transfer continues there after a
/// challenge.
#[test]
fn a_client_that_moves_is_followed_after_a_challenge() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(500);
    lan.peer().send_block(&Block::new(1, vec![5; 400_000])).unwrap();
    lan.run(100);
    let (old, new) = (lan.addresses[0], address(900));
    lan.addresses[0] = new;
    let mut first_to_new = None;
    lan.run_with(5_000, |way, datagram| {
        if way == Way::Down(0) && first_to_new.is_none() {
            first_to_new = Some(datagram.len());
        }
        true
    });
    assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Block { .. })));
    assert_eq!(first_to_new, Some(13 + 9 + 16), "a challenge and nothing else");
    let moved = ServerEvent::Connection(Event::AddressChanged);
    assert_eq!(lan.server_events.iter().filter(|(_, event)| *event == moved).count(), 1);
    assert_eq!(lan.peer().address(), new);
    assert_ne!(old, new);
}

/// T15: a copied datagram from a victim's address causes challenges to it, at most three times the bytes of
/// the copy, and the client's address does not change.
#[test]
fn a_hijacked_datagram_does_not_move_the_client() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(500);
    lan.client(0).send_message(&b"hello"[..]).unwrap();
    let mut datagram = Vec::new();
    assert!(lan.clients[0].poll_datagram(lan.now, &mut datagram).is_some());
    // The copy overtakes the original.
    let victim = address(901);
    let bytes = datagram.len();
    lan.server.handle_datagram(lan.now, victim, &mut datagram.clone()).unwrap();
    let replayed = lan.server.handle_datagram(lan.now, lan.addresses[0], &mut datagram);
    assert_eq!(replayed, Err(DropReason::Duplicate));
    let (mut to_victim, mut out) = (0, Vec::new());
    for _ in 0..5_000 {
        lan.now = Instant::from_nanos(lan.now.as_nanos() + 1_000_000);
        lan.server.handle_timeout(lan.now);
        while let Some(to) = lan.server.poll_datagram(lan.now, &mut out) {
            to_victim += if to.remote == victim { out.len() } else { 0 };
        }
    }
    assert!(to_victim > 0 && to_victim <= 3 * bytes, "{to_victim} bytes for {bytes}");
    assert_eq!(lan.peer().address(), lan.addresses[0]);
}

/// 3.6: a restarted server does not know its clients; they learn this at once, not after a timeout.
#[test]
fn a_restarted_server_is_noticed() {
    let mut config = server_config();
    config.credentials.reset_secret = Some(Secret::from_bytes([21; 32]));
    let mut lan = Lan::joined(config.clone(), client_config());
    lan.run(500);
    lan.server = ServerMachine::new(lan.now, UNIX_TIME, config, [200; 32]).unwrap();
    lan.client(0).send_message(&b"are you there?"[..]).unwrap();
    lan.settle();
    assert_eq!(end_of(&lan, 0), Some(&CloseReason::ConnectionUnknown));
    assert_eq!(lan.server.stats().resets, 1);
    assert!(lan.clients[0].is_closed());
}

/// H-3.7a, b: random datagrams cause next to no resets, and a forged reset has no effect.
#[test]
fn resets_are_neither_provoked_nor_forged() {
    let mut lan = Lan::joined(server_config(), client_config());
    for i in 0..20_000u64 {
        let mut noise = [0x0c; 64];
        noise[1..9].copy_from_slice(&(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes());
        let refused = lan.server.handle_datagram(lan.now, address(5), &mut noise);
        assert_eq!(refused, Err(DropReason::UnknownConnection));
        while lan.server.poll_datagram(lan.now, &mut Vec::new()).is_some() {}
        let mut reset = [0x08; 17];

        reset[1..9].copy_from_slice(&i.to_le_bytes());
        let refused = lan.clients[0].handle_datagram(lan.now, server_address(), &mut reset);
        assert_eq!(refused, Err(DropReason::BadTag));
    }
    // One random id in 65,536 looks like the server's own.
    assert!(lan.server.stats().resets <= 3, "{} resets", lan.server.stats().resets);
    assert_eq!(lan.client(0).state(), ConnectionState::Connected);
}

/// Timeouts, acks and keys survive a clock that jumps an hour ahead and back.
#[test]
fn a_clock_that_jumps_does_no_harm() {
    let mut lan = Lan::joined(server_config(), client_config());
    lan.run(500);
    let before = lan.now;
    for jump in [3_600, 0, 7_200, 0] {
        lan.now = before + Duration::from_secs(jump);
        // All timers fire; by this clock nothing was received for an hour.
        lan.client(0).send_message(&b"tick"[..]).unwrap();
        lan.settle();
        lan.peer().send_packet(&b"tock"[..]).unwrap();
        lan.settle();
    }
    lan.now = before;
    lan.peer().send_block(&Block::new(1, vec![5; 300_000])).unwrap();
    lan.run(6_000);
    assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Block { .. })));
    assert_eq!(end_of(&lan, 0), None);
}

/// [H-2.2a] and [H-2.2c], from outside: in each direction no number is sent twice with one key, across key
/// updates and retransmissions, and one of every 256 numbers is skipped.
#[test]
fn no_number_is_sealed_twice_and_some_are_skipped() {
    let mut server = server_config();
    server.connection.datagrams_per_key = 100;
    server.connection.max_rate_bps = 20_000_000;
    let mut lan = Lan::joined(server, client_config());
    let (mut numbers, mut n) = (Vec::new(), 0u64);
    lan.peer().send_block(&Block::new(1, vec![5; 2_000_000])).unwrap();
    lan.run_with(10_000, |way, datagram| {
        n += 1;
        if matches!(way, Way::Down(_)) {
            numbers.push(DataHeader::read(datagram).unwrap().number);
        }
        !n.is_multiple_of(11)
    });
    assert!(lan.peer().stats().key_updates > 10);
    assert!(numbers.len() > 1_700, "{}", numbers.len());
    // Numbers increase strictly, so none is used twice with any key.
    assert!(numbers.windows(2).all(|two| two[0] < two[1]), "a number went back");
    for (at, window) in numbers.chunk_by(|a, b| a / 256 == b / 256).enumerate().skip(1) {
        assert!(window.len() < 256, "nothing skipped in the {at}th 256");
    }
}

/// H-3.3b: a server whose whole first flight is lost repeats it unasked, within its amplification limit.
#[test]
fn a_lost_first_flight_is_repeated_without_a_request() {
    let mut lan = Lan::new(server_config());
    lan.add(client_config().with_copies(10));
    let mut responses = 0;
    lan.settle_with(|way, _| matches!(way, Way::Up(_)));
    assert_eq!(lan.server.stats().handshakes, 1);
    // The client's retransmissions are held back, so nothing triggers it.
    lan.run_with(3_000, |way, _| {
        responses += u32::from(matches!(way, Way::Down(_)));
        matches!(way, Way::Down(_))
    });
    assert!(responses >= 1, "nothing came");
    assert!(lan.clients[0].connection().is_some());
}

/// [H-2b]: datagrams of any kind that are reflected to their sender are dropped without an answer.
#[test]
fn reflected_datagrams_are_dropped() {
    let mut lan = Lan::new(server_config());
    lan.add(client_config());
    let (mut ups, mut downs) = (Vec::new(), Vec::new());
    lan.settle_with(|way, datagram| {
        match way {
            Way::Up(_) => ups.push(datagram.clone()),
            Way::Down(_) => downs.push(datagram.clone()),
        }
        true
    });
    lan.run(1_000);
    assert!(ups.len() > 1 && downs.len() > 1);
    for mut datagram in ups {
        let refused = lan.clients[0].handle_datagram(lan.now, server_address(), &mut datagram);
        assert!(matches!(refused, Err(DropReason::WrongRole | DropReason::UnknownConnection)));
    }
    let from = lan.addresses[0];
    for mut datagram in downs {
        let refused = lan.server.handle_datagram(lan.now, from, &mut datagram);
        assert_eq!(refused, Err(DropReason::WrongRole));
    }
    let mut out = Vec::new();
    assert!(lan.clients[0].poll_datagram(lan.now, &mut out).is_none());
    assert_eq!(lan.server.poll_datagram(lan.now, &mut out), None);
}

/// A client that only receives sends nothing on its own. When its NAT mapping expires during a block it
/// sends a probe half a second later, and the server learns its new address.
#[test]
fn a_download_survives_an_expired_nat_mapping() {
    let mut server = server_config();
    server.connection.max_rate_bps = 1_000_000;
    let mut lan = Lan::joined(server, client_config());
    lan.run(500);
    lan.peer().send_block(&Block::new(1, vec![5; 400_000])).unwrap();
    lan.run(300);
    lan.addresses[0] = address(900);
    // Its next acks are lost too: nothing is sent from the new address without a probe.
    lan.run_with(100, |way, _| !matches!(way, Way::Up(_)));
    lan.run(700);
    assert_eq!(lan.peer().address(), address(900));
    lan.run(6_000);
    assert!(lan.client_events[0].iter().any(|event| matches!(event, Event::Block { .. })));
}

/// H-2.3b: a datagram overtaken by a key update still opens, for three probe timeouts and no longer.
#[test]
fn a_late_datagram_opens_with_the_key_before() {
    for (wait, is_late) in [(40, false), (20_000, true)] {
        let mut server = server_config();
        server.connection.datagrams_per_key = 30;
        server.connection.max_rate_bps = 8_000_000;
        let mut lan = Lan::joined(server, client_config());
        lan.run(100);
        lan.peer().send_message(&b"held up"[..]).unwrap();
        let mut held = Vec::new();
        lan.settle_with(|way, datagram| {
            let is_it = matches!(way, Way::Down(_)) && held.is_empty();
            if is_it {
                held.clone_from(datagram);
            }
            !is_it
        });
        let phase = held[0] & 1;
        lan.peer().send_block(&Block::new(1, vec![5; 40 * 1024])).unwrap();
        let mut last = phase;
        lan.run_with(wait, |way, datagram| {
            if matches!(way, Way::Down(_)) {
                last = datagram[0] & 1;
            }
            true
        });
        let opened = lan.clients[0].handle_datagram(lan.now, server_address(), &mut held);
        if is_late {
            assert!(opened.is_err(), "{opened:?}");
        } else {
            assert_ne!(last, phase, "the key was updated");
            assert_eq!(opened, Ok(()));
        }
    }
}
