//! Sessions of WebTransport without a browser: what the server lets in, what it refuses, and when it closes.

#![allow(clippy::unwrap_used, reason = "a test program")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use haulier::proto::Machine;
use haulier::proto::client::{ClientConfig, ClientMachine};
use haulier::udp::Clock;
use haulier::{
    Block, Credentials, Event, Secret, Server, ServerConfig, ServerCredentials, ServerEvent,
};
use haulier_web::{Certificate, CertificateError, WebError, WebLimits, WebServer};
use tokio::runtime::{Builder, Runtime};
use wtransport::endpoint::ConnectOptions;
use wtransport::error::ConnectingError;
use wtransport::tls::Sha256Digest;
use wtransport::{ClientConfig as QuicConfig, Connection, Endpoint};

/// After this a test has failed, however slow the machine is.
const MAX: Duration = Duration::from_secs(60);

const PROTOCOL_ID: u64 = 7;

fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

fn game() -> Server {
    game_with(None)
}

fn game_with(first_block: Option<Block>) -> Server {
    let credentials = ServerCredentials::default().with_secret(secret());
    let config = ServerConfig::new(PROTOCOL_ID, credentials).with_first_block(first_block);
    Server::bind("127.0.0.1:0", config).unwrap()
}

fn web(server: &Server, limits: WebLimits) -> WebServer {
    let certificate = Certificate::self_signed(["localhost", "127.0.0.1"]);
    WebServer::start_with("127.0.0.1:0", certificate, server, limits).unwrap()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A session as a browser opens it, which takes this certificate and no other.
async fn session(at: SocketAddr, hash: [u8; 32]) -> Result<Connection, ConnectingError> {
    let config = QuicConfig::builder()
        .with_bind_address("127.0.0.1:0".parse().unwrap())
        .with_server_certificate_hashes([Sha256Digest::new(hash)])
        .build();
    Endpoint::client(config).unwrap().connect(format!("https://{at}/")).await
}

/// What a page does, in a task: joins, and returns the block. Without a world the program of the server does
/// not look at it.
async fn join(session: &Connection, server: &Server, world: Option<&Block>) -> (u64, Vec<u8>) {
    let clock = Clock::start();
    let credentials = Credentials::Secret { secret: secret(), identity: None };
    let config = ClientConfig::new(server.local_addr(), PROTOCOL_ID, credentials);
    let mut machine =
        ClientMachine::new(clock.now(), config, haulier::udp::seed().unwrap()).unwrap();
    let mut datagram = Vec::new();
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < MAX, "it does not join");
        machine.handle_timeout(clock.now());
        while let Some(event) = machine.poll_event(clock.now()) {
            if let Event::Block { tag, data } = event {
                return (tag, data.to_vec());
            }
        }
        while machine.poll_datagram(clock.now(), &mut datagram).is_some() {
            session.send_datagram(&datagram).unwrap();
        }
        while let Some(world) = world
            && let Some((id, event)) = server.poll().unwrap()
        {
            if let ServerEvent::Connecting { .. } = event {
                server.send_block(id, world).unwrap();
            }
        }
        let next = tokio::time::timeout(Duration::from_millis(1), session.receive_datagram());
        if let Ok(received) = next.await {
            let (now, from) = (clock.now(), machine.server());
            let _counted = machine.handle_datagram(now, from, &mut received.unwrap().to_vec());
        }
    }
}

#[test]
fn a_session_joins_and_one_too_many_of_a_source_is_refused_until_there_is_room() {
    let server = game();
    let web = web(&server, WebLimits::default().with_sessions_per_prefix(1));
    let world = Block::new(1, vec![9; 100_000]);
    runtime().block_on(async {
        let (at, hash) = (web.local_addr(), web.certificate_hashes()[0]);
        let first = session(at, hash).await.unwrap();
        assert_eq!(join(&first, &server, Some(&world)).await, (1, world.data().to_vec()));
        assert_eq!(server.gateway().stats().peers, 1);
        assert!(session(at, hash).await.is_err());
        assert_eq!(web.stats().refused, 1);
        first.close(0u32.into(), b"");
        let began = Instant::now();
        while session(at, hash).await.is_err() {
            assert!(began.elapsed() < MAX, "the place of the first is not given back");
        }
    });
}

/// The world goes with the answer to a request, to a page as to all.
#[test]
fn the_first_block_of_a_server_comes_to_a_page() {
    let world = Block::new(5, vec![9; 100_000]);
    let server = game_with(Some(world.clone()));
    let web = web(&server, WebLimits::default());
    runtime().block_on(async {
        let session = session(web.local_addr(), web.certificate_hashes()[0]).await.unwrap();
        assert_eq!(join(&session, &server, None).await, (5, world.data().to_vec()));
    });
}

