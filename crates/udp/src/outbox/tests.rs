//! Against a system that can refuse, block and lose at will; nothing may be lost but what it lost, and
//! nothing may change places.

use std::collections::VecDeque;

use super::*;

type Datagram = (SocketAddr, Vec<u8>);

/// A system that answers as it is told, and from then on takes everything.
#[derive(Default)]
struct System {
    segments: usize,
    /// What is said to the next calls.
    answers: VecDeque<BatchSent>,
    taken: Vec<Datagram>,
    /// How many datagrams each call that was taken held.
    calls: Vec<usize>,
}

impl System {
    fn with(segments: usize, answers: impl IntoIterator<Item = BatchSent>) -> Self {
        Self { segments, answers: answers.into_iter().collect(), ..Self::default() }
    }

    fn answer(&mut self, datagrams: &[u8], segment: usize, to: SocketAddr) -> BatchSent {
        let answer = self.answers.pop_front().unwrap_or(TAKEN);
        if answer == TAKEN {
            let before = self.taken.len();
            match datagrams {
                [] => self.taken.push((to, vec![])),
                _ => self.taken.extend(datagrams.chunks(segment).map(|d| (to, d.to_vec()))),
            }
            self.calls.push(self.taken.len() - before);
        }
        answer
    }
}

const TAKEN: BatchSent = BatchSent::As(Sent::Taken);
const BLOCKED: BatchSent = BatchSent::As(Sent::Blocked);
const LOST: BatchSent = BatchSent::As(Sent::Lost);

impl DatagramSender for System {
    fn max_segments(&self) -> usize {
        self.segments
    }

    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<Sent> {
        match self.answer(datagram, datagram.len(), to) {
            BatchSent::As(sent) => Ok(sent),
            BatchSent::Refused => Ok(Sent::Lost),
        }
    }

    fn send_segments(
        &mut self,
        datagrams: &[u8],
        segment: usize,
        to: SocketAddr,
    ) -> io::Result<BatchSent> {
        assert!(datagrams.len() > segment && datagrams.len().div_ceil(segment) <= self.segments);
        assert!(datagrams.len() <= MAX_BATCH_BYTES && to.port() != 0);
        Ok(self.answer(datagrams, segment, to))
    }

    fn stop_segments(&mut self) {
        self.segments = 1;
    }
}

fn to(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

/// Numbered datagrams of these sizes, to these ports.
fn datagrams(sizes: &[(u16, usize)]) -> VecDeque<Datagram> {
    sizes.iter().enumerate().map(|(i, &(port, size))| (to(port), vec![i as u8; size])).collect()
}

/// Transmits until nothing is left; what is blocked is offered again.
fn send_all(
    outbox: &mut Outbox,
    system: &mut System,
    waiting: &mut VecDeque<Datagram>,
    most: usize,
) {
    for _ in 0..100 {
        let sent = outbox.transmit(system, most, |buffer| {
            let (to, bytes) = waiting.pop_front()?;
            *buffer = bytes;
            Some(to)
        });
        match sent.unwrap() {
            Transmitted::All => return assert!(!outbox.is_blocked()),
            Transmitted::Blocked => assert!(outbox.is_blocked()),
            Transmitted::Most => {}
        }
    }
    panic!("it never ends");
}

/// Sends all of them, and compares what was taken. Returns how many datagrams each call held.
fn carried(mut system: System, sizes: &[(u16, usize)], most: usize) -> (Vec<usize>, usize) {
    let (mut outbox, all) = (Outbox::new(), datagrams(sizes));
    send_all(&mut outbox, &mut system, &mut all.clone(), most);
    assert!(system.taken.iter().eq(&all), "{:?}", system.calls);
    (system.calls, system.segments)
}

#[test]
fn equal_ones_to_one_address_go_together_and_the_last_may_be_shorter() {
    let sizes = [
        (1, 9),
        (1, 9),
        (1, 5),
        (1, 9),
        (2, 9),
        (2, 10),
        (2, 10),
        (0, 3),
        (0, 3),
        (1, 0),
        (1, 0),
        (1, 9),
        (1, 0),
        (1, 9),
    ];
    let (calls, _) = carried(System::with(64, []), &sizes, 1024);
    assert_eq!(calls, [3, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn a_batch_ends_where_the_system_the_packet_or_the_caller_ends_it() {
    assert_eq!(carried(System::with(4, []), &[(1, 9); 10], 1024).0, [4, 4, 2]);
    assert_eq!(carried(System::with(64, []), &[(1, 1200); 70], 1024).0, [54, 16]);
    assert_eq!(carried(System::with(64, []), &[(1, 9); 10], 3).0, [3, 3, 3, 1]);
    assert_eq!(carried(System::with(1, []), &[(1, 9); 3], 1024).0, [1, 1, 1]);
}

#[test]
fn a_batch_that_finds_no_room_waits_whole() {
    let sizes = [[(1, 9); 5], [(2, 9); 5]].concat();
    let (calls, segments) =
        carried(System::with(64, [BLOCKED, BLOCKED, TAKEN, BLOCKED]), &sizes, 1024);
    assert_eq!((calls, segments), (vec![5, 5], 64));
}

#[test]
fn where_the_system_splits_none_each_goes_alone_and_none_is_lost() {
    let blocked_between = [BatchSent::Refused, TAKEN, BLOCKED, TAKEN, BLOCKED];
    let (calls, segments) = carried(System::with(64, blocked_between), &[(1, 9); 6], 1024);
    assert_eq!((calls, segments), (vec![1; 6], 1));
}

/// Else anyone who asks from an address that cannot be answered would slow down everybody.
#[test]
fn an_address_that_takes_nothing_does_not_end_the_batches_of_others() {
    let mut system = System::with(64, [BatchSent::Refused, LOST, LOST, LOST]);
    let mut all = datagrams(&[(1, 9), (1, 9), (1, 9), (2, 9), (2, 9)]);
    send_all(&mut Outbox::new(), &mut system, &mut all, 1024);
    assert_eq!((system.calls, system.segments), (vec![2], 64));
}

/// The error of a datagram of long ago must not cost a whole batch.
#[test]
fn a_batch_that_meets_an_old_error_is_offered_once_more() {
    assert_eq!(carried(System::with(64, [LOST]), &[(1, 9); 5], 1024).0, [5]);
    let mut system = System::with(64, [LOST, LOST]);
    let mut all = datagrams(&[(1, 9), (1, 9), (2, 9), (2, 9)]);
    send_all(&mut Outbox::new(), &mut system, &mut all, 1024);
    assert_eq!(system.calls, [2], "and then given up");
}

#[test]
fn what_is_cleared_is_not_sent() {
    let mut system = System::with(64, [BLOCKED]);
    let (mut outbox, mut all) = (Outbox::new(), datagrams(&[(1, 9), (1, 9), (2, 9)]));
    let blocked = outbox.transmit(&mut system, 1024, |buffer| {
        let (to, bytes) = all.pop_front()?;
        *buffer = bytes;
        Some(to)
    });
    assert_eq!(blocked.unwrap(), Transmitted::Blocked);
    outbox.clear();
    send_all(&mut outbox, &mut system, &mut all, 1024);
    assert_eq!(system.taken, []);
}
