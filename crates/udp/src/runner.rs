//! One machine on one carrier: the loop that everything else here waits for.
//!
//! A round never waits, takes in and sends a bounded number of datagrams, and meets errors a bounded number
//! of times; what it left over is in its answer to [`pause`](Runner::pause). So a thread, a
//! task, or a game once a frame can call it, with the same machine behind it.

use std::io;
use std::time::Duration;

use haulier_core::Machine;

use crate::errors::{Meaning, is_refused, sort};
use crate::outbox::{Blocked, Outbox};
use crate::{Carrier, Clock, Inbox, Interest, Socket, WakeUp, seed, wait};

/// Datagrams after which one round receives no more, so that a flood cannot keep it from sending.
const RECEIVED_PER_ROUND: usize = 1024;

/// Datagrams after which one round sends no more, so that a thousand joiners cannot keep it from receiving
/// acks.
const SENT_PER_ROUND: usize = 1024;

/// Errors that one round passes over while it receives. There are seldom several: a socket keeps one.
const PASSED_OVER_PER_ROUND: usize = 64;

/// How long a runner leaves a carrier alone that has no room, or gives nothing but errors: long enough not to
/// spin, short for a queue that drains.
const RETRY: Duration = Duration::from_millis(5);

/// What a runner has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunnerStats {
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes in them, without headers.
    pub sent_bytes: u64,
    /// Calls that sent several of them.
    pub batches: u64,
    /// Calls that sent them.
    pub send_calls: u64,
    /// Datagrams received.
    pub received: u64,
    /// Calls that received them.
    pub receive_calls: u64,
    /// Sends put off because the system had no room.
    pub blocked: u64,
    /// Errors that were passed over, such as ICMP "port unreachable".
    pub passed_over: u64,
    /// Of these, refusals: the other end's host reports that the port is closed.
    pub refused: u64,
}

/// Drives a machine: hands it datagrams and the time, and sends what it has to send.
///
/// ```
/// use haulier_core::{Batch, FourTuple, Instant, Machine};
/// use haulier_udp::{Clock, Runner, Socket};
/// use std::time::Duration;
///
/// /// Sends back what it receives.
/// #[derive(Default)]
/// struct Echo(Vec<(FourTuple, Vec<u8>)>);
///
/// impl Machine for Echo {
///     fn handle_datagram(&mut self, _: Instant, path: FourTuple, datagram: &mut [u8]) {
///         self.0.push((path, datagram.to_vec()));
///     }
///     fn handle_timeout(&mut self, _: Instant) {}
///     fn poll_transmit(&mut self, _: Instant, batch: &mut Batch) {
///         while !batch.is_full() && let Some((path, datagram)) = self.0.pop() {
///             batch.push(path, &datagram);
///         }
///     }
///     fn poll_timeout(&self) -> Option<Instant> {
///         (!self.0.is_empty()).then_some(Instant::ZERO)
///     }
/// }
///
/// let socket = Socket::bind("127.0.0.1:0".parse()?)?;
/// let to = socket.local_addr();
/// let mut runner = Runner::new(Echo::default(), socket, Clock::start());
/// let client = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// client.send_to(b"hello", to)?;
/// while runner.stats().sent == 0 {
///     runner.turn(Duration::from_millis(20))?;
/// }
/// let mut buffer = [0; 10];
/// assert_eq!(client.recv(&mut buffer)?, 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Runner<M, S = Socket> {
    /// The machine, for the application to speak to between rounds.
    pub machine: M,
    carrier: S,
    clock: Clock,
    inbox: Inbox,
    outbox: Outbox,
    stats: RunnerStats,
    /// The last round reached a limit, so there is more to do; the system will not wake us for it.
    has_more: bool,
    /// The last round stopped receiving, because the carrier returned only errors.
    is_failing: bool,
}

impl<M: Machine, S: Carrier> Runner<M, S> {
    /// A runner of `machine` on `carrier`. The machine's time is counted by `clock`.
    pub fn new(machine: M, carrier: S, clock: Clock) -> Self {
        Self {
            machine,
            carrier,
            clock,
            inbox: Inbox::new(),
            outbox: Outbox::new(),
            stats: RunnerStats::default(),
            has_more: false,
            is_failing: false,
        }
    }

    /// The clock that the machine's time is counted by.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The carrier, to look at.
    pub const fn carrier(&self) -> &S {
        &self.carrier
    }

    /// Counters.
    pub const fn stats(&self) -> &RunnerStats {
        &self.stats
    }

    /// Goes on with another carrier, and returns the old one. Datagrams that waited in it are lost, like
    /// those on the way.
    #[doc(hidden)]
    pub const fn replace_carrier(&mut self, carrier: S) -> S {
        std::mem::replace(&mut self.carrier, carrier)
    }

