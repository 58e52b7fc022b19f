//! Round trips, and what people do to tickets.

use alloc::{format, vec};

use proptest::prelude::*;

use base64ct::{Base64UrlUnpadded, Encoding};

use super::*;

fn ticket() -> Ticket {
    let addresses = ["192.0.2.1:4000", "[2001:db8::1]:4001"].map(|text| text.parse().unwrap());
    Ticket::new(addresses.into(), 77, TicketAccess::Secret(Secret::from_bytes([0xa5; 32])))
        .unwrap()
        .with_digest([1; 32])
}

fn encoded(bytes: &[u8]) -> String {
    format!("{PREFIX}{}", Base64UrlUnpadded::encode_string(bytes))
}

#[test]
fn tickets_come_back() {
    let open = Ticket::new(ticket().addresses, 1 << 60, TicketAccess::Open).unwrap();
    for ticket in [ticket(), ticket().with_identity([2; 32]).unwrap(), open] {
        let text = ticket.to_text();
        assert!(text.starts_with("haulier1:"));
        assert_eq!(Ticket::parse(&text).as_ref(), Ok(&ticket));
        assert_eq!(Ticket::parse(&format!("\t{text}\r\n")), Ok(ticket));
    }
}

/// Each character replaced by every other one, each left out, each pair swapped.
#[test]
fn every_slip_is_refused() {
    let text = ticket().to_text();
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_ =+/.:\u{e9}";
    let characters: Vec<char> = text.chars().collect();
    for at in 0..characters.len() {
        for with in alphabet.chars().filter(|&with| with != characters[at]) {
            let mut other = characters.clone();
            other[at] = with;
            // A space at the very end leaves a ticket that is cut off, which is refused as well.
            let other: String = other.into_iter().collect();
            assert!(Ticket::parse(&other).is_err(), "{other}");
        }
        let mut other = characters.clone();
        other.remove(at);
        assert!(Ticket::parse(&other.iter().collect::<String>()).is_err(), "without {at}");
        let mut other = characters.clone();
        let next = (at + 1) % other.len();
        other.swap(at, next);
        let swapped: String = other.iter().collect();
        assert!(swapped == text || Ticket::parse(&swapped).is_err(), "swapped {at}");
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    let bytes = Base64UrlUnpadded::decode_vec(&ticket().to_text()[PREFIX.len()..]).unwrap();
    for bit in 0..8 * bytes.len() {
        let mut other = bytes.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(Ticket::parse(&encoded(&other)).is_err(), "bit {bit}");
    }
}

/// A line that a terminal or a chat cut is distinguished from one with a wrong letter, where that is
/// possible. If the last group does not decode, it is not: so each message names both causes.
#[test]
fn a_ticket_that_ends_early_is_cut_off() {
    let text = ticket().to_text();
    for length in 1..text.len() {
        let error = Ticket::parse(&text[..length]).unwrap_err();
        let is_whole_bytes = length <= PREFIX.len() || (length - PREFIX.len()) % 4 < 2;
        assert!(error == TicketError::CutOff || !is_whole_bytes, "{length}: {error}");
        let said = format!("{error}");
        assert!(said.contains("cut off"), "{length}: {said}");
    }
}

#[test]
fn each_refusal_says_what_to_do() {
    let error = |text: &str| Ticket::parse(text).unwrap_err();
    for nothing in ["", "hello", "haulier", "haulier-token1:AAAA", "haulier0:AA", "haulierx:AA"] {
        let expected =
            if nothing == "haulier" { TicketError::CutOff } else { TicketError::NotATicket };
        assert_eq!(error(nothing), expected, "{nothing}");
    }
    assert_eq!(error("haulier2:anything at all"), TicketError::Newer);
    assert_eq!(error("haulier1:"), TicketError::CutOff);
    let bytes = Base64UrlUnpadded::decode_vec(&ticket().to_text()[PREFIX.len()..]).unwrap();
    // With the hash made right again, so that nothing else can be the reason.
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut other = bytes[..bytes.len() - CHECK_BYTES].to_vec();
        change(&mut other);
        other.extend(check(&other));
        Ticket::parse(&encoded(&other)).unwrap_err()
    };
    assert_eq!(with(&|bytes| bytes[0] |= 8), TicketError::Newer, "unknown flag");
    assert_eq!(with(&|bytes| bytes[0] |= 128), TicketError::Newer, "unknown flag");
    assert_eq!(with(&|bytes| bytes[0] = 6), TicketError::Mistyped, "an identity in mode open");
    assert_eq!(with(&|bytes| bytes[9] = 0), TicketError::Mistyped, "no address");
    assert_eq!(with(&|bytes| bytes[9] = 9), TicketError::Mistyped, "nine addresses");
    assert_eq!(with(&|bytes| bytes.push(0)), TicketError::Mistyped, "left over");
    assert_eq!(Ticket::new(Vec::new(), 1, TicketAccess::Open), Err(TicketError::Addresses));
    let nine = vec![SocketAddr::from(([0; 4], 1)); 9];
    assert_eq!(Ticket::new(nine, 1, TicketAccess::Open), Err(TicketError::Addresses));
    let open = Ticket::new(ticket().addresses, 1, TicketAccess::Open).unwrap();
    assert_eq!(open.with_identity([0; 32]), Err(TicketError::OpenIdentity));
}

#[test]
fn a_ticket_does_not_print_itself() {
    let printed = format!("{:?}", ticket());
    assert!(printed.contains("192.0.2.1:4000"), "{printed}");
    assert!(!printed.contains("165"), "{printed}");
}

proptest! {
    #[test]
    fn no_text_panics(text in "(haulier[0-9]?:?)?[A-Za-z0-9_-]{0,200}", any in ".{0,100}") {
        prop_assert!(Ticket::parse(&text).is_err());
        prop_assert!(Ticket::parse(&any).is_err());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = bytes;
        let check = check(&bytes);
        bytes.extend(check);
        let _whatever = Ticket::parse(&encoded(&bytes));
    }
}

/// `serve` at 0.0.0.0 once printed tickets that led every client to itself.
#[test]
fn an_address_that_leads_nobody_to_the_server_is_refused() {
    let new =
        |text: &str| Ticket::new(vec![text.parse().unwrap()], 7, TicketAccess::Open).map(drop);
    for text in ["0.0.0.0:4000", "[::]:4000", "192.0.2.1:0"] {
        assert_eq!(new(text), Err(TicketError::Unspecified(text.parse().unwrap())));
    }
    let scoped = "[fe80::1%3]:4000";
    assert_eq!(new(scoped), Err(TicketError::LinkLocal(scoped.parse().unwrap())));
    assert_eq!(new("[2001:db8::1]:4000"), Ok(()));
    let mut whole = ticket();
    whole.addresses[0].set_ip([0, 0, 0, 0].into());
    assert_eq!(Ticket::parse(&whole.to_text()), Err(TicketError::Unspecified(whole.addresses[0])));
}
