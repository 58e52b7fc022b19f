//! Where the server is and what lets a client in, whichever way it was said: a ticket, a token, or an
//! address with a file that holds the secret. And if it did not, why, with what to do.
//!
//! None of the errors quotes what it could not read: a ticket with one letter wrong is still a secret.

use std::net::SocketAddr;

use haulier::{
    Attempt, AttemptError, CloseReason, Connect, ConnectError, ConnectToken, Credentials,
    ErrorKind, RefusalCode, Ticket, TicketError,
};
use haulier_shell::failure::{Failure, plain};
use haulier_shell::report::Report;
use haulier_shell::resolve;
use zeroize::Zeroizing;

use crate::args::ConnectArgs;
use crate::keys::{self, Kind};

/// The variable that holds a ticket.
const VARIABLE: &str = "HAULIER_TICKET";

/// How a ticket begins.
const TICKET_PREFIX: &str = "haulier1:";

/// How a token begins.
pub(crate) const TOKEN_PREFIX: &str = "haulier-token";

/// What it takes to be let in.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) connect: Connect,
    /// The BLAKE3 that the file must have.
    pub(crate) digest: Option<[u8; 32]>,
    /// The secret is a ticket's, and not one from a file.
    is_ticket: bool,
    /// The command that should run there.
    peer: &'static str,
}

/// What lets the client in, by a ticket, a token, or an address with what belongs to it. `peer` is what
/// should be there, for errors.
pub(crate) fn find(
    source: &str,
    args: &ConnectArgs,
    peer: &'static str,
    report: &Report,
) -> Result<Access, Failure> {
    let source = source.trim();
    let has_file = args.open || args.secret_file.is_some() || args.token_file.is_some();
    let is_token = source.starts_with(TOKEN_PREFIX);
    let is_ticket = source.starts_with(TICKET_PREFIX);
    let place = if is_token || is_ticket { None } else { resolve::place(source, report)? };
    let access = match place {
        Some(addresses) => at(&addresses, args)?,
        None if has_file && !is_token && !is_ticket => {
            let what = "the address has no port: write HOST:PORT, as in 192.0.2.7:4016";
            return Err(Failure::Usage(what.into()));
        }
        None if has_file => {
            let what = "--open, --secret-file and --token-file go with an ADDR: tickets and tokens \
                        say themselves where to go, and what lets you in";
            return Err(Failure::Usage(what.into()));
        }
        None if is_token => by_token(parse_token(source)?, &[])?,
        None => by_ticket(source)?,
    };
    Ok(Access { peer, ..access })
}

/// The access to a server that was found on the local network: the announcement has its addresses, but
/// neither a secret that lets the client in nor the identity that the server must have.
pub(crate) fn on_lan(
    ticket: Option<&str>,
    addresses: &[SocketAddr],
    args: &ConnectArgs,
    peer: &'static str,
) -> Result<Access, Failure> {
    let mut access = match ticket.map(str::trim) {
        None => at(addresses, args)?,
        Some(text) if text.starts_with(TOKEN_PREFIX) => by_token(parse_token(text)?, addresses)?,
        Some(text) => by_ticket(text)?,
    };
    access.connect.servers = addresses.to_vec();
    Ok(Access { peer, ..access })
}

/// The ticket or token where none is an argument: from a file, or from the variable.
pub(crate) fn elsewhere(args: &ConnectArgs) -> Result<Option<Zeroizing<String>>, Failure> {
    if let Some(path) = &args.ticket_file {
        let text = keys::read_text(path, args.key_files)?;
        return not_empty(text, &format!("{} is empty", path.display())).map(Some);
    }
    let ticket = std::env::var(VARIABLE).ok().filter(|ticket| !ticket.is_empty());
    Ok(ticket.map(Zeroizing::new))
}

/// Refuses an empty ticket: its server does not listen yet, or has failed.
pub(crate) fn not_empty(text: Zeroizing<String>, what: &str) -> Result<Zeroizing<String>, Failure> {
    if text.trim().is_empty() {
        let what = format!("{what}: there is a ticket in it once the server listens");
        return Err(Failure::Credentials(what));
    }
    Ok(text)
}

/// What to do without one.
pub(crate) fn no_ticket(peer: &str) -> Failure {
    Failure::Usage(format!(
        "there is no ticket: give the line that {peer} printed, `-`, --ticket-file FILE, or {VARIABLE}"
    ))
}

/// Whether an argument says where to go, and is not the name of a file.
pub(crate) fn is_source(text: &str) -> bool {
    let has_port =
        |text: &str| text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    text.starts_with(TICKET_PREFIX) || text.starts_with(TOKEN_PREFIX) || has_port(text)
}

fn at(addresses: &[SocketAddr], args: &ConnectArgs) -> Result<Access, Failure> {
    let credentials = if args.open {
        Credentials::Open
    } else if let Some(path) = &args.secret_file {
        let identity =
            args.identity_file.as_ref().map(|path| keys::read_public(path, args.key_files));
        let secret = keys::read(path, Kind::Secret, args.key_files)?;
        Credentials::Secret { secret, identity: identity.transpose()? }
    } else if let Some(path) = &args.token_file {
        return by_token(parse_token(&keys::read_text(path, args.key_files)?)?, addresses);
    } else {
        let what = "an address alone lets nobody in: give the server's ticket instead, or one of \
                    --secret-file, --token-file and --open with it";
        return Err(Failure::Usage(what.into()));
    };
    let Some(&first) = addresses.first() else {
        return Err(Failure::Usage("there is no address".into()));
    };
    let connect = Connect::new(first, args.wire.protocol_id, credentials).with_servers(addresses);
    Ok(Access { connect, digest: None, is_ticket: false, peer: "" })
}