    /// Makes the system give memory that it would otherwise give when many datagrams arrive for the first
    /// time. To be called while there is nothing to do.
    #[doc(hidden)]
    pub fn make_ready(&mut self) {
        self.inbox.make_ready();
    }

    /// Sends at most this many datagrams with one call; 1 sends each alone. For an interface whose driver
    /// splits badly.
    #[doc(hidden)]
    pub fn limit_segments(&mut self, max_segments: usize) {
        self.carrier.limit_segments(max_segments);
    }

    /// Receives the datagrams that have arrived, runs the timers that have expired, and sends the machine's
    /// datagrams. Never waits.
    ///
    /// # Errors
    /// Those of the carrier that will not pass. Never for one packet, full buffers, or an ICMP error.
    pub fn round(&mut self) -> io::Result<()> {
        self.has_more = self.receive()?;
        self.machine.handle_timeout(self.clock.now());
        self.transmit()
    }

    /// Sends the machine's datagrams, and does nothing else: for an answer that should not wait for the next
    /// round.
    ///
    /// # Errors
    /// As [`round`](Self::round).
    pub fn transmit(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while self.outbox.send(&mut self.carrier, &mut self.stats)? {
            if sent >= SENT_PER_ROUND {
                self.has_more = true;
                break;
            }
            // A batch that came back with room was the last.
            if sent > 0 && !self.outbox.is_full() {
                break;
            }
            let (machine, now) = (&mut self.machine, self.clock.now());
            sent += match self.outbox.fill(|batch| machine.poll_transmit(now, batch)) {
                0 => break,
                datagrams => datagrams,
            };
        }
        Ok(())
    }

    /// How long there is nothing to do unless the carrier reports something, but no longer than `max`.
    pub fn pause(&self, max: Duration) -> Duration {
        if self.has_more {
            return Duration::ZERO;
        }
        // While a datagram waits for room, deadlines cannot be met.
        if self.outbox.blocked().is_some() {
            return max.min(RETRY);
        }
        let max = if self.is_failing { max.min(RETRY) } else { max };
        self.machine.poll_timeout().map_or(max, |at| max.min(self.clock.until(at)))
    }

    /// Whether more work waits than one round may do.
    fn receive(&mut self) -> io::Result<bool> {
        let (mut received, mut passed_over, mut has_entropy) = (0, 0, false);
        self.is_failing = false;
        while received < RECEIVED_PER_ROUND {
            match self.carrier.receive(&mut self.inbox) {
                Ok(0) => return Ok(false),
                Ok(datagrams) => {
                    received += datagrams;
                    self.stats.received += datagrams as u64;
                    self.stats.receive_calls += 1;
                    let machine = &mut self.machine;
                    self.inbox.drain(&self.clock, |arrived, path, ecn, bytes, datagrams| {
                        let mut each = datagrams.chunks(bytes.max(1));
                        if !has_entropy && each.any(|it| machine.wants_entropy(it)) {
                            has_entropy = true;
                            // Without it the machine has what it was made with.
                            if let Ok(fresh) = seed() {
                                machine.mix_entropy(&fresh);
                            }
                        }
                        machine.handle_joined_datagrams(arrived, path, ecn, bytes, datagrams);
                    });
                }
                Err(error) => match sort(&error) {
                    Meaning::NotNow => return Ok(false),
                    Meaning::PassesOver => {
                        self.stats.passed_over += 1;
                        self.stats.refused += u64::from(is_refused(&error));
                        passed_over += 1;
                        if passed_over == PASSED_OVER_PER_ROUND {
                            self.is_failing = true;
                            return Ok(false);
                        }
                    }
                    Meaning::Fatal => return Err(error),
                },
            }
        }
        Ok(true)
    }
}

impl<M: Machine> Runner<M> {
    /// What the next [`wait`](wait()) should wake up for.
    pub fn interest(&self) -> Interest<'_> {
        Interest {
            socket: &self.carrier,
            is_readable: !self.is_failing,
            is_writable: self.outbox.blocked() == Some(Blocked::BySocket),
        }
    }

    /// Sleeps until there is something to do, but no longer than `max`. `wake_up` ends it from another
    /// thread.
    ///
    /// # Errors
    /// As the system says.
    pub fn wait(&self, max: Duration, wake_up: Option<&WakeUp>) -> io::Result<()> {
        wait(&[self.interest()], wake_up, self.pause(max))
    }

    /// A round; then waits for something to do, but no longer than `max`, and does it. Zero never waits.
    ///
    /// # Errors
    /// As [`round`](Self::round).
    pub fn turn(&mut self, max: Duration) -> io::Result<()> {
        self.round()?;
        if max.is_zero() {
            return Ok(());
        }
        self.wait(max, None)?;
        self.round()
    }
}

#[cfg(test)]
mod tests;