/// A session over which nothing of haulier's comes is closed, and so are all when the game has ended.
#[test]
fn a_silent_session_is_closed_and_so_is_one_whose_server_has_ended() {
    let server = game();
    let hasty = web(&server, WebLimits::default().with_idle(Duration::from_millis(50)));
    let patient = web(&server, WebLimits::default());
    runtime().block_on(async {
        let silent = session(hasty.local_addr(), hasty.certificate_hashes()[0]).await.unwrap();
        let reason = tokio::time::timeout(MAX, silent.closed()).await.unwrap();
        assert!(reason.to_string().contains("idle"), "{reason}");

        let ended = session(patient.local_addr(), patient.certificate_hashes()[0]).await.unwrap();
        drop(server);
        let reason = tokio::time::timeout(MAX, ended.closed()).await.unwrap();
        assert!(reason.to_string().contains("the server has stopped"), "{reason}");
    });
}

/// Junk keeps no session: nothing of it is verified.
#[test]
fn a_session_that_sends_junk_is_closed() {
    let server = game();
    let web = web(&server, WebLimits::default().with_idle(Duration::from_secs(2)));
    runtime().block_on(async {
        let junk = session(web.local_addr(), web.certificate_hashes()[0]).await.unwrap();
        let mut closed = None;
        // One each 20 ms for 10 s at least.
        for _ in 0..500 {
            let _sent = junk.send_datagram([0x0c; 100]);
            let wait = tokio::time::timeout(Duration::from_millis(20), junk.closed());
            closed = wait.await.ok();
            if closed.is_some() {
                break;
            }
        }
        let reason = closed.map(|reason| reason.to_string()).unwrap_or_default();
        assert!(reason.contains("idle"), "it is kept: {reason}");
    });
}

/// A browser that has to prove its address first does, and joins.
#[test]
fn a_browser_proves_its_address_and_joins() {
    let server = game();
    let web = web(&server, WebLimits::default().with_unproven(0));
    let world = Block::new(1, vec![9; 10_000]);
    runtime().block_on(async {
        let session = session(web.local_addr(), web.certificate_hashes()[0]).await.unwrap();
        assert_eq!(join(&session, &server, Some(&world)).await, (1, world.data().to_vec()));
    });
    assert_eq!((web.stats().retried, web.stats().accepted), (1, 1));
}

/// The page of another site is not let in.
#[test]
fn an_origin_that_is_not_admitted_is_refused() {
    let server = game();
    let certificate = Certificate::self_signed(["localhost", "127.0.0.1"]);
    let admits = |origin: Option<&str>| origin == Some("https://game.example.org");
    let limits = WebLimits::default();
    let web = WebServer::start_for("127.0.0.1:0", certificate, &server, limits, admits).unwrap();
    let (at, hash) = (web.local_addr(), web.certificate_hashes()[0]);
    let session_of = async |origin: &str| {
        let config = QuicConfig::builder()
            .with_bind_address("127.0.0.1:0".parse().unwrap())
            .with_server_certificate_hashes([Sha256Digest::new(hash)])
            .build();
        let options = ConnectOptions::builder(format!("https://{at}/"));
        let options = options.add_header("origin", origin).build();
        Endpoint::client(config).unwrap().connect(options).await
    };
    runtime().block_on(async {
        assert!(session_of("https://elsewhere.example").await.is_err());
        assert!(session(at, hash).await.is_err(), "none at all");
        assert!(session_of("https://game.example.org").await.is_ok());
    });
    assert_eq!((web.stats().refused, web.stats().accepted), (2, 1));
}

/// A new certificate has another hash; a page with the old hash is not let in, and open sessions go on.
#[test]
fn a_renewed_certificate_has_another_hash_and_leaves_sessions_alone() {
    let server = game();
    let web = web(&server, WebLimits::default());
    let world = Block::new(1, vec![9; 10_000]);
    let old = web.certificate_hashes()[0];
    runtime().block_on(async {
        let before = session(web.local_addr(), old).await.unwrap();
        web.renew_certificate();
        let began = Instant::now();
        while web.certificate_hashes() == [old] {
            assert!(began.elapsed() < MAX, "it is not renewed");
            tokio::task::yield_now().await;
        }
        assert!(session(web.local_addr(), old).await.is_err());
        assert!(session(web.local_addr(), web.certificate_hashes()[0]).await.is_ok());
        assert_eq!(join(&before, &server, Some(&world)).await, (1, world.data().to_vec()));
    });
}

#[test]
fn a_certificate_that_cannot_be_is_an_error_that_says_so() {
    let server = game();
    let start = |certificate| WebServer::start("127.0.0.1:0", certificate, &server).unwrap_err();
    let name = start(Certificate::self_signed(["ein_größerer.name"]));
    assert!(matches!(name, WebError::Certificate(CertificateError::Name)), "{name}");
    let file = start(Certificate::from_pem_files("nowhere.pem", "nowhere.key"));
    assert!(file.to_string().contains("nowhere.pem"), "{file}");
}
