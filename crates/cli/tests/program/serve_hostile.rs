//! Servers that lie to `fetch`, made of the library's own parts: what they send ends in no file, and
//! never outside of the directory. And a client that lies to `serve` about where it is.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haulier::proto::client::{ClientConfig, ClientMachine};
use haulier::proto::connection::Connection;
use haulier::proto::server::ServerMachine;
use haulier::proto::{Instant, Machine};
use haulier::udp::{Clock, Runner, Socket};
use haulier::{Block, CloseCode, Credentials, ServerConfig, ServerCredentials, ServerEvent};

use crate::support::{Dir, Program, data, fetch, serve};

const PROTOCOL: u64 = 0x6861_756c_6669_6c65;

/// A server that answers every request in the same way. Dropping it ends it.
struct Liar {
    addr: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Liar {
    fn start(answer: impl Fn(Instant, &mut Connection) + Send + 'static) -> Self {
        let credentials = ServerCredentials::default().with_open_access();
        let config = ServerConfig::new(PROTOCOL, credentials);
        let (clock, socket) =
            (Clock::start(), Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap());
        let addr = socket.local_addr().to_string();
        let machine = ServerMachine::new(clock.now(), 0, config, [5; 32]).unwrap();
        let mut driver = Runner::new(machine, socket, clock);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                driver.turn(Duration::from_millis(5)).unwrap();
                let now = driver.clock().now();
                while let Some((id, event)) = driver.machine.poll_event(now) {
                    if matches!(event, ServerEvent::Connecting { .. }) {
                        answer(now, driver.machine.connection_mut(id).unwrap());
                    }
                }
            }
        });
        Self { addr, stop, thread: Some(thread) }
    }

    /// A `fetch` from it, with this outcome, which leaves nothing in its directory nor beside it.
    fn assert_refused(&self, name: &[&str], code: i32, words: &str) {
        let dir = Dir::new();
        let inbox = dir.dir("inbox");
        let args = [&[&*self.addr], name, &["--open", "-o", &inbox, "--timeout", "1"]].concat();
        let message = fetch(&args).error(code);
        assert!(message.contains(words), "{message}");
        assert!(!message.contains(char::is_control), "{message:?}");
        assert!(dir.names("inbox").is_empty(), "{:?}", dir.names("inbox"));
        assert_eq!(dir.names(""), ["inbox"]);
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// A list of one file, as the page says: index 0, of 3,000 bytes.
fn offer(name: &str) -> Vec<u8> {
    let content = vec![7; 3_000];
    let head = [&[1, 1, 1, u8::try_from(name.len()).unwrap()], name.as_bytes(), &[0; 8]].concat();
    [&head[..], &[0x4b, 0xb8], blake3::hash(&content).as_bytes()].concat()
}

/// The file with index 0, unasked.
const WHOLE: u64 = 2 << 59;

#[test]
fn a_name_never_leaves_the_directory() {
    for name in ["../evil", "/tmp/haulier-evil", "..", "..\\evil", "a\x1b[2Jb", "x\0", ".bashrc"] {
        let liar = Liar::start(move |now, connection| {
            connection.send_message(offer(name)).unwrap();
            connection.send_block(now, &Block::new(WHOLE, vec![7; 3_000])).unwrap();
        });
        liar.assert_refused(&[], 4, "are not safe");
    }
    assert!(!std::fs::exists("/tmp/haulier-evil").unwrap());
}

#[test]
fn a_file_that_is_not_what_was_offered_is_not_stored() {
    let liar = Liar::start(|now, connection| {
        connection.send_message(offer("world.bin")).unwrap();
        connection.send_block(now, &Block::new(WHOLE, vec![8; 3_000])).unwrap();
    });
    liar.assert_refused(&["world.bin"], 4, "not the one of the ticket");
}

#[test]
fn what_is_no_answer_is_refused() {
    let tag = Liar::start(|now, connection| {
        connection.send_message(offer("a")).unwrap();
        connection.send_block(now, &Block::new(9, vec![7; 3_000])).unwrap();
    });
    tag.assert_refused(&[], 4, "is it `haulier serve`");
    for message in [&b""[..], b"\x01", b"\x01\xff", b"\x09name"] {
        let liar = Liar::start(move |_, connection| connection.send_message(message).unwrap());
        let run = fetch(&[&liar.addr, "--open", "-o", "-", "--timeout", "1"]);
        assert_eq!(run.code, Some(4), "{}", run.what);
    }
    let list = Liar::start(|_, connection| connection.send_message(&b"\x01\x02"[..]).unwrap());
    assert_eq!(fetch(&[&list.addr, "--open", "--list"]).code, Some(4));
}

/// A file without a list, a list without a file, and nothing at all.
#[test]
fn half_an_answer_is_not_waited_for_without_end() {
    let file = Liar::start(|now, connection| {
        connection.send_block(now, &Block::new(WHOLE, vec![7; 3_000])).unwrap();
    });
    file.assert_refused(&[], 3, "nothing new for 1 s");
    let list = Liar::start(|_, connection| connection.send_message(offer("a")).unwrap());
    list.assert_refused(&[], 3, "nothing new for 1 s");
    Liar::start(|_, _| {}).assert_refused(&[], 3, "nothing new for 1 s");
}

/// A server's words are shown, and obeyed by no terminal.
#[test]
fn a_close_is_said_without_what_a_terminal_obeys() {
    let words = "\x1b]0;evil\x07 go away";
    let liar = Liar::start(|now, connection| connection.close(now, CloseCode(999), words));
    liar.assert_refused(&[], 3, "go away");
}

/// The first datagram of a client that asks an open server for this.
fn request(addr: &str, asked: &[u8]) -> Vec<u8> {
    let addr = addr.parse().unwrap();
    let mut config = ClientConfig::new(addr, PROTOCOL, Credentials::Open);
    config.request = asked.to_vec();
    let seed = *blake3::hash(asked).as_bytes();
    let mut client = ClientMachine::new(Instant::ZERO, config, seed).unwrap();
    let mut datagram = Vec::new();
    assert!(client.poll_datagram(Instant::ZERO, &mut datagram).is_some());
    datagram
}

/// A bare request may have a spoofed address, or be a copy of another client's: it gets an answer, changes
/// nothing, and is not in the log.
#[test]
fn who_does_not_prove_its_address_leaves_no_trace() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("in", &data(3_000)), "--open", "--once"]);
    let asked: [&[u8]; 5] = [b"HLF2\x01\0in", b"HLF2\x01\0no", b"HLF2\x02\0", b"HLF9", b""];
    for asked in asked {
        let liar = UdpSocket::bind("127.0.0.1:0").unwrap();
        let request = request(&serving.addr, asked);
        for _ in 0..3 {
            liar.send_to(&request, &serving.addr).unwrap();
        }
        // A response: the server has taken it in.
        let mut response = [0; 1200];
        let (bytes, _) = liar.recv_from(&mut response).unwrap();
        assert!(response[0] == 0x07 && bytes > 50, "{bytes} bytes");
        // This request from another address belongs to no connection.
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(&request, &serving.addr).unwrap();
    }
    fetch(&[&serving.addr, "--open", "-o", &dir.path("out")]).done();
    let run = serving.program.finish();
    let done = run.done();
    assert_eq!((&done["clients"], &done["files"]), (&1.into(), &1.into()), "{done}");
    let of_clients = run.events().into_iter().filter(|event| event["client"].is_u64());
    let names: Vec<_> = of_clients.map(|event| event["event"].clone()).collect();
    assert_eq!(names, ["connected", "sent", "closed"], "{}", run.what);
}

/// What can be read once is not read for a request that may be a copy of another client's.
#[test]
fn who_does_not_prove_its_address_gets_nothing_of_a_pipe() {
    let dir = Dir::new();
    let args = ["serve", "--json", "--bind", "127.0.0.1:0", "--open", "-"];
    let serving = Program::start_with(&args, b"once");
    let addr = serving.event("listening")["addr"].as_str().unwrap().to_owned();
    let liar = UdpSocket::bind("127.0.0.1:0").unwrap();
    liar.send_to(&request(&addr, b"HLF2\x01\0"), &addr).unwrap();
    liar.recv_from(&mut [0; 1200]).unwrap();
    fetch(&[&addr, "--open", "-o", &dir.path("out")]).done();
    assert_eq!(dir.read("out"), b"once");
}
