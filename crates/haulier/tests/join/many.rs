//! Five hundred clients join one server at the same time.
//!
//! One thread drives the clients, inline, each on a socket of its own, and the server has one. What a load
//! screen of a whole server restart looks like: all handshakes at once, cookies included, and one block for
//! all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haulier::{Block, Client, CloseCode, Connect, Event, Server, ServerEvent, ServerStats};

use crate::support::{MAX, bind, bytes, config_for, with_secret};

const CLIENTS: usize = 500;

fn serve(server: Server, block: &Block, is_over: &AtomicBool) -> ServerStats {
    while !is_over.load(Ordering::Relaxed) {
        if let Some((id, ServerEvent::Connecting { .. })) =
            server.wait(Duration::from_millis(20)).unwrap()
        {
            server.send_block(id, block).unwrap();
        }
    }
    server.stats()
}

/// Sets the flag when dropped, also in a panic: otherwise the server would never stop.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn five_hundred_clients_join_at_the_same_time() {
    let mut config = with_secret();
    config.limits.connections_per_prefix = CLIENTS;
    let server = bind(config);
    let block = Block::new(1, bytes(64 * 1024));
    let connect = Connect::from(config_for(&server)).inline();
    let mut clients: Vec<_> =
        (0..CLIENTS).map(|_| (Client::connect(connect.clone()).unwrap(), false)).collect();
    let is_over = AtomicBool::new(false);
    let stats = thread::scope(|scope| {
        let serving = scope.spawn(|| serve(server, &block, &is_over));
        let ends = Ends(&is_over);
        let (began, mut joined) = (Instant::now(), 0);
        while joined < CLIENTS {
            assert!(began.elapsed() < MAX, "{joined} of {CLIENTS} have joined");
            for (client, has_block) in &mut clients {
                while let Some(event) = client.poll().unwrap() {
                    match event {
                        Event::Block { data, .. } => {
                            assert!(!*has_block && data == block.data());
                            *has_block = true;
                            joined += 1;
                        }
                        Event::Closed(reason) => panic!("{reason}, after {joined} joined"),
                        _ => {}
                    }
                }
            }
        }
        println!("{CLIENTS} joined after {:?}", began.elapsed());
        // All at once again: one after the other would wait for each one's close to be answered.
        clients.iter_mut().for_each(|(client, _)| client.close(CloseCode::DONE, ""));
        while !clients.iter().all(|(client, _)| client.is_closed()) {
            assert!(began.elapsed() < MAX, "some have not closed");
            for (client, _) in &mut clients {
                while client.poll().unwrap().is_some() {}
            }
        }
        drop(ends);
        serving.join().unwrap()
    });
    println!("{stats:?}");
    assert_eq!(stats.accepted as usize, CLIENTS);
}
