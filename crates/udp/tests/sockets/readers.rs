//! A program that reads its socket once a frame, from a small buffer: what its connection says of both slows
//! the sender, so that the system has to drop next to nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant as StdInstant};

use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{Block, ConnectionConfig, Event};
use haulier_proto::server::{ServerConfig, ServerCredentials, ServerEvent, ServerMachine};
use haulier_proto::{AesSupport, Platform};
use haulier_udp::{Clock, Runner, Socket, seed};

use crate::support::{MAX, loopback};

/// What is asked of the system for the reader: 36 datagrams of 1200 bytes, as Linux counts.
const BUFFER_BYTES: usize = 40 << 10;

const BLOCK_BYTES: usize = 600_000;

fn platform() -> Platform {
    Platform::new(seed().unwrap(), AesSupport::Software)
}

/// Sends a block to each client that joins, until `is_over`. Returns the number of datagrams sent, and of
/// those that count as lost.
fn serve(mut server: Runner<ServerMachine>, is_over: &AtomicBool) -> (u64, u64) {
    let block = Block::new(1, vec![7; BLOCK_BYTES]);
    let mut counted = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        server.turn(Duration::from_millis(2)).unwrap();
        let now = server.clock().now();
        while let Some((id, event)) = server.machine.poll_event(now) {
            if let ServerEvent::Connecting { .. } = event {
                server.machine.connection_mut(id).unwrap().send_block(now, &block).unwrap();
            }
        }
        if let Some(id) = server.machine.connections().next() {
            let stats = server.machine.connection(id).unwrap().stats();
            counted = (stats.datagrams_sent, stats.datagrams_lost);
        }
    }
    counted
}

#[test]
fn a_small_buffer_read_once_a_frame_is_not_flooded() {
    let credentials = ServerCredentials::default().with_open_access();
    let (clock, config) = (Clock::start(), ServerConfig::new(7, credentials));
    let machine = ServerMachine::new(clock.now(), 0, config, platform()).unwrap();
    let socket = Socket::bind(loopback()).unwrap();
    let to = socket.local_addr();
    let server = Runner::new(machine, socket, clock);
    let is_over = Arc::new(AtomicBool::new(false));
    let serving = thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || serve(server, &is_over)
    });

    let mut socket = Socket::connect(to).unwrap();
    socket.set_receive_buffer(BUFFER_BYTES).unwrap();
    let payload_bytes = socket.buffers().payload_bytes();
    assert!(payload_bytes < 100_000, "{:?}", socket.buffers());
    let connection = ConnectionConfig::default().with_receive_buffer_bytes(payload_bytes);
    let config = ClientConfig::new(to, 7, Credentials::Open).with_connection(connection);
    let machine = ClientMachine::new(clock.now(), config, platform()).unwrap();
    let mut client = Runner::new(machine, socket, clock);
    let (began, mut has_block) = (StdInstant::now(), false);
    while !has_block {
        assert!(began.elapsed() < MAX);
        client.round().unwrap();
        while let Some(event) = client.machine.poll_event(clock.now()) {
            assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            has_block |= matches!(event, Event::Block { .. });
        }
        thread::sleep(Duration::from_millis(16));
    }
    is_over.store(true, Ordering::Relaxed);
    let (sent, lost) = serving.join().unwrap();
    println!("{sent} sent, {lost} lost, in {:?}", began.elapsed());
    // Before the first answer nothing is known of the reader, and this machine may be busy.
    if cfg!(target_os = "linux") {
        assert!(lost * 20 < sent, "{lost} of {sent}");
    }
}
