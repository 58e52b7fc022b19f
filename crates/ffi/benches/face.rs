//! What the C interface costs over Rust's: the same work through both, in turns, in one run.
//!
//! ```sh
//! cargo bench -p haulier-ffi --bench face                 # joins of 64 MiB, and messages, in CPU time
//! cargo bench -p haulier-ffi --bench face -- messages c 20000     # one of them alone, for a counter of
//! valgrind --tool=callgrind PROGRAM messages rust 20000           # instructions: the difference is the cost
//! ```
//!
//! The functions of C are called as C calls them: no compiler looks through `extern "C"` of another crate
//! without link-time optimisation. What is measured is the CPU time of the whole process, both ends, for
//! other programs on the machine disturb it least; of several runs the best counts, and the median is beside
//! it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench program")]

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::time::Duration;

use haulier::{
    Block, Client, Connect, Credentials, Event, Listen, Server, ServerConfig, ServerCredentials,
    ServerEvent,
};
use haulier_ffi::block::*;
use haulier_ffi::client::send::*;
use haulier_ffi::client::*;
use haulier_ffi::event::*;
use haulier_ffi::result::haulier_result::HAULIER_OK;
use haulier_ffi::server::blocks::*;
use haulier_ffi::server::look::*;
use haulier_ffi::server::*;
use haulier_ffi::settings::*;
use rustix::time::{ClockId, clock_gettime};

const WORLD_BYTES: usize = 64 << 20;
const MESSAGE: [u8; 64] = [7; 64];
/// Messages that are sent before the other end reads.
const AT_ONCE: usize = 64;
const PATIENCE: Duration = Duration::from_secs(20);

fn main() {
    // Cargo's own flag says nothing to this program.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        [] => {
            compare("a join of 64 MiB", "ms", 15, join_in_rust, join_in_c);
            compare("20000 messages of 64 bytes", "ms", 41, messages_in_rust, messages_in_c);
        }
        ["messages", "rust", count] => send_in_rust(count.parse().unwrap()),
        ["messages", "c", count] => send_in_c(count.parse().unwrap()),
        _ => panic!("nothing, or: messages rust|c COUNT"),
    }
}

/// Both, in turns.
fn compare(what: &str, unit: &str, runs: usize, rust: fn() -> f64, c: fn() -> f64) {
    let mut took: Vec<(f64, f64)> = (0..runs).map(|_| (rust(), c())).collect();
    let mut column = |of: fn(&(f64, f64)) -> f64| {
        took.sort_by(|a, b| of(a).total_cmp(&of(b)));
        (of(&took[0]), of(&took[runs / 2]))
    };
    let (rust, c) = (column(|it| it.0), column(|it| it.1));
    let percent = |rust: f64, c: f64| 100.0 * (c / rust - 1.0);
    println!("{what}, {runs} times each, CPU time of both ends:");
    println!(
        "  best    Rust {:8.2} {unit}  C {:8.2} {unit}  {:+.2} %",
        rust.0,
        c.0,
        percent(rust.0, c.0)
    );
    println!(
        "  median  Rust {:8.2} {unit}  C {:8.2} {unit}  {:+.2} %",
        rust.1,
        c.1,
        percent(rust.1, c.1)
    );
}

/// The CPU time that this process has used so far, in ms.
fn cpu_ms() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

fn open_config() -> ServerConfig {
    ServerConfig::new(7, ServerCredentials::default().with_secret(secret()))
}

fn secret() -> haulier::Secret {
    haulier::Secret::from_bytes([7; 32])
}

fn to(server: &Server) -> Connect {
    Connect::new(server.local_addr(), 7, Credentials::Secret { secret: secret(), identity: None })
}

fn join_in_rust() -> f64 {
    let server = Server::bind("127.0.0.1:0", open_config()).unwrap();
    let world = Block::new(1, vec![7; WORLD_BYTES]);
    let before = cpu_ms();
    let client = Client::connect(to(&server)).unwrap();
    loop {
        let (id, event) = server.wait(PATIENCE).unwrap().unwrap();
        if let ServerEvent::Connecting { .. } = event {
            server.send_block(id, &world).unwrap();
            break;
        }
    }
    loop {
        if let Event::Block { data, .. } = client.wait(PATIENCE).unwrap().unwrap() {
            assert_eq!(data.len(), WORLD_BYTES);
            return cpu_ms() - before;
        }
    }
}

/// A server and settings of C's, for the same.
fn served(drive: haulier_drive) -> (*mut haulier_server, CString) {
    let secret = haulier_ffi::secret::haulier_secret { bytes: [7; 32] };
    let mut settings = MaybeUninit::<haulier_server_settings>::uninit();
    let mut server = null_mut();
    let mut text = [0 as c_char; HAULIER_TEXT_BYTES as usize];
    // SAFETY: all of it lives here, with the sizes that are said.
    unsafe {
        let size = size_of::<haulier_server_settings>();
        assert_eq!(haulier_server_settings_init(settings.as_mut_ptr(), size), HAULIER_OK);
        let mut settings = settings.assume_init();
        (settings.secret, settings.drive) = (&secret, drive as u32);
        let address = c"127.0.0.1:0".as_ptr();
        assert_eq!(haulier_server_bind(address, 7, &settings, &mut server), HAULIER_OK);
        let written = haulier_server_local_address(server, text.as_mut_ptr(), text.len());
        assert_eq!(written, HAULIER_OK);
        (server, std::ffi::CStr::from_ptr(text.as_ptr()).to_owned())
    }
}

