//! A server's end: its machine, and the time of day, at which tokens expire.

use std::io;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use haulier_core::{Instant, Machine as _};
use haulier_proto::server::{ConnectionId, ServerEvent, ServerMachine};

use super::race::Key;
use super::shared::{End, SocketFault};

pub(crate) struct Serving {
    pub(crate) machine: ServerMachine,
    pub(crate) is_shutting_down: bool,
}

impl Serving {
    pub(crate) fn shut_down(&mut self, now: Instant) {
        self.is_shutting_down = true;
        self.machine.shut_down(now);
    }
}

impl End for Serving {
    type Machine = ServerMachine;
    type Event = (ConnectionId, ServerEvent);

    const THREAD: &'static str = "haulier-server";

    fn machine(&mut self, _: Key) -> Option<&mut ServerMachine> {
        Some(&mut self.machine)
    }

    /// Updates the time of day, which may be changed at any time.
    fn step(&mut self, now: Instant) -> Vec<(Key, SocketAddr)> {
        match unix_time() {
            Some(unix_time) => self.machine.set_unix_time(now, unix_time),
            None => self.machine.forget_unix_time(),
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

    fn poll_event(&mut self, now: Instant) -> Option<(ConnectionId, ServerEvent)> {
        self.machine.poll_event(now)
    }

    fn is_over(&self) -> bool {
        self.is_shutting_down && self.machine.stats().connections == 0
    }

    fn on_rebound(&mut self) {}

    fn leave(&mut self, now: Instant) {
        self.shut_down(now);
    }

    fn prepare() {}

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
    use std::sync::Arc;
    use std::task::Waker;
    use std::time::Duration;

    use haulier_core::FourTuple;
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
            let machine = ServerMachine::new(now, 0, config, [3; 32]).unwrap();
            let serving = Serving { machine, is_shutting_down: false };
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
