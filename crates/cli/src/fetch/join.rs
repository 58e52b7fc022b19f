//! From a list of addresses to a connection: a client for each address, begun one after the other. The
//! first that is welcome wins.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use haulier::proto::client::ClientConfig;
use haulier::{CloseReason, ConnectionConfig, Credentials, Event, RefusalCode, WireBytes};

use super::access::Access;
use crate::args::FetchArgs;
use crate::failure::Failure;
use crate::files::Request;
use crate::interrupt;
use crate::runners::{self, ClientEnd};

/// How long an address may be silent before the next is asked, too: RFC 8305 has the same for TCP.
const NEXT_AFTER: Duration = Duration::from_millis(250);

/// How long one turn of the loop may sleep.
const TURN: Duration = Duration::from_millis(20);

/// The largest block taken: what `serve` holds.
const LARGEST_BLOCK: u64 = 1 << 30;

/// The shortest silence that ends a connection, by the wire.
const LEAST_IDLE: Duration = Duration::from_secs(1);

/// A connection, and what it took.
pub(super) struct Joined {
    pub(super) driver: ClientEnd,
    /// Before the first datagram.
    pub(super) started: Instant,
    pub(super) connect: Duration,
    /// What went to and came from the addresses that lost.
    pub(super) elsewhere: WireBytes,
}

/// Asks all the addresses for this.
pub(super) fn join(
    access: &Access,
    request: &Request,
    args: &FetchArgs,
) -> Result<Joined, Failure> {
    let started = Instant::now();
    let mut asking = Asking {
        left: access.addresses.iter().copied().rev().collect(),
        running: Vec::new(),
        next_at: started,
        elsewhere: WireBytes::default(),
        failed: Vec::new(),
        refused: false,
    };
    loop {
        interrupt::check()?;
        asking.begin(access, request, args);
        if asking.running.is_empty() && asking.left.is_empty() {
            return Err(asking.failure(access, args));
        }
        if let Some(driver) = asking.turn() {
            // Each of the others may have been heard, and is not waited for.
            for other in asking.running.drain(..) {
                add(&mut asking.elsewhere, other.machine.wire_bytes());
            }
            let (connect, elsewhere) = (started.elapsed(), asking.elsewhere);
            return Ok(Joined { driver, started, connect, elsewhere });
        }
    }
}

struct Asking {
    /// The last is next.
    left: Vec<SocketAddr>,
    running: Vec<ClientEnd>,
    next_at: Instant,
    elsewhere: WireBytes,
    failed: Vec<(SocketAddr, CloseReason)>,
    /// The machine at one of the addresses says that nobody listens there.
    refused: bool,
}

impl Asking {
    /// Begins with the next address, if it is time.
    fn begin(&mut self, access: &Access, request: &Request, args: &FetchArgs) {
        let is_hopeless = self.running.iter().all(|driver| driver.stats().refused > 0);
        if !is_hopeless && Instant::now() < self.next_at {
            return;
        }
        let Some(server) = self.left.pop() else { return };
        self.next_at = Instant::now() + NEXT_AFTER;
        let credentials = access.credentials.clone();
        let config = ClientConfig::new(server, access.protocol_id, credentials)
            .with_request(request.to_bytes())
            .with_copies(args.copies)
            .with_connection(
                ConnectionConfig::default()
                    .with_handshake_timeout(args.timeout)
                    .with_idle_timeout(args.timeout.max(LEAST_IDLE))
                    .with_max_block_bytes(LARGEST_BLOCK),
            );
        match runners::client(config) {
            Ok(driver) => self.running.push(driver),
            // No route: an address for others.
            Err(_) => self.failed.push((server, CloseReason::NoAnswer)),
        }
    }

    /// One turn of all; the one that is welcome.
    fn turn(&mut self) -> Option<ClientEnd> {
        let share = TURN / u32::try_from(self.running.len().max(1)).unwrap_or(1);
        let mut at = 0;
        while let Some(driver) = self.running.get_mut(at) {
            let server = driver.machine.server();
            let ended = match driver.turn(share) {
                Ok(()) => driver.machine.poll_event(driver.clock().now()),
                Err(_) => Some(Event::Closed(CloseReason::NoAnswer)),
            };
            match ended {
                Some(Event::Closed(reason)) => {
                    let driver = self.running.remove(at);
                    self.refused |= driver.stats().refused > 0;
                    add(&mut self.elsewhere, driver.machine.wire_bytes());
                    self.failed.push((server, reason));
                }
                // The first event of a connection.
                Some(_) => return Some(self.running.remove(at)),
                None => at += 1,
            }
        }
        None
    }

    /// Why there is no connection, with what to do: a refusal says more than silence.
    fn failure(&self, access: &Access, args: &FetchArgs) -> Failure {
        let refusal = self.failed.iter().find_map(|(server, reason)| match reason {
            CloseReason::Refused(code) => Some((server, *code)),
            _ => None,
        });
        let timeout = args.timeout.as_secs_f64();
        let to: Vec<String> = access.addresses.iter().map(SocketAddr::to_string).collect();
        let to = to.join(" and ");
        Failure::TimeOut(match refusal {
            Some((server, code)) => refused(*server, code, access),
            None if self.refused => format!(
                "nobody listens at {to}: is `haulier serve` running there? If it was started again, \
                 take the ticket that it prints now"
            ),
            // A server that cannot prove the identity cannot even read the request.
            None if insists(&access.credentials) => format!(
                "no answer from {to} for {timeout} s: is `haulier serve` running there, with the \
                 identity that you insist on, and does the firewall let UDP through?"
            ),
            None => format!(
                "no answer from {to} for {timeout} s: is `haulier serve` running there, and does the \
                 firewall let UDP through?"
            ),
        })
    }
}

/// Whether only a server with a certain identity will do.
const fn insists(credentials: &Credentials) -> bool {
    match credentials {
        Credentials::Secret { identity, .. } => identity.is_some(),
        Credentials::Token(token) => token.identity().is_some(),
        _ => false,
    }
}

fn refused(server: SocketAddr, code: RefusalCode, access: &Access) -> String {
    let why = match (code, &access.credentials) {
        (RefusalCode::Key, Credentials::Secret { .. }) if access.is_ticket => {
            "the ticket is of another run of the server, or of another server: take the one that it \
             prints now"
        }
        (RefusalCode::Key, Credentials::Secret { .. }) => {
            "its secret or its --protocol-id is another one: both ends need the same file and number"
        }
        (RefusalCode::Key, Credentials::Token(_)) => {
            "the token is not made with its --token-key, not for this server, or insists on an \
             --identity-file that it lacks: ask for another one"
        }
        (RefusalCode::Key, Credentials::Open) => {
            "it does not take everybody, or its --protocol-id is another one: ask for its ticket"
        }
        (RefusalCode::Version, _) => {
            "it speaks another version of haulier/1: update the older of the two"
        }
        (RefusalCode::Full, _) => "it is full (--max-clients): try again later",
        (RefusalCode::ShuttingDown, _) => "it is shutting down: ask for the ticket of its next run",
        (RefusalCode::TokenExpired, _) => "the token has expired: ask for another one",
        (RefusalCode::TokenUsed, _) => {
            "the token was used before, and is good for one connection: ask for another one"
        }
        (other, _) => return format!("{server} refuses: {other}"),
    };
    format!("{server} refuses: {why}")
}

const fn add(sum: &mut WireBytes, more: WireBytes) {
    sum.received += more.received;
    sum.sent += more.sent;
}
