//! A machine with datagrams to send, on carriers without room, without memory, or without a socket.

use std::collections::VecDeque;

use haulier_core::{Batch, FourTuple, Instant, Run};

use super::*;

const DAY: Duration = Duration::from_secs(86_400);

/// Has numbered datagrams to send, `next` to `end`, and one deadline.
#[derive(Default)]
struct Many {
    next: u16,
    end: u16,
    received: usize,
    /// Wants random bytes from this datagram on.
    wants_entropy_at: Option<usize>,
    /// What it got, and how many datagrams before.
    entropy: Vec<(usize, [u8; 32])>,
}

impl Machine for Many {
    fn handle_datagram(&mut self, _: Instant, _: FourTuple, _: &mut [u8]) {
        self.received += 1;
    }

    fn wants_entropy(&self, _: &[u8]) -> bool {
        self.wants_entropy_at.is_some_and(|at| self.received >= at)
    }

    fn mix_entropy(&mut self, fresh: &[u8; 32]) {
        self.entropy.push((self.received, *fresh));
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, batch: &mut Batch) {
        let to = FourTuple::new(([192, 0, 2, 1], 4000).into());
        while self.next < self.end && batch.push(to, &self.next.to_be_bytes()) {
            self.next += 1;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.next < self.end).then_some(Instant::ZERO)
    }
}

/// Answers each receive as it should, an errno or a datagram; then it has nothing. Has room for every
/// `room`th call.
struct Fake {
    answers: VecDeque<Result<(), i32>>,
    receives: usize,
    sends: usize,
    room: usize,
    taken: Vec<u8>,
}

impl Fake {
    fn new(answers: impl IntoIterator<Item = Result<(), i32>>, room: usize) -> Self {
        let answers = answers.into_iter().collect();
        Self { answers, receives: 0, sends: 0, room, taken: Vec::new() }
    }
}

impl Carrier for Fake {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<usize> {
        self.receives += 1;
        match self.answers.pop_front() {
            None => Err(io::ErrorKind::WouldBlock.into()),
            Some(Err(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(Ok(())) => inbox.fill(false, |_, metas| {
                (metas[0].len, metas[0].stride) = (4, 4);
                Ok(1)
            }),
        }
    }

    fn send(&mut self, run: &Run<'_>) -> io::Result<()> {
        self.sends += 1;
        if !self.sends.is_multiple_of(self.room) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.taken.extend_from_slice(run.bytes);
        Ok(())
    }

    fn max_segments(&self) -> usize {
        64
    }

    fn limit_segments(&mut self, _: usize) {}
}

fn runner(end: u16, carrier: Fake) -> Runner<Many, Fake> {
    Runner::new(Many { end, ..Many::default() }, carrier, Clock::start())
}

#[test]
fn a_socket_that_blocks_loses_nothing_and_is_asked_again_soon() {
    let mut runner = runner(3000, Fake::new([], 3));
    for _ in 0..1000 {
        runner.round().unwrap();
        if runner.carrier.taken.len() == 6000 {
            break;
        }
        // Blocked, or a round was long enough.
        assert!(runner.pause(DAY) <= RETRY);
    }
    assert!(runner.carrier.taken.chunks(2).eq((0..3000u16).map(u16::to_be_bytes)));
    assert_eq!(runner.stats().sent, 3000);
    runner.round().unwrap();
    assert_eq!(runner.pause(DAY), DAY, "nothing is left");
}

#[test]
fn a_round_ends_though_there_is_more() {
    let mut runner = runner(5000, Fake::new([Ok(()); 5000], 1));
    runner.round().unwrap();
    assert!((1024..1100).contains(&runner.machine.received), "{}", runner.machine.received);
    assert!((1024..1100).contains(&runner.machine.next), "{}", runner.machine.next);
    assert_eq!(runner.pause(DAY), Duration::ZERO);
}

/// A system without memory says so to every call, and says that the socket is readable: a runner that asked
/// until it has nothing would never stop.
#[test]
fn an_error_that_stays_costs_little_and_ends_nothing() {
    const ENOMEM: i32 = 12;
    let mut runner = runner(1, Fake::new([Err(ENOMEM); 1000], 1));
    runner.round().unwrap();
    assert_eq!(runner.carrier.receives, PASSED_OVER_PER_ROUND);
    assert_eq!(runner.stats().passed_over, PASSED_OVER_PER_ROUND as u64);
    assert_eq!(runner.machine.next, 1, "it sends all the same");
    assert_eq!(runner.pause(DAY), RETRY, "and comes back neither at once nor late");
    // Memory is back.
    runner.carrier = Fake::new([Err(ENOMEM), Ok(())], 1);
    runner.round().unwrap();
    assert_eq!((runner.machine.received, runner.pause(DAY)), (1, DAY));
}

#[test]
fn a_refusal_is_counted_and_what_is_no_socket_is_an_error() {
    let [refused, no_socket] = [111, 9];
    let mut runner = runner(0, Fake::new([Err(refused), Ok(()), Err(no_socket)], 1));
    let error = runner.round().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(no_socket));
    assert_eq!((runner.stats().refused, runner.machine.received), (1, 1));
}

/// A machine that draws keys gets fresh random bytes before it does, once a round, and others get none. A
/// server restored twice from one snapshot would otherwise draw the same keys twice.
#[test]
fn who_draws_keys_gets_fresh_bytes_first() {
    let machine = Many { wants_entropy_at: Some(2), ..Many::default() };
    let mut runner = Runner::new(machine, Fake::new([Ok(()); 5], 1), Clock::start());
    runner.round().unwrap();
    assert_eq!(runner.machine.received, 5);
    assert_eq!(runner.machine.entropy.len(), 1, "once a round");
    runner.carrier.answers.extend([Ok(()); 3]);
    runner.round().unwrap();
    let got = &runner.machine.entropy;
    assert_eq!((got.len(), got[0].0, got[1].0), (2, 2, 5));
    assert_ne!(got[0].1, got[1].1);
    let mut runner = Runner::new(Many::default(), Fake::new([Ok(()); 5], 1), Clock::start());
    runner.round().unwrap();
    assert!(runner.machine.entropy.is_empty());
}