fn parse_token(text: &str) -> Result<ConnectToken, Failure> {
    ConnectToken::parse(text).map_err(|error| Failure::Credentials(error.to_string()))
}

fn by_token(token: ConnectToken, addresses: &[SocketAddr]) -> Result<Access, Failure> {
    let mut connect = Connect::from(&token);
    if !addresses.is_empty() {
        connect.servers = addresses.to_vec();
    }
    if connect.servers.is_empty() {
        let what = "the token does not say where to go: give ADDR --token-file FILE";
        return Err(Failure::Usage(what.into()));
    }
    Ok(Access { connect, digest: None, is_ticket: false, peer: "" })
}

fn by_ticket(text: &str) -> Result<Access, Failure> {
    let ticket = Ticket::parse(text).map_err(|error| {
        Failure::Credentials(match error {
            TicketError::NotATicket => format!("{error}, or give HOST:PORT"),
            _ => error.to_string(),
        })
    })?;
    let digest = ticket.digest().copied();
    Ok(Access { connect: Connect::from(&ticket), digest, is_ticket: true, peer: "" })
}

fn listed(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" and ")
}

impl Access {
    /// Why there is no client.
    pub(crate) fn not_begun(&self, error: &ConnectError) -> Failure {
        match error {
            ConnectError::Failed(attempts) => self.not_connected(attempts),
            ConnectError::Io(error) => Failure::socket("socket", error),
            ConnectError::Network(error) => error.clone().into(),
            _ => Failure::Usage(error.to_string()),
        }
    }

    /// Why there is no connection, with what to do: a refusal says more than silence, and that more than a
    /// closed port, for another program's host may have one of the addresses here.
    pub(crate) fn not_connected(&self, attempts: &[Attempt]) -> Failure {
        let (mut closed, mut silent, mut no_route) = (Vec::new(), Vec::new(), None);
        for Attempt { server, error, .. } in attempts {
            match error {
                Some(AttemptError::Closed(CloseReason::Refused(code))) => {
                    return Failure::refused(*code, self.refused(*server, *code));
                }
                Some(AttemptError::NobodyListens) => closed.push(*server),
                Some(AttemptError::NoRoute(error)) => no_route = Some((*server, plain(error))),
                _ => silent.push(*server),
            }
        }
        let peer = self.peer;
        if !silent.is_empty() {
            return Failure::peer(ErrorKind::NoAnswer, self.no_answer(&silent, &closed));
        }
        Failure::peer(
            ErrorKind::Unreachable,
            match no_route {
                Some((server, error)) if closed.is_empty() => {
                    format!("{server} cannot be reached from here: {error}")
                }
                _ => format!(
                    "nobody listens at {}: is {peer} running there? If it was started again, \
                     take the ticket that it prints now",
                    listed(&closed)
                ),
            },
        )
    }

    fn no_answer(&self, silent: &[SocketAddr], closed: &[SocketAddr]) -> String {
        let timeout = self.connect.connection.handshake_timeout.as_secs_f64();
        let (to, peer) = (listed(silent), self.peer);
        // A server that cannot prove the identity cannot even read the request.
        let identity = if self.insists() { ", with the identity that you insist on," } else { "," };
        let closed = match closed {
            [] => String::new(),
            closed => format!(" (nobody listens at {})", listed(closed)),
        };
        format!(
            "no answer from {to} for {timeout} s: is {peer} running there{identity} and does the firewall \
             let UDP through?{closed}"
        )
    }

    /// Whether only a server with a certain identity will do.
    const fn insists(&self) -> bool {
        match &self.connect.credentials {
            Credentials::Secret { identity, .. } => identity.is_some(),
            Credentials::Token(token) => token.identity().is_some(),
            _ => false,
        }
    }

    fn refused(&self, server: SocketAddr, code: RefusalCode) -> String {
        let why = match (code, &self.connect.credentials) {
            (RefusalCode::Key, Credentials::Secret { .. }) if self.is_ticket => {
                "the ticket is of another run of the server, or of another server: take the one that \
                 it prints now"
            }
            (RefusalCode::Key, Credentials::Secret { .. }) => {
                "its secret or its --protocol-id is another one: both ends need the same file and \
                 number"
            }
            (RefusalCode::Key, Credentials::Token(_)) => {
                "the token is not made with its --token-key, or insists on an --identity-file that it \
                 lacks: ask for another one"
            }
            (RefusalCode::Key, Credentials::Open) => {
                "it does not take everybody, or its --protocol-id is another one: ask for its ticket"
            }
            (RefusalCode::Version, _) => {
                "it speaks another version of haulier/1: update the older of the two"
            }
            (RefusalCode::WrongServer, _) => {
                "the token is not for this server: ask for another one, or, if the server is known by \
                 another address, start it with --address"
            }
            (RefusalCode::Full, _) => "it is full (--max-clients): try again later",
            (RefusalCode::ShuttingDown, _) => {
                "it is shutting down: ask for the ticket of its next run"
            }
            (RefusalCode::TokenExpired, _) => "the token has expired: ask for another one",
            (RefusalCode::TokenUsed, _) => {
                "the token was used before, or is older than the server's start, and is good for one \
                 connection: ask for another one"
            }
            (other, _) => return format!("{server} refuses: {other}"),
        };
        format!("{server} refuses: {why}")
    }
}