fn connected(address: &CString, drive: haulier_drive) -> *mut haulier_client {
    let secret = haulier_ffi::secret::haulier_secret { bytes: [7; 32] };
    let mut settings = MaybeUninit::<haulier_client_settings>::uninit();
    let mut client = null_mut();
    // SAFETY: all of it lives here, with the sizes that are said.
    unsafe {
        let size = size_of::<haulier_client_settings>();
        assert_eq!(haulier_client_settings_init(settings.as_mut_ptr(), size), HAULIER_OK);
        let mut settings = settings.assume_init();
        settings.drive = drive as u32;
        let result =
            haulier_client_connect_to(address.as_ptr(), 7, &secret, null(), &settings, &mut client);
        assert_eq!(result, HAULIER_OK);
    }
    client
}

fn event() -> haulier_event {
    // SAFETY: all zeros is an event.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn join_in_c() -> f64 {
    let (server, address) = served(haulier_drive::HAULIER_DRIVE_THREAD);
    let (mut buffer, mut block) = (null_mut(), null_mut());
    let mut event = event();
    let wait_ms = u32::try_from(PATIENCE.as_millis()).unwrap();
    // SAFETY: all of it lives here, and is freed once.
    unsafe {
        assert_eq!(haulier_buffer_new(WORLD_BYTES, &mut buffer), HAULIER_OK);
        haulier_buffer_data(buffer).write_bytes(7, WORLD_BYTES);
        assert_eq!(haulier_block_from_buffer(1, &mut buffer, &mut block), HAULIER_OK);
        let before = cpu_ms();
        let client = connected(&address, haulier_drive::HAULIER_DRIVE_THREAD);
        loop {
            assert_eq!(haulier_server_wait(server, wait_ms, &mut event), HAULIER_OK);
            let (kind, id) = (event.kind, event.connection);
            haulier_event_free(&mut event);
            if kind == haulier_event_kind::HAULIER_EVENT_CONNECTING {
                assert_eq!(haulier_server_send_block(server, id, block, null_mut()), HAULIER_OK);
                break;
            }
        }
        loop {
            assert_eq!(haulier_client_wait(client, wait_ms, &mut event), HAULIER_OK);
            let (kind, bytes) = (event.kind, event.data_bytes);
            if kind == haulier_event_kind::HAULIER_EVENT_BLOCK {
                assert_eq!(bytes, WORLD_BYTES);
                let took = cpu_ms() - before;
                haulier_event_free(&mut event);
                haulier_block_free(block);
                haulier_client_free(client);
                haulier_server_free(server);
                return took;
            }
            haulier_event_free(&mut event);
        }
    }
}

fn messages_in_rust() -> f64 {
    let before = cpu_ms();
    send_in_rust(20_000);
    cpu_ms() - before
}

fn messages_in_c() -> f64 {
    let before = cpu_ms();
    send_in_c(20_000);
    cpu_ms() - before
}

/// Both ends in this thread: each sends when it is polled.
fn send_in_rust(count: usize) {
    let server = Listen::bind("127.0.0.1:0").unwrap().inline().start(open_config()).unwrap();
    let client = Client::connect(to(&server).inline()).unwrap();
    let mut is_connected = false;
    while !is_connected {
        while server.poll().unwrap().is_some() {}
        while let Some(event) = client.wait(Duration::from_millis(1)).unwrap() {
            is_connected |= event == Event::Connected;
        }
    }
    for _ in 0..count / AT_ONCE {
        for _ in 0..AT_ONCE {
            let data = bytes::Bytes::copy_from_slice(&MESSAGE);
            client.send_message(data).unwrap();
        }
        let mut received = 0;
        while received < AT_ONCE {
            while client.poll().unwrap().is_some() {}
            while let Some((_, event)) = server.wait(Duration::from_millis(1)).unwrap() {
                if let ServerEvent::Connection(Event::Message { data, .. }) = event {
                    assert_eq!(data, MESSAGE[..]);
                    received += 1;
                    if received == AT_ONCE {
                        break;
                    }
                }
            }
        }
    }
}

fn send_in_c(count: usize) {
    let (server, address) = served(haulier_drive::HAULIER_DRIVE_INLINE);
    let client = connected(&address, haulier_drive::HAULIER_DRIVE_INLINE);
    let mut event = event();
    let mut is_connected = false;
    // SAFETY: all of it lives here, and is freed once.
    unsafe {
        while !is_connected {
            while haulier_server_poll(server, &mut event) == HAULIER_OK {
                haulier_event_free(&mut event);
            }
            while haulier_client_wait(client, 1, &mut event) == HAULIER_OK {
                is_connected |= event.kind == haulier_event_kind::HAULIER_EVENT_CONNECTED;
                haulier_event_free(&mut event);
            }
        }
        for _ in 0..count / AT_ONCE {
            for _ in 0..AT_ONCE {
                let (data, bytes) = (MESSAGE.as_ptr().cast(), MESSAGE.len());
                assert_eq!(haulier_client_send_message(client, data, bytes), HAULIER_OK);
            }
            let mut received = 0;
            while received < AT_ONCE {
                while haulier_client_poll(client, &mut event) == HAULIER_OK {
                    haulier_event_free(&mut event);
                }
                while haulier_server_wait(server, 1, &mut event) == HAULIER_OK {
                    if event.kind == haulier_event_kind::HAULIER_EVENT_MESSAGE {
                        let data = std::slice::from_raw_parts(event.data, event.data_bytes);
                        assert_eq!(data, MESSAGE);
                        received += 1;
                    }
                    haulier_event_free(&mut event);
                    if received == AT_ONCE {
                        break;
                    }
                }
            }
        }
        haulier_client_free(client);
        haulier_server_free(server);
    }
}
