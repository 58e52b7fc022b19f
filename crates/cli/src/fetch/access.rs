//! Where the server is and what lets a client in, whichever way it was said: a ticket, a token, or an
//! address with a file that holds the secret.
//!
//! None of the errors quotes what it could not read: a ticket with one letter wrong is still a secret.

use std::net::SocketAddr;

use haulier::{ConnectToken, Credentials, Ticket, TicketError};
use zeroize::Zeroizing;

use crate::args::FetchArgs;
use crate::failure::Failure;
use crate::keys::{self, Kind};
use crate::units;

/// The variable that holds a ticket.
const VARIABLE: &str = "HAULIER_TICKET";

/// How a token begins.
const TOKEN_PREFIX: &str = "haulier-token";

/// What it takes to be let in.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) protocol_id: u64,
    pub(super) credentials: Credentials,
    /// The BLAKE3 that the file must have.
    pub(super) digest: Option<[u8; 32]>,
    /// The secret is a ticket's, and not one from a file.
    pub(super) is_ticket: bool,
}

/// What lets the client in, and the name of the file it wants.
pub(super) fn find(args: &FetchArgs) -> Result<(Access, Option<String>), Failure> {
    let (source, name) = source(args)?;
    let source = source.trim();
    let has_file = args.open || args.secret_file.is_some() || args.token_file.is_some();
    let is_token = source.starts_with(TOKEN_PREFIX);
    let access = match units::address(source) {
        Ok(address) if !is_token => at(address, args)?,
        _ if has_file => {
            let what = "--open, --secret-file and --token-file go with an ADDR: tickets and tokens \
                        say themselves where to go, and what lets you in";
            return Err(Failure::Usage(what.into()));
        }
        _ if is_token => by_token(parse_token(source)?, None)?,
        _ => by_ticket(source)?,
    };
    Ok((access, name))
}

/// The text that says where to go, and the name.
fn source(args: &FetchArgs) -> Result<(Zeroizing<String>, Option<String>), Failure> {
    let (first, second) = (args.source.clone(), args.name.clone());
    if let Some(path) = &args.ticket_file {
        if second.is_some() {
            let what = "with --ticket-file there can only be a NAME, and no TICKET";
            return Err(Failure::Usage(what.into()));
        }
        return Ok((keys::read_text(path)?, first));
    }
    let from_variable = || std::env::var(VARIABLE).ok().filter(|ticket| !ticket.is_empty());
    match (first, second) {
        (Some(first), second) if first == "-" => Ok((keys::read_stdin()?, second)),
        (Some(first), None) if !is_source(&first) && from_variable().is_some() => {
            Ok((from_variable().unwrap_or_default().into(), Some(first)))
        }
        (Some(first), second) => Ok((first.into(), second)),
        (None, _) => match from_variable() {
            Some(ticket) => Ok((ticket.into(), None)),
            None => Err(Failure::Usage(format!(
                "there is no ticket: give the line that `haulier serve` printed, `-`, \
                 --ticket-file FILE, or {VARIABLE}"
            ))),
        },
    }
}

/// Whether an argument says where to go, and is not the name of a file.
fn is_source(text: &str) -> bool {
    let has_port =
        |text: &str| text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    text.starts_with("haulier1:") || text.starts_with(TOKEN_PREFIX) || has_port(text)
}

fn at(address: SocketAddr, args: &FetchArgs) -> Result<Access, Failure> {
    let credentials = if args.open {
        Credentials::Open
    } else if let Some(path) = &args.secret_file {
        let identity = args.identity_file.as_ref().map(|path| keys::read_public(path));
        let secret = keys::read(path, Kind::Secret)?;
        Credentials::Secret { secret, identity: identity.transpose()? }
    } else if let Some(path) = &args.token_file {
        return by_token(parse_token(&keys::read_text(path)?)?, Some(address));
    } else {
        let what = "an address alone lets nobody in: give the server's ticket instead, or one of \
                    --secret-file, --token-file and --open with it";
        return Err(Failure::Usage(what.into()));
    };
    Ok(Access {
        addresses: vec![address],
        protocol_id: args.wire.protocol_id,
        credentials,
        digest: None,
        is_ticket: false,
    })
}

fn parse_token(text: &str) -> Result<ConnectToken, Failure> {
    ConnectToken::parse(text).map_err(|error| Failure::Usage(error.to_string()))
}

fn by_token(token: ConnectToken, address: Option<SocketAddr>) -> Result<Access, Failure> {
    let addresses = address.map_or_else(|| token.servers().to_vec(), |address| vec![address]);
    if addresses.is_empty() {
        let what = "the token does not say where to go: give ADDR --token-file FILE";
        return Err(Failure::Usage(what.into()));
    }
    Ok(Access {
        addresses,
        protocol_id: token.protocol_id(),
        credentials: Credentials::Token(token),
        digest: None,
        is_ticket: false,
    })
}

fn by_ticket(text: &str) -> Result<Access, Failure> {
    let ticket = Ticket::parse(text).map_err(|error| {
        Failure::Usage(match error {
            TicketError::NotATicket => format!("{error}, or give HOST:PORT"),
            _ => error.to_string(),
        })
    })?;
    let credentials = Credentials::from(&ticket);
    Ok(Access {
        addresses: ticket.addresses().to_vec(),
        protocol_id: ticket.protocol_id(),
        credentials,
        digest: ticket.digest().copied(),
        is_ticket: true,
    })
}
