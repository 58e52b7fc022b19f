//! A server's end: a worker on a socket, the desk that it shares with others, and the time of day, at which
//! tokens expire.
//!
//! The invariant: locks are taken in one order, a worker's, then the desk's or a queue of strays; of the last
//! two one at a time, and nothing is called while one is held.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{SystemTime, UNIX_EPOCH};

use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_proto::DropReason;
use haulier_proto::connection::trace::Traced;
use haulier_proto::server::{
    AtDesk, ConnectionId, Desk, Handled, ServerEvent, ServerMachine, Stray, Strays, Worker,
};

use super::gateway::{Carriage, Heard};
use super::race::Key;
use super::shared::{End, SocketFault};
use super::sinks::Sinks;

/// What all workers of a server share.
pub(crate) struct Common {
    desk: Mutex<Desk>,
    workers: Vec<Reach>,
    pub(crate) carriage: Arc<Carriage>,
}

/// What the others can do with a worker.
#[derive(Default)]
struct Reach {
    strays: Mutex<Strays>,
    /// Wakes its thread.
    waker: OnceLock<Waker>,
}

impl Common {
    pub(crate) fn new(desk: Desk, workers: usize) -> Self {
        let workers = (0..workers).map(|_| Reach::default()).collect();
        Self { desk: Mutex::new(desk), workers, carriage: Arc::default() }
    }

    /// What wakes the thread of a worker, once that runs: strays may wait for it already.
    pub(crate) fn set_waker(&self, number: usize, waker: Waker) {
        if let Some(reach) = self.workers.get(number) {
            let _first = reach.waker.set(waker);
        }
        self.wake(number);
    }

    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        lock(&self.desk)
    }

    /// Hands a datagram to the worker that it is for. Returns whether it had room.
    fn hand_over(&self, number: usize, stray: Stray) -> bool {
        let Some(reach) = self.workers.get(number) else { return false };
        let mut strays = lock(&reach.strays);
        let (is_first, has_room) = (strays.is_empty(), strays.push(stray));
        drop(strays);
        if is_first {
            self.wake(number);
        }
        has_room
    }

    fn wake(&self, number: usize) {
        let waker = self.workers.get(number).and_then(|reach| reach.waker.get());
        waker.inspect(|waker| waker.wake_by_ref());
    }
}

/// A worker that panicked is reported to the application by its own handle; the others go on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The desk behind its lock.
struct Locked<'a>(&'a Mutex<Desk>);

impl AtDesk for Locked<'_> {
    fn ask<R>(&mut self, ask: impl FnOnce(&mut Desk) -> R) -> R {
        ask(&mut lock(self.0))
    }
}

/// A worker, as a machine on its socket.
pub(crate) struct Working {
    pub(crate) worker: Worker,
    pub(crate) common: Arc<Common>,
    number: usize,
}

impl Working {
    pub(crate) const fn new(worker: Worker, common: Arc<Common>, number: usize) -> Self {
        Self { worker, common, number }
    }

    /// At the end of a round.
    fn report(&mut self, now: Instant) {
        self.worker.report(now, &mut Locked(&self.common.desk));
        if self.worker.takes_call() {
            let others = (0..self.common.workers.len()).filter(|&other| other != self.number);
            others.for_each(|other| self.common.wake(other));
        }
    }

    /// A datagram of a carried peer, with random bytes if it may make the machine draw keys.
    pub(crate) fn handle_carried(
        &mut self,
        now: Instant,
        path: FourTuple,
        fresh: Option<[u8; 32]>,
        datagram: &mut [u8],
    ) -> Heard {
        fresh.iter().for_each(|fresh| self.mix_entropy(fresh));
        let outcome = self.take(now, path, Ecn::NotEct, datagram);
        self.report(now);
        match outcome {
            // In line, a request is verified and has no seat.
            Ok(_) | Err(DropReason::NoSlot) => Heard::Verified,
            Err(_) => Heard::Dropped,
        }
    }

    /// Gives a datagram to its worker, or to another one.
    fn take(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<Handled, DropReason> {
        let desk = &mut Locked(&self.common.desk);
        let outcome = self.worker.handle_datagram(now, desk, path, ecn, datagram);
        if let Ok(Handled::ForWorker(number)) = outcome {
            let stray = Stray { at: now, path, ecn, datagram: datagram.to_vec() };
            if !self.common.hand_over(number, stray) {
                self.worker.lose_stray();
            }
        }
        outcome
    }

    fn handle_strays(&mut self) {
        let Some(reach) = self.common.workers.get(self.number) else { return };
        let strays = lock(&reach.strays).take();
        for mut stray in strays {
            let desk = &mut Locked(&self.common.desk);
            let _counted = self.worker.handle_stray(desk, &mut stray);
        }
    }
}

impl Machine for Working {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let _counted = self.take(now, path, ecn, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_strays();
        self.worker.handle_timeout(now);
        self.report(now);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        self.worker.poll_transmit(now, batch);
        self.report(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.worker.poll_timeout()
    }

    fn wants_entropy(&self, datagram: &[u8]) -> bool {
        ServerMachine::is_request(datagram)
    }

    fn mix_entropy(&mut self, fresh: &[u8; 32]) {
        self.worker.mix_entropy(&mut Locked(&self.common.desk), fresh);
    }
}

pub(crate) struct Serving {
    pub(crate) machine: Working,
    pub(crate) is_shutting_down: bool,
    pub(crate) sinks: Sinks,
}

impl Serving {
    pub(crate) fn shut_down(&mut self, now: Instant) {
        self.is_shutting_down = true;
        let Working { worker, common, .. } = &mut self.machine;
        worker.shut_down(now, &mut Locked(&common.desk));
        self.machine.report(now);
    }
}

impl End for Serving {
    type Machine = Working;
    type Event = (ConnectionId, ServerEvent);

