//! Against a system that can refuse, block and lose at will; nothing may be lost but what it lost, and
//! nothing may change places.

use std::collections::VecDeque;
use std::net::SocketAddr;

use haulier_core::FourTuple;

use super::*;
use crate::Inbox;

type Datagram = (FourTuple, Vec<u8>);

/// What a system says to a send.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Taken,
    Blocked,
    Lost,
    Refused,
    TooLong,
}
use Answer::*;

/// A system that answers as it should, and from then on takes everything.
#[derive(Default)]
struct System {
    segments: usize,
    /// The maximum number of datagrams that are no run in one call, each with its answer; 0: no such call.
    several: usize,
    /// What is said to the next calls.
    answers: VecDeque<Answer>,
    taken: Vec<Datagram>,
    /// The number of datagrams in each call that was taken.
    calls: Vec<usize>,
}

impl System {
    fn with(segments: usize, answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { segments, answers: answers.into_iter().collect(), ..Self::default() }
    }
}

impl Carrier for System {
    fn receive(&mut self, _: &mut Inbox) -> io::Result<usize> {
        Ok(0)
    }

    fn send(&mut self, run: &Run<'_>) -> io::Result<()> {
        assert!(run.datagrams == 1 || run.datagrams <= self.segments);
        assert!(
            run.bytes.len() <= MAX_RUN_BYTES && (run.datagrams == 1 || run.path.remote.port() != 0)
        );
        // EAGAIN, ENETUNREACH, EIO, EMSGSIZE.
        let code = match self.answers.pop_front().unwrap_or(Taken) {
            Taken => {
                let mut rest = run.bytes;
                for _ in 0..run.datagrams {
                    let (datagram, behind) = rest.split_at(run.segment_bytes.min(rest.len()));
                    self.taken.push((run.path, datagram.to_vec()));
                    rest = behind;
                }
                self.calls.push(run.datagrams);
                return Ok(());
            }
            Blocked => 11,
            Lost => 101,
            Refused => 5,
            TooLong => 90,
        };
        Err(io::Error::from_raw_os_error(code))
    }

