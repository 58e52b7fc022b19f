//! A machine that sends what it has, keeps what it gets, and may send it back.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant as StdInstant};

use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_udp::{Clock, Runner, Socket};

/// After this a test has failed, however slow the machine is.
pub(crate) const MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) to_send: VecDeque<(FourTuple, Vec<u8>)>,
    pub(crate) received: Vec<(Instant, FourTuple, Vec<u8>)>,
    pub(crate) echoes: bool,
    /// The ECN field of what it sends, and of each datagram it got.
    pub(crate) ecn: Option<Ecn>,
    pub(crate) marks: Vec<Ecn>,
}

impl Machine for Mail {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        if self.echoes {
            self.to_send.push_back((path, datagram.to_vec()));
        }
        self.received.push((now, path, datagram.to_vec()));
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        self.marks.push(ecn);
        self.handle_datagram(now, path, datagram);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, batch: &mut Batch) {
        let ecn = self.ecn.unwrap_or(Ecn::NotEct);
        while !batch.is_full()
            && let Some((path, bytes)) = self.to_send.pop_front()
        {
            batch.compose(|datagram| {
                datagram.vec().extend_from_slice(&bytes);
                datagram.set_ecn(ecn);
                Some(path)
            });
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.to_send.is_empty()).then_some(Instant::ZERO)
    }
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn mail(socket: Socket) -> Runner<Mail> {
    Runner::new(Mail::default(), socket, Clock::start())
}

/// Turns until it is so.
pub(crate) fn until(runner: &mut Runner<Mail>, mut is_so: impl FnMut(&Runner<Mail>) -> bool) {
    let began = StdInstant::now();
    while !is_so(runner) {
        assert!(began.elapsed() < MAX, "{:?}", runner.stats());
        runner.turn(Duration::from_millis(20)).unwrap();
    }
}
