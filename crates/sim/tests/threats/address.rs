//! T15: changes of address, true and spoofed.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use haulier_proto::Machine as _;
use haulier_proto::connection::{CloseReason, Event};
use haulier_sim::attack::raw::RawClient;
use haulier_sim::{Shot, address};

use crate::support::{BOTH, Keyed, Pair, SERVER, Ticker, Town, drain, knock, last, ms, secret};

/// The client's NAT mapping expires in the middle of a transfer, three times: the transfer goes on from the
/// new address once that is proven, and nothing is lost.
#[test]
fn t15_a_client_whose_address_changes_mid_transfer_gets_its_block() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 2_000_000);
        for (at, port) in [(400, 4100), (900, 4200), (1400, 4300)] {
            town.world.run_to(ms(at));
            town.rebind(port);
        }
        town.assert_joins(ms(40_000));
        let changes = town.address_changes();
        println!(
            "{keyed:?}: {changes} changes, joined after {:?}",
            town.client().app.joined_after()
        );
        assert!(changes >= 1);
        town.world.run_to(ms(45_000));
        assert!(town.is_open());
    }
}

/// It changes between the request and the response, when the server knows the client by its request's
/// address only. The responses go nowhere and the copies of the request from the new address are dropped,
/// for they may be forged: the handshake fails with a reason, and does not hang.
#[test]
fn t15_a_change_before_the_first_response_ends_with_a_reason() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 100_000);
        town.world.run_to(ms(10));
        town.rebind(4100);
        town.world.run_to(ms(30_000));
        let event = last(town.client());
        assert!(matches!(event, Some(Event::Closed(CloseReason::NoAnswer))), "{keyed:?} {event:?}");
        assert_eq!(town.server().server.stats().connections, 0);
    }
}

/// It changes after the first response and before the server knows of it: the first data comes from a new
/// address, which must be proven by a challenge inside a response.
#[test]
fn t15_a_change_right_after_the_response_is_proven() {
    for keyed in BOTH {
        for at in 41..48 {
            let mut town = Town::new(keyed, 100_000);
            town.world.run_to(ms(at));
            town.rebind(4100);
            town.world.run_to(ms(30_000));
            let host = town.client();
            let event = last(host);
            let is_typed = matches!(event, Some(Event::Closed(_)));
            assert!(host.app.joined_after().is_some() || is_typed, "{keyed:?} {at}: {event:?}");
        }
    }
}

/// An attacker on the path copies the client's datagrams and sends them first, in the name of a victim: the
/// server challenges the victim, with three times the bytes it believes came from there at most, and goes on
/// with the client where it is.
#[test]
fn t15_a_hijack_with_copied_datagrams_reaches_the_victim_three_times_at_most() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 1_000_000);
        let copied = Rc::new(Cell::new(0));
        let count = copied.clone();
        let victim = address(66);
        town.on_path(move |from, to, datagram, out| {
            if to == address(SERVER) && datagram[0] & 0xfc == 0x0c {
                // First in the victim's name; the original follows.
                let original = std::mem::take(datagram);
                count.set(count.get() + original.len() as u64);
                out.push(Shot::spoofed(victim, to, original.clone()));
                out.push(Shot::spoofed(from, to, original));
            }
        });
        town.world.run_to(ms(15_000));
        assert_eq!(town.address_changes(), 0, "the victim never answered");
        // In the handshake the two cannot be distinguished; after it the block must come.
        let host = town.client();
        println!("{keyed:?}: {:?}", host.app.joined_after());
        let sent = town.server().meter.unproven_bytes_to(victim);
        assert!(sent <= 3 * copied.get(), "{sent} bytes to the victim for {}", copied.get());
    }
}

/// A copy now and then, of an open connection: the client does not notice.
#[test]
fn t15_a_hijack_now_and_then_does_not_slow_the_client() {
    let time = |hijack: bool| {
        let mut town = Town::new(Keyed::Secret, 1_000_000);
        let mut seen = 0;
        town.on_path(move |from, to, datagram, out| {
            if hijack && to == address(SERVER) && datagram[0] & 0xfc == 0x0c {
                seen += 1;
                if seen > 3 && seen % 4 == 0 {
                    let original = std::mem::take(datagram);
                    out.push(Shot::spoofed(address(66), to, original.clone()));
                    out.push(Shot::spoofed(from, to, original));
                }
            }
        });
        town.assert_joins(ms(20_000));
        town.client().app.joined_after().unwrap()
    };
    let (quiet, attacked) = (time(false), time(true));
    println!("{quiet:?} without, {attacked:?} with");
    assert!(attacked <= quiet * 12 / 10, "{quiet:?} {attacked:?}");
}

/// A hostile client with the keys sends data in a victim's name, of every length there is: the challenges
/// stay within three times its bytes to the byte. One of 36 bytes bought 114 once.
#[test]
fn t15_challenges_stay_within_the_credit_to_the_byte() {
    for length in 1..60usize {
        let mut pair = Pair::connected(Keyed::Secret);
        let mut raw = RawClient::new(Some(&secret()), 3);
        let _answer = knock(&mut pair.server, &mut raw, pair.now, address(70));
        let mut data = raw.link.as_mut().unwrap().seal(&vec![0; length]);
        let most = 3 * data.len();
        pair.server.handle_datagram(pair.now, address(71), &mut data).unwrap();
        let mut sent = 0;
        for _ in 0..100 {
            for (to, datagram) in drain(&mut pair.server, pair.now) {
                sent += if to == address(71) { datagram.len() } else { 0 };
                assert!(sent <= most, "{sent} bytes for {} ", most / 3);
            }
            pair.now = pair.now + Duration::from_millis(100);
            pair.server.handle_timeout(pair.now);
        }
        assert!(sent > 0, "no challenge");
    }
}

/// Datagrams that only look as if they were of a connection, from a thousand addresses, while a real client
/// moves: none of the thousand is challenged.
#[test]
fn t15_strangers_do_not_bring_challenges() {
    let mut town = Town::new(Keyed::Secret, 500_000);
    let mut n = 0;
    let act = move |_, out: &mut Vec<Shot>| {
        n += 1;
        let mut bytes = vec![n as u8; 60];
        bytes[0] = 0x0c;
        out.push(Shot::spoofed(address(1000 + n), address(SERVER), bytes));
    };
    let every = Duration::from_millis(1);
    town.attacker(9, Ticker { every, next: ms(0), left: 1000, act });
    town.assert_joins(ms(10_000));
    for n in 0..=1000 {
        assert_eq!(town.server().meter.unproven_bytes_to(address(1000 + n)), 0);
    }
}
