//! `haulier serve`: files and directories for all clients with the ticket, until interrupted.
//!
//! The answer to a request is queued the moment the request is verified, so that it begins to arrive in the
//! first round trip. A client is logged after its address is validated, so that spoofed addresses
//! do not fill the log.

mod addresses;
mod clients;
mod library;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haulier::{
    ConnectionConfig, EarlierTokens, Identity, Listen, Server, ServerConfig, ServerCredentials,
    ServerLimits, Ticket,
};
use haulier_files::offer::{Entry, Offer};
use haulier_files::session::Library;
use serde_json::json;

use self::clients::Clients;
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::files;
use crate::interrupt;
use crate::keygen::new_secret;
use crate::keys::{self, Kind};
use crate::report::Report;
use crate::units::show_bytes;

/// The longest silence after which a client is taken for gone. What a client says counts, if that is less:
/// the default of `fetch` is a minute.
const MAX_SILENCE: Duration = Duration::from_secs(120);

/// The first client may have the disk for itself this long: one that waits for the ticket is there by then,
/// and what it is sent is hashed with that.
const HASH_DELAY: Duration = Duration::from_secs(2);

/// A client may ask for a connection that outlives a silence of so long, with `fetch --timeout`: a train in a
/// tunnel, a router that starts again.
const MAX_SILENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &ServeArgs, report: &Report) -> Result<(), Failure> {
    let library = Arc::new(library::load(&args.files, report)?);
    let credentials = credentials(args)?;
    let listen = Listen::bind(args.bind)
        .map_err(|error| Failure::socket(&format!("cannot wait at {}", args.bind), &error))?;
    if let Some(warning) = listen.buffer_warning() {
        report.warning(&warning);
    }
    let local = listen.local_addr();
    let reachable = match args.address.is_empty() {
        true => addresses::reachable(local),
        false => args.address.clone(),
    };
    let server = listen.start(config(args, credentials, reachable.clone()))?;
    let pool = files::disk_pool(server.waker())?;
    let ticket = ticket(&server, &reachable, &library.offer())?;
    announce(local, ticket.as_ref(), &library.offer(), report)?;
    hash_later(&library);
    let mut clients = Clients::new(&server, &library, pool.handle(), args, report);
    while !interrupt::requested() && !clients.is_enough() {
        match server.wait(files::TURN)? {
            Some((id, event)) => clients.on_event(id, event),
            None => clients.go_on(),
        }
    }
    // A client in the middle of a file gets a close, and waits no longer.
    server.shut_down();
    loop {
        let is_shut_down = server.is_shut_down();
        match server.wait(files::TURN)? {
            Some((id, event)) => clients.on_event(id, event),
            None if is_shut_down => return clients.conclude(),
            None => {}
        }
    }
}

/// Large files are hashed beside the serving. Nobody waits for this thread at the end: what is kept of a file
/// is kept when all of it is hashed.
fn hash_later(library: &Arc<Library>) {
    let library = Arc::clone(library);
    thread::spawn(move || {
        thread::sleep(HASH_DELAY);
        library.hash_rest();
    });
}

fn credentials(args: &ServeArgs) -> Result<ServerCredentials, Failure> {
    if args.open {
        return Ok(ServerCredentials::default().with_open_access());
    }
    let secret = match &args.secret_file {
        Some(path) => Some(keys::read(path, Kind::Secret, args.key_files)?),
        // With tokens each client is known; a ticket would let in clients that are not.
        None if !args.token_key.is_empty() => None,
        None => Some(new_secret()?),
    };
    let token_keys = args.token_key.iter().map(|path| keys::read_token_key(path, args.key_files));
    let identity = args.identity_file.as_ref();
    let identity =
        identity.map(|path| keys::read(path, Kind::Identity, args.key_files)).transpose()?;
    let mut credentials = ServerCredentials::default();
    credentials.secret = secret;
    credentials.token_keys = token_keys.collect::<Result<_, _>>()?;
    credentials.identity = identity.map(Identity::new);
    Ok(credentials)
}

/// The server's, with the digest of the file if there is but one.
fn ticket(
    server: &Server,
    addresses: &[SocketAddr],
    offer: &Offer,
) -> Result<Option<Ticket>, Failure> {
    let ticket = server.ticket(addresses).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(ticket.map(|ticket| match only(offer).and_then(Entry::root) {
        Some(root) => ticket.with_digest(*root),
        None => ticket,
    }))
}

/// The file, if there is but one.
fn only(offer: &Offer) -> Option<&Entry> {
    match offer.entries() {
        [entry] => Some(entry),
        _ => None,
    }
}

fn config(
    args: &ServeArgs,
    credentials: ServerCredentials,
    addresses: Vec<SocketAddr>,
) -> ServerConfig {
    let earlier_tokens = match args.earlier_tokens {
        true => EarlierTokens::Accepted,
        false => EarlierTokens::Refused,
    };
    let connection = ConnectionConfig::default()
        .with_max_rate_bps(args.rate.unwrap_or(u64::MAX))
        .with_urgency(args.urgency.into())
        .with_idle_timeout(MAX_SILENCE)
        // Clients ask, and send nothing.
        .with_max_block_bytes(0)
        .with_max_unread_packet_bytes(4096);
    ServerConfig::new(args.wire.protocol_id, credentials)
        .with_addresses(addresses)
        .with_earlier_tokens(earlier_tokens)
        .with_limits(ServerLimits::default().with_connections(args.max_clients.into()))
        .with_max_uplink_bps(args.uplink.unwrap_or(u64::MAX))
        .with_connection(connection)
}

fn announce(
    local: SocketAddr,
    ticket: Option<&Ticket>,
    offer: &Offer,
    report: &Report,
) -> Result<(), Failure> {
    let ticket = ticket.map(Ticket::to_text);
    let size = show_bytes(offer.entries().iter().filter_map(Entry::size).sum());
    let files = match only(offer) {
        Some(entry) => entry.path.to_string(),
        None => format!("{} files", offer.len()),
    };
    let access = match ticket {
        Some(_) => "fetch with the ticket",
        None => "fetch with connect tokens",
    };
    let text = format!("serving {files} ({size}) at {local}: {access}");
    report.event("listening", json!({ "addr": local.to_string(), "ticket": ticket }), &text);
    // What serving is for: with it others can fetch.
    match ticket {
        Some(ticket) if !report.is_json() => keys::write_private(None, &ticket),
        _ => Ok(()),
    }
}
