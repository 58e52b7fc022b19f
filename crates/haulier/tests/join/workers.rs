//! A server of four workers, over real sockets: to its clients and its application it is one server.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use haulier::{
    Block, Client, CloseCode, CloseReason, Connect, ConnectionId, Event, Listen, ListenError,
    Server, ServerConfig, ServerEvent,
};

use crate::support::{MAX, Pair, block_on, bytes, config_for, with_secret};

const WORKERS: usize = 4;
const CLIENTS: usize = 200;

fn listen(config: ServerConfig) -> Server {
    Listen::bind("127.0.0.1:0").unwrap().workers(WORKERS).start(config).unwrap()
}

/// Drives the clients, inline, until each is done.
fn drive(clients: &mut [(Client, bool)], mut is_done: impl FnMut(&Event) -> bool) {
    let began = Instant::now();
    while !clients.iter().all(|(_, done)| *done) {
        let done = clients.iter().filter(|(_, done)| *done).count();
        assert!(began.elapsed() < MAX, "{done} of {} are done", clients.len());
        for (client, done) in &mut *clients {
            while let Some(event) = client.poll().unwrap() {
                *done |= is_done(&event);
            }
        }
    }
}

/// Events come from all workers through one handle, and the closes of a graceful end reach everybody.
#[test]
fn two_hundred_clients_join_four_workers_and_are_told_the_end() {
    let server = listen(with_secret());
    assert_eq!(server.workers(), WORKERS);
    let block = Block::new(1, bytes(64 * 1024));
    let connect = Connect::from(config_for(&server)).inline();
    let mut clients: Vec<_> =
        (0..CLIENTS).map(|_| (Client::connect(connect.clone()).unwrap(), false)).collect();
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let (mut sent, mut workers, began) = (0, BTreeSet::new(), Instant::now());
            while sent < CLIENTS {
                assert!(began.elapsed() < MAX, "{sent} were sent");
                match server.wait(Duration::from_millis(100)).unwrap() {
                    Some((id, ServerEvent::Connecting { .. })) => {
                        server.send_block(id, &block).unwrap();
                        workers.insert(id.worker());
                    }
                    Some((_, ServerEvent::Connection(Event::BlockSent { .. }))) => sent += 1,
                    _ => {}
                }
            }
            workers
        });
        drive(&mut clients, |event| match event {
            Event::Block { data, .. } => {
                assert_eq!(data, block.data());
                true
            }
            Event::Closed(reason) => panic!("{reason}"),
            _ => false,
        });
        assert_eq!(serving.join().unwrap().len(), WORKERS, "each worker had some");
    });
    let stats = server.stats();
    println!("{stats:?}, {:?}", server.drops());
    assert_eq!((stats.accepted as usize, stats.connections), (CLIENTS, CLIENTS));
    assert_eq!(server.connections().len(), CLIENTS);
    let local = server.local_addr();
    clients.iter_mut().for_each(|(_, done)| *done = false);
    thread::scope(|scope| {
        let finishing = scope.spawn(|| server.finish(MAX));
        let shutting_down = |event: &Event| match event {
            Event::Closed(CloseReason::There { code, .. }) => *code == CloseCode::SHUTTING_DOWN,
            _ => false,
        };
        drive(&mut clients, shutting_down);
        finishing.join().unwrap().unwrap();
    });
    // All sockets are closed: one that shares with nobody can have the port.
    Server::bind(local, with_secret()).unwrap();
}

/// A client whose address changes reaches another worker three times of four. It goes on with its own.
#[test]
fn a_client_that_moves_stays_with_its_worker() {
    let server = listen(with_secret());
    let client = Client::connect(config_for(&server)).unwrap();
    let mut pair = Pair::new(server, client);
    pair.until(|pair| pair.has_connected());
    let id = pair.id();
    for n in 1..=8 {
        pair.client.rebind().unwrap();
        pair.client.send_message(bytes(100 * n)).unwrap();
        pair.server.send_message(id, bytes(200 * n)).unwrap();
        let is_message = |event: &Event| matches!(event, Event::Message { .. });
        pair.until(|pair| pair.server_count(is_message) >= n && pair.client_count(is_message) >= n);
    }
    let block = Block::new(1, bytes(1 << 20));
    pair.client.send_block(&block).unwrap();
    pair.until(|pair| pair.server_count(|event| matches!(event, Event::Block { .. })) == 1);
    let stats = pair.server.stats();
    println!("{stats:?}");
    assert!(stats.strays > 0 && stats.connections == 1, "{stats:?}");
    assert!(pair.at_server.iter().all(|&(other, _)| other == id));
}

/// An application with a thread for each worker, and one that awaits all.
#[test]
fn events_come_from_one_worker_or_are_awaited_from_all() {
    let server = listen(with_secret());
    assert!(server.worker(WORKERS).is_none());
    let clients: Vec<_> = (0..12).map(|_| Client::connect(config_for(&server)).unwrap()).collect();
    let is_connected =
        |event: &ServerEvent| matches!(event, ServerEvent::Connection(Event::Connected));
    let of_worker = |number: usize| {
        let (server, mut ids) = (server.worker(number).unwrap(), Vec::<ConnectionId>::new());
        let began = Instant::now();
        while server.stats().accepted < 12 || began.elapsed() < Duration::from_millis(100) {
            assert!(began.elapsed() < MAX);
            if let Some((id, event)) = server.wait(Duration::from_millis(5)).unwrap()
                && is_connected(&event)
            {
                assert_eq!(id.worker(), number);
                ids.push(id);
            }
        }
        ids
    };
    let ids = thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS).map(|n| scope.spawn(move || of_worker(n))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<BTreeSet<_>>()
    });
    assert_eq!(ids.len(), 12);
    for client in &clients {
        client.send_message(vec![1]).unwrap();
    }
    let mut from = BTreeSet::new();
    while from.len() < 12 {
        let (id, event) = block_on(server.next_event()).unwrap().unwrap();
        if matches!(event, ServerEvent::Connection(Event::Message { .. })) {
            from.insert(id);
        }
    }
    assert_eq!(from, ids);
}

/// The application's waker ends a wait for all workers, before it or during it, and each ends one.
#[test]
fn a_waker_ends_a_wait_for_all_workers() {
    let server = listen(with_secret());
    let waker = server.waker();
    waker.wake_by_ref();
    assert!(server.wait(MAX).unwrap().is_none());
    let other = thread::spawn(move || waker.wake());
    assert!(server.wait(MAX).unwrap().is_none());
    other.join().unwrap();
    assert!(server.wait(Duration::from_millis(1)).unwrap().is_none());
}

#[test]
fn workers_have_threads_and_are_one_at_least() {
    let listen = || Listen::bind("127.0.0.1:0").unwrap();
    let started = listen().inline().workers(2).start(with_secret());
    assert!(matches!(started, Err(ListenError::WorkersWithoutThreads)));
    for workers in [0, 257] {
        let started = listen().workers(workers).start(with_secret());
        assert!(matches!(started, Err(ListenError::Config(_))), "{workers}");
    }
    assert_eq!(listen().inline().workers(1).start(with_secret()).unwrap().workers(), 1);
}
