//! T9: recorded datagrams are sent again.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use haulier_proto::Machine as _;
use haulier_proto::connection::Event;
use haulier_proto::server::{ServerEvent, ServerMachine};
use haulier_sim::{Shot, address};

use crate::support::{BOTH, CLIENT, Pair, Town, drain, drain_client, ms, server_config};

/// An observer records a whole join and sends every datagram of it a hundred times more, from the address
/// it came from and from others, at once and later. Nothing is delivered twice, no byte is sent in
/// answer, nothing changes.
#[test]
fn t9_a_recorded_join_replayed_a_hundred_times_does_nothing() {
    for keyed in BOTH {
        let mut pair = Pair::connected(keyed);
        let before = pair.settled();
        let wire = pair.wire.clone();
        for round in 0..100 {
            for (to_server, bytes) in &wire {
                if *to_server {
                    let from = if round % 2 == 0 { address(CLIENT) } else { address(90 + round) };
                    // A copy of the request from its own address is honest.
                    let _refused = pair.server.handle_datagram(pair.now, from, &mut bytes.clone());
                } else {
                    assert!(!pair.takes(false, bytes));
                }
            }
        }
        assert!(
            pair.server.poll_event(pair.now).is_none()
                && pair.client.poll_event(pair.now).is_none()
        );
        pair.assert_untouched(&before);
    }
}

/// A replay during the join: each datagram of the join passes three times, the copies a moment later and from
/// another address. The join completes, its block is delivered once, and the rule of three holds for the
/// other address too.
#[test]
fn t9_a_join_in_which_everything_comes_three_times() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 300_000);
        town.on_path(|from, to, datagram, out| {
            out.push(Shot::spoofed(from, to, datagram.clone()));
            out.push(Shot::spoofed(address(55), to, datagram.clone()));
        });
        town.assert_joins(ms(10_000));
        town.world.run_to(ms(20_000));
        town.assert_one_block();
        assert!(town.is_open());
        assert_eq!(town.server().server.stats().requests, 1, "one connection");
    }
}

/// A recording is played to the same server after its connection has gone, and to a restarted one. The
/// first remembers the request; the second answers it as a new one, three times its bytes at most, and
/// no connection can come of it.
#[test]
fn t9_a_recording_played_to_a_restarted_server_gets_no_connection() {
    for keyed in BOTH {
        let pair = Pair::connected(keyed);
        let mut server =
            ServerMachine::new(pair.now, 1_795_219_200, server_config(keyed), [3; 32]).unwrap();
        let (mut bytes_in, mut bytes_out) = (0, 0);
        for _ in 0..100 {
            for (_, bytes) in pair.wire.iter().filter(|(to_server, _)| *to_server) {
                bytes_in += bytes.len();
                let _refused =
                    server.handle_datagram(pair.now, address(CLIENT), &mut bytes.clone());
                while server.poll_event(pair.now).is_some() {}
                for (_, out) in drain(&mut server, pair.now) {
                    bytes_out += out.len();
                    assert!(bytes_out <= 3 * bytes_in);
                }
            }
        }
        assert_eq!(server.stats().accepted, 0);
        let later = pair.now + Duration::from_secs(11);
        server.handle_timeout(later);
        while server.poll_event(pair.now).is_some() {}
        let _none = drain(&mut server, later);
        assert_eq!(server.stats().connections, 0, "the uncompleted handshake is over");
    }
}

/// Every request of a hundred clients is recorded and played from another address before the server sees
/// the real one: the spoofed one wins the place, so the honest one's own copies are refused until it asks
/// again under another id. What is promised is that the server sends nothing to the honest address that it
/// did not ask for, and no more than three times to the other.
#[test]
fn t9_a_request_that_comes_first_from_elsewhere_is_metered() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 10_000);
        let seen = Rc::new(RefCell::new(0));
        let count = seen.clone();
        town.on_path(move |_, to, datagram, out| {
            if datagram[0] == 0x04 {
                *count.borrow_mut() += 1;
                out.push(Shot::spoofed(address(55), to, std::mem::take(datagram)));
            }
        });
        town.world.run_to(ms(12_000));
        assert!(*seen.borrow() > 3);
        assert!(town.client().app.joined_after().is_none());
        let meter = &town.server().meter;
        assert!(meter.unproven_bytes_to(address(55)) <= 3 * 1200 * *seen.borrow());
        assert_eq!(meter.unproven_bytes_to(address(CLIENT)), 0);
    }
}

/// An attacker on the path lets one datagram of eight through for a while, records those, and then plays them
/// from another address while all arrive. The window grows at that time, and took the oldest of them as new
/// ones once: 544 of 1,500, and their packets a second time.
#[test]
fn t9_a_window_that_grows_takes_no_recording() {
    const LOSSY: u64 = 12_000;
    for keyed in BOTH {
        let mut pair = Pair::connected(keyed);
        let (mut recorded, mut delivered, mut sent) = (Vec::new(), BTreeSet::new(), 0_u64);
        let mut taken = 0;
        for millis in 0..LOSSY + 4_000 {
            pair.now = pair.now + Duration::from_millis(1);
            pair.server.handle_timeout(pair.now);
            pair.client.handle_timeout(pair.now);
            while pair.client.poll_event(pair.now).is_some() {}
            let connection = pair.client.connection_mut().unwrap();
            connection.send_packet(millis.to_le_bytes().to_vec()).unwrap();
            for datagram in drain_client(&mut pair.client, pair.now) {
                sent += 1;
                if millis > LOSSY || sent.is_multiple_of(8) {
                    assert!(pair.takes(true, &datagram));
                    if millis < LOSSY {
                        recorded.push(datagram);
                    }
                }
            }
            for (_, datagram) in drain(&mut pair.server, pair.now) {
                let _late = pair.takes(false, &datagram);
            }
            take_packets(&mut pair, &mut delivered);
            if millis > LOSSY && millis % 100 == 0 {
                for datagram in &recorded {
                    let from = address(90);
                    let played = pair.server.handle_datagram(pair.now, from, &mut datagram.clone());
                    taken += u64::from(played.is_ok());
                }
                take_packets(&mut pair, &mut delivered);
            }
        }
        assert!(recorded.len() > 1_400 && delivered.len() > 5_000, "{} recorded", recorded.len());
        assert_eq!(taken, 0, "of {} recorded datagrams were taken again", recorded.len());
    }
}

/// Each packet has its own number, and comes once.
fn take_packets(pair: &mut Pair, delivered: &mut BTreeSet<u64>) {
    while let Some((_, event)) = pair.server.poll_event(pair.now) {
        if let ServerEvent::Connection(Event::Packet { data, .. }) = event {
            let number = u64::from_le_bytes(data[..].try_into().unwrap());
            assert!(delivered.insert(number), "packet {number} is delivered twice");
        }
    }
}