    fn send_several(&mut self, datagrams: &[Run<'_>]) -> io::Result<usize> {
        assert!(datagrams.len() <= self.several && datagrams.iter().all(|it| it.datagrams == 1));
        let before = self.calls.len();
        for (sent, datagram) in datagrams.iter().enumerate() {
            // What keeps a later one is said when it is the first.
            if sent > 0 && self.answers.front().is_some_and(|&answer| answer != Taken) {
                self.calls.truncate(before);
                self.calls.push(sent);
                return Ok(sent);
            }
            self.send(datagram)?;
        }
        self.calls.truncate(before);
        self.calls.push(datagrams.len());
        Ok(datagrams.len())
    }

    fn max_several(&self) -> usize {
        self.several.max(1)
    }

    fn max_segments(&self) -> usize {
        self.segments
    }

    fn limit_segments(&mut self, max_segments: usize) {
        self.segments = max_segments;
    }
}

/// Numbered datagrams of these sizes, to these ports.
fn datagrams(sizes: &[(u16, usize)]) -> Vec<Datagram> {
    let to = |port| FourTuple::new(SocketAddr::from(([192, 0, 2, 1], port)));
    sizes.iter().enumerate().map(|(i, &(port, size))| (to(port), vec![i as u8; size])).collect()
}

/// Sends all of them; what is blocked is offered again.
fn send_all(system: &mut System, all: &[Datagram]) -> RunnerStats {
    let (mut outbox, mut stats) = (Outbox::new(), RunnerStats::default());
    for all in all.chunks(BATCH_DATAGRAMS) {
        outbox.fill(|batch| assert!(all.iter().all(|(to, bytes)| batch.push(*to, bytes))));
        let mut calls = 0;
        while !outbox.send(system, &mut stats).unwrap() {
            assert!(outbox.blocked() == Some(super::Blocked::BySocket) && calls < 100);
            calls += 1;
        }
        assert_eq!(outbox.blocked(), None);
    }
    stats
}

/// Sends all of them, and compares what was taken. Returns how many datagrams each call held.
fn carried(mut system: System, sizes: &[(u16, usize)]) -> (Vec<usize>, usize) {
    let all = datagrams(sizes);
    let stats = send_all(&mut system, &all);
    assert!(system.taken == all, "{:?}", system.calls);
    assert_eq!(stats.sent, all.len() as u64);
    (system.calls, system.segments)
}

#[test]
fn a_run_ends_where_the_system_or_the_packet_ends_it() {
    assert_eq!(carried(System::with(4, []), &[(1, 9); 10]).0, [4, 4, 2]);
    assert_eq!(carried(System::with(64, []), &[(1, 1400); 50]).0, [46, 4]);
    assert_eq!(carried(System::with(1, []), &[(1, 9); 3]).0, [1, 1, 1]);
    assert_eq!(carried(System::with(64, []), &[(0, 9), (0, 9), (1, 9), (1, 9)]).0, [1, 1, 2]);
}

#[test]
fn a_run_that_finds_no_room_waits_whole() {
    let sizes = [[(1, 9); 5], [(2, 9); 5]].concat();
    let answers = [Blocked, Blocked, Taken, Blocked];
    assert_eq!(carried(System::with(64, answers), &sizes), (vec![5, 5], 64));
}

#[test]
fn where_the_system_splits_none_each_goes_alone_and_none_is_lost() {
    let blocked_between = [Refused, Taken, Blocked, Taken, Blocked];
    assert_eq!(carried(System::with(64, blocked_between), &[(1, 9); 6]), (vec![1; 6], 1));
}

/// A path's size shrinks under a run: the shorter one behind it is not lost with it, and others stay runs.
#[test]
fn of_a_run_with_a_long_one_the_others_go_alone() {
    let mut system = System::with(64, [TooLong, TooLong, Taken]);
    send_all(&mut system, &datagrams(&[(1, 9), (1, 8), (2, 9), (2, 9)]));
    assert_eq!((&system.calls[..], system.segments), (&[1, 2][..], 64));
}

/// Otherwise requests from an address that cannot be answered would slow down all peers.
#[test]
fn an_address_that_takes_nothing_does_not_end_the_runs_of_others() {
    let mut system = System::with(64, [Refused, Lost, Lost, Lost]);
    send_all(&mut system, &datagrams(&[(1, 9), (1, 9), (1, 9), (2, 9), (2, 9)]));
    assert_eq!((system.calls, system.segments), (vec![2], 64));
}

/// The error of a datagram of long ago must not cost a whole run.
#[test]
fn a_run_that_meets_an_old_error_is_offered_once_more() {
    assert_eq!(carried(System::with(64, [Lost]), &[(1, 9); 5]).0, [5]);
    let mut system = System::with(64, [Lost, Lost]);
    send_all(&mut system, &datagrams(&[(1, 9), (1, 9), (2, 9), (2, 9)]));
    assert_eq!(system.calls, [2], "and then given up");
}

/// Those that go elsewhere, or that the system does not split, up to a run and to an address that takes
/// nothing.
#[test]
fn several_that_are_no_run_go_with_one_call() {
    let several = |segments, answers: &[Answer]| System {
        several: 4,
        ..System::with(segments, answers.iter().copied())
    };
    assert_eq!(carried(several(1, &[]), &[(1, 9); 10]).0, [4, 4, 2]);
    let elsewhere = [(1, 9), (2, 9), (3, 9), (3, 9), (4, 9), (0, 9), (5, 9), (6, 9)];
    assert_eq!(carried(several(64, &[]), &elsewhere).0, [2, 2, 1, 1, 2]);
    let blocked = [Taken, Taken, Blocked, Blocked, Taken];
    assert_eq!(carried(several(1, &blocked), &[(1, 9); 5]).0, [2, 3]);
    let split_refused = [Refused, Taken, Taken, Blocked];
    assert_eq!(carried(several(64, &split_refused), &[(1, 9); 6]), (vec![2, 4], 1));
}

/// What an error costs is the datagram that it is of.
#[test]
fn of_several_one_is_lost_and_the_others_go() {
    let mut system = System { several: 4, ..System::with(1, [Taken, Lost, Lost, Taken]) };
    let all = datagrams(&[(1, 9), (2, 9), (3, 9), (4, 9)]);
    let stats = send_all(&mut system, &all);
    assert!(system.taken == [all[0].clone(), all[3].clone()]);
    assert_eq!((stats.sent, stats.sent_bytes, stats.passed_over), (2, 18, 2));
}
