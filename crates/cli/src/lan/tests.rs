//! What is said is heard again; what a stranger says is bounded, and obeyed by no terminal.

use std::net::IpAddr;

use mdns_sd::{ServiceEvent, ServiceInfo};

use super::found::{Wanted, addresses};
use super::*;

fn record() -> Record {
    let record = Record {
        version: Some(Record::VERSION),
        lets_in: Some(LetsIn::Tickets),
        files: Some(3),
        takes_files: true,
        identity: None,
    };
    record.with_identity(&[0xab; 32])
}

fn read(pairs: &[(&str, &[u8])]) -> Record {
    let value = |key: &str| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    Record::read(value)
}

fn server(name: &str, ips: &str, port: u16, pairs: &[(&str, &str)]) -> ServiceEvent {
    let info = ServiceInfo::new(SERVICE, name, "h.local.", ips, port, pairs).unwrap();
    ServiceEvent::ServiceResolved(Box::new(info.as_resolved_service()))
}

fn heard(wanted: Wanted<'_>, events: impl IntoIterator<Item = ServiceEvent>) -> Heard {
    let mut heard = Heard::default();
    for event in events {
        heard.take(wanted, event);
    }
    heard
}

fn found(events: impl IntoIterator<Item = ServiceEvent>) -> Heard {
    heard(Wanted::All, events)
}

#[test]
fn what_is_said_is_read_again() {
    let pairs = record().pairs();
    let bytes: Vec<(&str, &[u8])> = pairs.iter().map(|(k, v)| (*k, v.as_bytes())).collect();
    assert_eq!(read(&bytes), record());
    assert!(pairs.iter().all(|(key, value)| key.len() + value.len() < 30), "{pairs:?}");
    assert_eq!(read(&[]), Record::default());
}

/// The identity is 32 bytes, of which a quarter is said.
#[test]
fn no_more_of_the_identity_is_said_than_tells_servers_apart() {
    assert_eq!(record().identity_hex().unwrap(), "ab".repeat(8));
}

#[test]
fn values_of_strangers_are_left_out() {
    let hostile: [(&str, &[u8]); 9] = [
        ("v", b"-1"),
        ("v", b"256"),
        ("v", b"1\x1b[2J"),
        ("access", b"everybody\x1b]0;x\x07"),
        ("files", b"99999999999999999999"),
        ("files", b"\xff\xfe"),
        ("id", b"abababababababab00"),
        ("id", "äääääääää".as_bytes()),
        ("id", b"+1+1+1+1+1+1+1+1"),
    ];
    for pair in hostile {
        assert_eq!(read(&[pair]), Record::default(), "{pair:?}");
    }
}

#[test]
fn addresses_are_few_possible_and_the_likeliest_first() {
    let at = |text: &str, scope| (text.parse::<IpAddr>().unwrap(), scope);
    let ips = [
        at("127.0.0.1", 1),
        at("fe80::1", 3),
        at("224.0.0.251", 2),
        at("0.0.0.0", 2),
        at("255.255.255.255", 2),
        at("ff02::fb", 2),
        at("fd00::7", 2),
        at("192.168.1.7", 2),
        at("192.168.1.7", 3),
        at("2001:db8::7", 2),
    ];
    let listed: Vec<String> =
        addresses(ips.into_iter(), 4016).iter().map(ToString::to_string).collect();
    let expected = [
        "192.168.1.7:4016",
        "[fd00::7]:4016",
        "[2001:db8::7]:4016",
        "[fe80::1%3]:4016",
        "127.0.0.1:4016",
    ];
    assert_eq!(listed, expected);
    let many = (1..=200).map(|i| (IpAddr::from([10, 0, 0, i]), 0));
    assert_eq!(addresses(many, 4016).len(), 8);
    assert!(addresses([at("10.0.0.1", 0)].into_iter(), 0).is_empty(), "no port");
}

#[test]
fn what_is_heard_is_bounded_and_can_go_again() {
    let many = (0..500).map(|i| server(&format!("s{i}"), "10.0.0.1", 4016, &[]));
    let all = found(many);
    assert_eq!((all.wanted.len(), all.is_overfull), (256, true));
    let text = table(&all, Duration::from_secs(3));
    assert!(text.contains("more than these 256") && text.contains("--lan=NAME"), "{text}");
    let gone = ServiceEvent::ServiceRemoved(SERVICE.into(), format!("b.{SERVICE}"));
    let events = [server("a", "10.0.0.1", 1, &[]), server("b", "10.0.0.2", 1, &[]), gone];
    let names: Vec<String> = found(events).wanted.into_keys().collect();
    assert_eq!(names, ["a"]);
    assert!(found([server("nobody", "224.0.0.1", 1, &[])]).wanted.is_empty());
}

/// Whoever makes up servers hides none from those who know its name.
#[test]
fn a_named_server_is_found_behind_any_number_of_others() {
    let many = (0..500).map(|i| server(&format!("s{i}"), "10.0.0.1", 4016, &[]));
    let events = many.chain([server("kitchen", "10.0.0.2", 4016, &[])]);
    let heard = heard(Wanted::Named("kitchen"), events);
    assert_eq!(heard.wanted.into_keys().collect::<Vec<_>>(), ["kitchen"]);
    assert!(heard.others.len() < 10 && !heard.is_overfull, "{:?}", heard.others);
}

#[test]
fn a_terminal_obeys_nothing_of_it() {
    let evil = "x\u{1b}[2J\u{202e}y\n";
    let pairs = [("v", "1"), ("access", "open"), ("files", "2"), ("id", "\u{1b}[31m")];
    let servers = found([server(evil, "10.0.0.1", 4016, &pairs)]);
    let wait = Duration::from_secs(3);
    let others = heard(Wanted::Named("k"), [server(evil, "10.0.0.1", 4016, &pairs)]);
    for text in [table(&servers, wait), not_found("k", &others, wait)] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        assert!(text.contains('x') && text.contains('y'), "{text:?}");
    }
    let text = table(&servers, wait);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("10.0.0.1:4016  everybody (--open)  2"), "{text}");
}

#[test]
fn a_list_says_how_long_it_looked_and_what_a_name_is_worth() {
    let pairs = [("v", "1"), ("access", "ticket"), ("files", "3"), ("inbox", "1")];
    let servers = found([server("kitchen", "10.0.0.1,10.0.0.2", 4016, &pairs)]);
    let text = table(&servers, Duration::from_millis(1500));
    assert!(text.contains("kitchen  10.0.0.1:4016 and 1 more  by ticket  3, takes files  none"));
    assert!(text.contains("heard in 1.5 s") && text.contains("can say any of this"), "{text}");
    let report = Report::new("haulier", true, false);
    let failure = say_list(&found([]), Duration::from_secs(3), &report).unwrap_err();
    assert_eq!(failure.exit_code(), 1, "a script asks whether there is one");
    let text = failure.to_string();
    assert!(text.contains("for 3 s") && text.contains("UDP port 5353"), "{text}");
    let text = table(&found([server("old", "10.0.0.1", 1, &[("v", "9")])]), Duration::ZERO);
    assert!(text.contains("another version"), "{text}");
}
