//! `serve` as a process, and clients that are let in and ask for all that they can: what it holds, what it
//! computes, and whether an honest client is served meanwhile. The bounds are those of
//! `haulier_sim::oracle::program`; the same with many more scripts, without a network, is in
//! `crates/files/tests/bounds`.

use std::process::Command;
use std::time::Duration;

use haulier::{Block, Client, CloseReason, Connect, Event};
use haulier_files::BlockTag;
use haulier_files::messages::{Form, Message, Request, Want};
use haulier_sim::oracle::program::{LATENCY_NANOS, PROGRAM_BYTES, Program as Done};

use crate::support::{Dir, HAULIER, Program, data, fetch, wait_until};

/// What a server may map, in KiB: one that asks for more ends, and its clients see that.
const MAX_KIB: u64 = 6 << 20;

/// A server under a limit of memory, and its ticket.
fn limited(args: &[&str]) -> (Program, String) {
    let limited =
        format!("ulimit -v {MAX_KIB}; exec \"$0\" serve --json --bind 127.0.0.1:0 \"$@\"");
    let mut command = Command::new("sh");
    let server = Program::spawn(command.args(["-c", &limited, HAULIER]).args(args));
    let ticket = server.event("listening")["ticket"].as_str().unwrap().to_owned();
    (server, ticket)
}

fn connect(ticket: &str, request: Request) -> Client {
    let mut connect = Connect::try_from(ticket).unwrap();
    connect.request = request.to_bytes();
    Client::connect(connect).unwrap()
}

fn stat(server: &Program, field: usize) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).unwrap();
    let mut fields = text.rsplit(')').next().unwrap().split_whitespace();
    fields.nth(field).unwrap().parse().unwrap()
}

/// In ticks of 10 ms, all threads together.
fn cpu_nanos(server: &Program) -> u64 {
    (stat(server, 11) + stat(server, 12)) * 10_000_000
}

fn peak_bytes(server: &Program) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// A list of `count` pipes, as the bytes of the wire.
fn pipes(count: u32) -> Vec<u8> {
    let mut list = (count | 0x8000_0000).to_be_bytes().to_vec();
    for index in 0..count {
        let name = format!("{index:x}");
        list.extend([3, name.len() as u8]);
        list.extend(name.as_bytes());
        list.extend([0; 8]);
    }
    list
}

/// What comes of a connection until it says so; `None` if it is closed.
fn until<T>(client: &Client, mut is_it: impl FnMut(&Event) -> Option<T>) -> Result<T, CloseReason> {
    let found = wait_until(|| match client.wait(Duration::from_millis(20)).unwrap() {
        Some(Event::Closed(reason)) => Some(Err(reason)),
        Some(event) => is_it(&event).map(Ok),
        None => None,
    });
    found.expect("an event")
}

fn message(event: &Event) -> Option<Message> {
    match event {
        Event::Message { data, .. } => Some(Message::read(data).unwrap()),
        _ => None,
    }
}

/// Sixteen lists of 200,000 files, the longest that an inbox takes, and as many longer ones. They count as
/// memory of their clients, so most of these are closed; and an honest client is served.
#[test]
fn long_lists_count_to_the_limit_of_memory() {
    let dir = Dir::new();
    let (small, inbox) = (dir.file("small", &data(300_000)), dir.dir("in"));
    let args = [&*small, "--inbox", &inbox, "--most", "1M", "--max-memory", "64M"];
    let (server, ticket) = limited(&args);
    let at_first = peak_bytes(&server);
    let (long, longer) = (pipes(200_000), pipes(1_000_000));
    let mut received_bytes = 0;
    let clients: Vec<Client> = (0..32)
        .filter_map(|n| {
            let client = connect(&ticket, Request::Put);
            let go = |event: &Event| message(event).filter(|it| matches!(it, Message::Go { .. }));
            until(&client, go).ok()?;
            let list = if n % 2 == 0 { &long } else { &longer };
            received_bytes += list.len() as u64;
            client.send_block(&Block::new(BlockTag::Offer.to_u64(), list.clone())).ok()?;
            Some(client)
        })
        .collect();
    let fetched = dir.dir("fetched");
    fetch(&[&ticket, "-o", &fetched]).done();
    assert_eq!(dir.read("fetched/small"), data(300_000));
    let mut ends = Vec::new();
    for client in &clients {
        let ended = until(client, |event| match event {
            Event::BlockSent { .. } => None,
            event => message(event),
        });
        ends.push(format!("{ended:?}"));
    }
    let done = Done {
        received_bytes,
        // All that clients are let hold.
        held_bytes: 64 << 20,
        sessions: 1,
        peak_bytes: peak_bytes(&server).saturating_sub(at_first),
        ..Done::default()
    };
    assert_eq!(done.exceeds(), None, "{ends:#?}");
    assert!(done.peak_bytes < PROGRAM_BYTES + (256 << 20), "{done:?}");
    // None is let in: 200,000 pipes are more than 1 MiB.
    assert!(ends.iter().all(|end| end.starts_with("Err")), "{ends:#?}");
}

/// Four clients want the recipe of a file of 24 GiB, by 15 bytes each.
#[test]
fn four_small_wants_hold_nobody_up() {
    let dir = Dir::new();
    let served = dir.dir("s");
    std::fs::File::create(dir.path("s/big")).unwrap().set_len(24 << 30).unwrap();
    dir.file("s/small", &data(300_000));
    let (server, ticket) = limited(&[&served]);
    let clients: Vec<Client> = (0..4)
        .map(|_| {
            let request = Request::Open { name: "s/big".into(), accepts_packed: false };
            let client = connect(&ticket, request);
            until(&client, message).unwrap();
            let want = Message::Want(Want { number: 1, file: 0, form: Form::Recipe });
            client.send_message(want.to_bytes()).unwrap();
            client
        })
        .collect();
    // The server has them, for what comes after is answered.
    for client in &clients {
        let is_heard = wait_until(|| client.all_acked().then_some(()));
        assert!(is_heard.is_some());
    }
    let (before, fetched) = (cpu_nanos(&server), dir.dir("fetched"));
    fetch(&[&ticket, "s/small", "-o", &fetched]).done();
    let latency_nanos = cpu_nanos(&server) - before;
    assert!(latency_nanos < LATENCY_NANOS, "{latency_nanos} ns were computed before an answer");
}

/// One byte at 2^50 - 1 MiB of a pipe.
#[test]
fn a_byte_far_ahead_ends_its_connection_and_no_server() {
    let dir = Dir::new();
    let inbox = dir.dir("in");
    let (server, ticket) = limited(&["--inbox", &inbox, "--most", "100M"]);
    let client = connect(&ticket, Request::Put);
    let go = |event: &Event| message(event).filter(|it| matches!(it, Message::Go { .. }));
    until(&client, go).unwrap();
    client.send_message(Message::Offer(pipes(1).into()).to_bytes()).unwrap();
    let want = |event: &Event| match message(event) {
        Some(Message::Want(want)) => Some(want.number),
        _ => None,
    };
    let want = until(&client, want).unwrap();
    let tag = BlockTag::Part { file: 0, want, offset: (1 << 50) - (1 << 20) };
    client.send_block(&Block::new(tag.to_u64(), vec![7])).unwrap();
    let end = until(&client, |_| None::<()>);
    assert!(matches!(end, Err(CloseReason::There { code, .. }) if code.0 == 258), "{end:?}");
    assert!(peak_bytes(&server) < PROGRAM_BYTES);
    server.signal("INT");
    assert_eq!(server.finish().code, Some(0));
}