    const THREAD: &'static str = "haulier-server";

    fn machine(&mut self, _: Key) -> Option<&mut Working> {
        Some(&mut self.machine)
    }

    /// Updates the time of day, which may be changed at any time.
    fn step(&mut self, now: Instant) -> Vec<(Key, SocketAddr)> {
        match unix_time() {
            Some(unix_time) => self.machine.worker.set_unix_time(now, unix_time),
            None => self.machine.worker.forget_unix_time(),
        }
        Vec::new()
    }

    fn on_socket_fault(&mut self, _: Instant, _: Key, fault: SocketFault) -> io::Result<()> {
        match fault {
            SocketFault::Refused => Ok(()),
            SocketFault::NotOpened(error) | SocketFault::Broken(error) => Err(error),
        }
    }

    fn step_timeout(&self) -> Option<Instant> {
        None
    }

    fn machine_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    /// Reading the last event of a connection removes the connection, which is reported to the desk.
    fn poll_event(&mut self, now: Instant) -> Option<(ConnectionId, ServerEvent)> {
        let event = self.machine.worker.poll_event(now);
        self.machine.report(now);
        event
    }

    fn poll_trace(&mut self) -> Option<(Option<ConnectionId>, Traced)> {
        self.machine.worker.poll_trace().map(|(id, traced)| (Some(id), traced))
    }

    fn sinks(&self) -> Sinks {
        self.sinks.clone()
    }

    fn carriage(&self) -> Option<Arc<Carriage>> {
        Some(Arc::clone(&self.machine.common.carriage))
    }

    fn is_over(&self) -> bool {
        self.is_shutting_down && self.machine.worker.connections().next().is_none()
    }

    fn on_rebound(&mut self) {}

    fn leave(&mut self, now: Instant) {
        self.shut_down(now);
    }

    fn wants_entropy(datagram: &[u8]) -> bool {
        ServerMachine::is_request(datagram)
    }
}

/// The start of 2026, in Unix seconds. This program is younger, so a clock that shows less was never set,
/// like that of a board without a battery, which starts in 1970. Expired tokens would pass by it.
const EARLIEST_UNIX_TIME: u64 = 1_767_225_600;

/// Seconds since 1970; `None` if the system clock cannot be right.
pub(crate) fn unix_time() -> Option<u64> {
    unix_time_of(SystemTime::now())
}

fn unix_time_of(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    (since >= EARLIEST_UNIX_TIME).then_some(since)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
    use haulier_proto::server::{ServerConfig, ServerCredentials};
    use haulier_udp::Clock;

    use super::super::shared::{Part, Shared};
    use super::*;

    /// What the runner does for a machine reaches the one behind the lock.
    #[test]
    fn fresh_bytes_reach_the_server() {
        let (now, from) = (Instant::ZERO, FourTuple::new(([192, 0, 2, 2], 5000).into()));
        let at = SocketAddr::from(([192, 0, 2, 1], 4000));
        let secret = haulier_proto::credentials::Secret::from_bytes([1; 32]);
        let access = Credentials::Secret { secret: secret.clone(), identity: None };
        let mut client =
            ClientMachine::new(now, ClientConfig::new(at, 7, access), [2; 32]).unwrap();
        let mut request = Vec::new();
        assert!(client.poll_datagram(now, &mut request).is_some());
        let answer = |fresh: Option<[u8; 32]>| {
            let credentials = ServerCredentials::default().with_secret(secret.clone());
            let config = ServerConfig::new(7, credentials);
            let (desk, mut workers) = Desk::open(now, 0, config, [[3; 32]]).unwrap();
            let common = Arc::new(Common::new(desk, 1));
            let machine = Working::new(workers.pop().unwrap(), common, 0);
            let serving = Serving { machine, is_shutting_down: false, sinks: Sinks::default() };
            let shared = Arc::new(Shared::new(serving, Clock::start(), Waker::noop().clone()));
            let mut part = Part { shared, key: 0 };
            assert!(part.wants_entropy(&request) && !part.wants_entropy(&request[1..]));
            fresh.iter().for_each(|fresh| part.mix_entropy(fresh));
            part.handle_datagram(now, from, &mut request.clone());
            let mut answer = Vec::new();
            assert!(part.poll_datagram(now, &mut answer).is_some());
            answer
        };
        assert_eq!(answer(None), answer(None));
        assert_ne!(answer(None), answer(Some([4; 32])));
    }

    /// The time of a clock before 1970 counted as 1970, and every token passed.
    #[test]
    fn a_clock_that_was_never_set_gives_no_time() {
        let set = UNIX_EPOCH + Duration::from_secs(EARLIEST_UNIX_TIME);
        assert_eq!(unix_time_of(set), Some(EARLIEST_UNIX_TIME));
        assert_eq!(unix_time_of(set - Duration::from_secs(1)), None);
        assert_eq!(unix_time_of(UNIX_EPOCH + Duration::from_secs(300)), None);
        assert_eq!(unix_time_of(UNIX_EPOCH - Duration::from_secs(1)), None);
    }
}
