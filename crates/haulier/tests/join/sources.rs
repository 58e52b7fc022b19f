//! Blocks from sources to sinks: polled, waited for in a thread, and awaited.

use std::sync::mpsc;
use std::thread;

use haulier::{
    Block, BlockTree, Client, ConnectionId, Delivery, Event, Server, ServerEvent, WantedChunk,
};

use crate::awaited::both;
use crate::support::{MAX, Pair, bind, block_on, bytes, config_for, with_secret};

/// A world of 20 MB, which lies on a disk as far as its sender knows.
struct Disk(Vec<u8>);

impl Disk {
    fn new() -> Self {
        Self(bytes(20_000_001))
    }

    fn block(&self) -> Block {
        Block::from_source(1, BlockTree::of(&self.0))
    }

    fn read(&self, wanted: &WantedChunk) -> Vec<u8> {
        let from = usize::try_from(wanted.offset).unwrap();
        self.0[from..from + wanted.length].to_vec()
    }

    /// Provides all that is wanted.
    fn feed(&self, server: &Server, id: ConnectionId) {
        while let Some(wanted) = server.want_chunk(id) {
            server.provide_chunk(id, wanted.block, wanted.index, self.read(&wanted)).unwrap();
        }
    }
}

/// A file that is written as chunks come.
#[derive(Default)]
struct Sink {
    bytes: Vec<u8>,
    is_complete: bool,
}

impl Sink {
    fn take(&mut self, event: Event) {
        match event {
            Event::Chunk { offset, data, .. } => {
                let from = usize::try_from(offset).unwrap();
                self.bytes.resize(self.bytes.len().max(from + data.len()), 0);
                self.bytes[from..from + data.len()].copy_from_slice(&data);
            }
            Event::BlockComplete { tag: 1, .. } => self.is_complete = true,
            Event::Closed(reason) => panic!("{reason}"),
            _ => {}
        }
    }
}

fn sink_of(server: &Server) -> Client {
    let mut config = config_for(server);
    config.connection = config.connection.with_delivery(Delivery::Chunks);
    Client::connect(config).unwrap()
}

/// A game that polls both once a frame.
#[test]
fn a_block_is_fed_by_polling() {
    let server = bind(with_secret());
    let client = sink_of(&server);
    let (disk, mut sink) = (Disk::new(), Sink::default());
    let mut pair = Pair::new(server, client);
    pair.until(|pair| pair.has_connected());
    let id = pair.id();
    pair.server.send_block(id, &disk.block()).unwrap();
    pair.until(|pair| {
        let wants = |(_, event): &(_, ServerEvent)| {
            matches!(event, ServerEvent::Connection(Event::ChunksWanted))
        };
        if pair.at_server.drain(..).any(|event| wants(&event)) {
            disk.feed(&pair.server, id);
        }
        pair.at_client.drain(..).for_each(|event| sink.take(event));
        sink.is_complete
    });
    assert!(sink.bytes == disk.0);
}

/// A thread waits for events, another one reads the disk, and a third one writes.
#[test]
fn a_block_is_fed_by_a_thread_of_its_own() {
    let (server, disk) = (bind(with_secret()), Disk::new());
    let client = sink_of(&server);
    let (wake, wanted) = mpsc::channel();
    let (of_network, of_disk, block) = (server.clone(), &server, disk.block());
    thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let (id, event) = of_network.wait(MAX).unwrap().expect("no time-out");
                match event {
                    ServerEvent::Connecting { .. } => {
                        of_network.send_block(id, &block).unwrap();
                    }
                    ServerEvent::Connection(Event::ChunksWanted) => wake.send(id).unwrap(),
                    ServerEvent::Connection(Event::BlockSent { .. }) => return,
                    _ => {}
                }
            }
        });
        let disk = &disk;
        scope.spawn(move || wanted.iter().for_each(|id| disk.feed(of_disk, id)));
        scope.spawn(move || {
            let mut sink = Sink::default();
            while !sink.is_complete {
                sink.take(client.wait(MAX).unwrap().expect("no time-out"));
            }
            assert!(sink.bytes == disk.0);
        });
    });
}

#[test]
fn a_block_is_fed_by_a_task() {
    let (server, disk) = (bind(with_secret()), Disk::new());
    let client = sink_of(&server);
    let serving = async {
        while let Some((id, event)) = server.next_event().await.unwrap() {
            match event {
                ServerEvent::Connecting { .. } => drop(server.send_block(id, &disk.block())),
                ServerEvent::Connection(Event::ChunksWanted) => disk.feed(&server, id),
                ServerEvent::Connection(Event::Closed(_)) => return,
                _ => {}
            }
        }
    };
    let joining = async {
        let mut sink = Sink::default();
        while !sink.is_complete {
            sink.take(client.next_event().await.unwrap().expect("it is open"));
        }
        assert!(sink.bytes == disk.0);
        client.finish_async(MAX).await.unwrap();
    };
    block_on(both(serving, joining));
}
