//! A desk and two workers, call by call: datagrams that reach the wrong worker, and the reports between them.
//! With any interleaving they are in the simulator, `crates/sim/tests/worlds/workers.rs`.

use haulier_proto::client::ClientMachine;
use haulier_proto::connection::{CloseCode, Event};
use haulier_proto::server::{
    AtDesk, Desk, Handled, ServerConfig, ServerEvent, ServerLimits, Stray, Worker,
};
use haulier_proto::{Batch, DropReason, Ecn, FourTuple, Instant, Machine};

use crate::lan::{UNIX_TIME, address, client_config, server_address, server_config};

const NOW: Instant = Instant::from_millis(1);

struct Pair {
    desk: Desk,
    workers: Vec<Worker>,
}

impl Pair {
    fn new(config: ServerConfig) -> Self {
        let (desk, workers) = Desk::open(NOW, UNIX_TIME, config, [[1; 32], [2; 32]]).unwrap();
        Self { desk, workers }
    }

    /// From client `n` to this worker.
    fn hand(&mut self, to: usize, n: usize, datagram: &[u8]) -> Result<Handled, DropReason> {
        let (from, mut datagram) = (FourTuple::new(address(n)), datagram.to_vec());
        self.workers[to].handle_datagram(NOW, &mut self.desk, from, Ecn::NotEct, &mut datagram)
    }

    fn report(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.report(NOW, &mut self.desk));
        self.desk.check_invariants(&self.workers);
    }

    fn sent(&mut self, by: usize) -> Vec<Vec<u8>> {
        let mut batch = Batch::new(32);
        self.workers[by].poll_transmit(NOW, &mut batch);
        batch.iter().map(|(_, bytes)| bytes.to_vec()).collect()
    }
}

fn client(n: u8) -> (ClientMachine, Vec<u8>) {
    let mut client = ClientMachine::new(NOW, client_config(), [n + 10; 32]).unwrap();
    let mut request = Vec::new();
    assert!(client.poll_datagram(NOW, &mut request).is_some());
    (client, request)
}

/// A copy of a request goes to the worker that has it, before it has reported, while the connection is there
/// and when it has ended: only that one can repeat the close.
#[test]
fn a_copy_of_a_request_goes_to_the_worker_that_has_it() {
    let mut pair = Pair::new(server_config());
    let (_client, request) = client(0);
    assert_eq!(pair.hand(1, 0, &request), Ok(Handled::Here));
    assert_eq!(pair.hand(1, 0, &request), Ok(Handled::Here), "a copy at the same worker");
    assert_eq!(pair.hand(0, 0, &request), Ok(Handled::ForWorker(1)));
    pair.report();
    assert_eq!(pair.hand(0, 0, &request), Ok(Handled::ForWorker(1)));
    let Some((id, ServerEvent::Connecting { .. })) = pair.workers[1].poll_event(NOW) else {
        panic!("no request");
    };
    assert_eq!(id.worker(), 1);
    assert!(pair.workers[0].connection(id).is_none() && pair.workers[1].connection(id).is_some());
    pair.workers[1].connection_mut(id).unwrap().close(NOW, CloseCode::NOT_ACCEPTED, "no");
    while pair.workers[1].connection(id).is_some() {
        pair.sent(1);
        let event = pair.workers[1].poll_event(NOW);
        assert!(event.is_none_or(|(_, event)| {
            matches!(event, ServerEvent::Connection(Event::Closed(_)))
        }));
        // The close is repeated until its handshake times out.
        let later = Instant::from_millis(60_000);
        pair.workers[1].handle_timeout(later);
        let mut batch = Batch::new(32);
        pair.workers[1].poll_transmit(later, &mut batch);
    }
    pair.report();
    assert_eq!(pair.hand(0, 0, &request), Ok(Handled::ForWorker(1)), "it has ended");
}

/// Data says whose it is. A stray is handed over once, and a key that was replaced is known to both.
#[test]
fn data_goes_to_the_worker_that_its_id_says() {
    let mut pair = Pair::new(server_config());
    for (n, fresh) in [(0, [7; 32]), (1, [8; 32])] {
        // No connection yet: the reset key is replaced. Then it stays.
        pair.workers[n].mix_entropy(&mut pair.desk, &fresh);
        let (mut client, request) = client(u8::try_from(n).unwrap());
        assert_eq!(pair.hand(n, n, &request), Ok(Handled::Here));
        for mut response in pair.sent(n) {
            let _late = client.handle_datagram(NOW, server_address(), &mut response);
        }
        let mut data = Vec::new();
        assert!(client.poll_datagram(NOW, &mut data).is_some());
        let other = 1 - n;
        assert_eq!(pair.hand(other, n, &data), Ok(Handled::ForWorker(n)));
        let (at, path, ecn) = (NOW, FourTuple::new(address(500)), Ecn::NotEct);
        let mut stray = Stray { at, path, ecn, datagram: data.clone() };
        let lost = pair.workers[other].handle_stray(&mut pair.desk, &mut stray);
        assert_eq!(lost, Err(DropReason::UnknownConnection), "not its own, and not handed on");
        assert_eq!(pair.workers[n].handle_stray(&mut pair.desk, &mut stray), Ok(()));
        pair.report();
    }
    let connections: Vec<_> = pair.workers.iter().map(|worker| worker.stats().strays).collect();
    assert_eq!(connections, [1, 1]);
}

/// A seat is counted before its keys are agreed on, and given back if that fails.
#[test]
fn a_seat_is_counted_at_once_and_given_back() {
    let limits = ServerLimits::default().with_connections(1).with_line(0);
    let mut pair = Pair::new(server_config().with_limits(limits));
    let (_first, first) = client(0);
    let (_second, second) = client(1);
    assert_eq!(pair.hand(0, 0, &first), Ok(Handled::Here));
    assert_eq!(pair.hand(1, 1, &second), Err(DropReason::NoSlot), "before any report");
    pair.report();
    let stats = pair.desk.ask(|desk| desk.complete(pair.workers[0].stats()));
    assert_eq!((stats.connections, stats.handshakes, stats.remembered), (1, 1, 1));
}
