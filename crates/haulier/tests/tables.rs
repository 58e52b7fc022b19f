//! A client computes the tables of the repair code, which take 8 MiB, as soon as a datagram is missing, and
//! not before. A client is this program, started again for its own test: its memory is measured.

#![cfg(target_os = "linux")]

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use haulier::proto::client::ClientConfig;
use haulier::{Block, Client, Credentials, Event, Secret, Server, ServerConfig, ServerCredentials};

const PROTOCOL_ID: u64 = 7;

/// In the environment of a client: where its server is.
const SERVER: &str = "HAULIER_TEST_SERVER";

/// Bytes of the tables.
const TABLES: usize = 8 << 20;

/// After this a test has failed, however slow the machine is.
const MAX: Duration = Duration::from_secs(60);

#[test]
fn only_a_client_that_misses_something_computes_tables() {
    assert!(growth(usize::MAX, usize::MAX) < TABLES / 2, "a join that lost nothing");
    // Nothing that could repair it arrives: the tables are there before.
    assert!(growth(20, 10) >= TABLES, "a join that lost a datagram");
}

/// The client, if this program is one.
#[test]
fn client() {
    let Ok(server) = env::var(SERVER) else { return };
    let credentials = Credentials::Secret { secret: secret(), identity: None };
    let config = ClientConfig::new(server.parse().unwrap(), PROTOCOL_ID, credentials);
    let before = held();
    let client = Client::connect(config).unwrap();
    let began = Instant::now();
    let mut is_done = false;
    while !is_done && held() < before + TABLES {
        assert!(began.elapsed() < MAX, "neither the block nor tables");
        let event = client.wait(Duration::from_millis(1)).unwrap();
        is_done = matches!(event, Some(Event::Block { .. }));
    }
    println!("\ngrown by {}", held() - before);
}

/// By how many bytes a client grows if this number of the server's datagrams reach it, one of them excepted.
fn growth(arriving: usize, lost: usize) -> usize {
    let credentials = ServerCredentials::default().with_secret(secret());
    // Few enough for the buffer of a relay that is held up.
    let world = Block::new(1, vec![7; 64 << 10]);
    let config = ServerConfig::new(PROTOCOL_ID, credentials).with_first_block(Some(world));
    let server = Server::bind("127.0.0.1:0", config).unwrap();
    let client = Command::new(env::current_exe().unwrap())
        .args(["client", "--exact", "--nocapture"])
        .env(SERVER, relay(server.local_addr(), arriving, lost).to_string())
        .output()
        .unwrap();
    let text = String::from_utf8(client.stdout).unwrap();
    let grown = text.lines().find_map(|line| line.strip_prefix("grown by "));
    grown.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

/// Carries datagrams between this server and one client, to which as many get through, one excepted.
fn relay(server: SocketAddr, arriving: usize, lost: usize) -> SocketAddr {
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let back = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    back.connect(server).unwrap();
    let address = front.local_addr().unwrap();
    let client = Arc::new(OnceLock::new());
    let (asks, at, to) = (Arc::clone(&front), Arc::clone(&client), Arc::clone(&back));
    thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        while let Ok((length, from)) = asks.recv_from(&mut bytes) {
            at.get_or_init(|| from);
            let _refused = to.send(&bytes[..length]);
        }
    });
    thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        for number in 0..arriving {
            let length = back.recv(&mut bytes).unwrap();
            if number != lost {
                front.send_to(&bytes[..length], client.get().unwrap()).unwrap();
            }
        }
    });
    address
}

fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

/// Memory of this program that is its own, in bytes.
fn held() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}
