//! Where a server waits, which clients are let in, and what it prints about both.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;
use std::time::Duration;

use haulier::{
    ConnectionConfig, Delivery, EarlierTokens, Identity, Listen, Secret, Server, ServerConfig,
    ServerCredentials, ServerLimits, Ticket, TicketError, UnknownUplink, Urgency,
};
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;

use super::{addresses, resets};
use crate::args::{ListenArgs, UplinkArg};
use crate::files::MAX_BLOCK_BYTES;
use crate::keygen::new_secret;
use crate::keys::{self, Kind};
use crate::port_mapping::Mapping;
use crate::trace::Traces;

/// The longest silence after which a client is taken for gone. What a client says counts, if that is less:
/// the default of `fetch` and `send` is a minute.
pub(super) const MAX_SILENCE: Duration = Duration::from_secs(120);

/// The default maximum of worker threads: the files come from one disk, and one thread reads the events.
const MAX_WORKERS: usize = 8;

/// How files go and come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    pub(crate) max_rate_bps: u64,
    pub(crate) uplink: Option<UplinkArg>,
    pub(crate) urgency: Urgency,
    /// Whether clients may send files.
    pub(crate) has_inbox: bool,
}

/// The ticket that lets clients send, beside the one that lets them fetch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendTicket<'a> {
    pub(crate) secret_file: Option<&'a Path>,
    /// The file that it is written to.
    pub(crate) out: Option<&'a Path>,
}

/// A server that listens.
pub(super) struct Started {
    pub(super) server: Server,
    pub(super) local: SocketAddr,
    pub(super) ticket: Option<Ticket>,
    pub(super) send_ticket: Option<Ticket>,
    /// How others come through the router.
    pub(super) mapping: Option<Mapping>,
}

/// Starts a server, with a ticket if its credentials make one.
pub(super) fn start(
    args: &ListenArgs,
    traffic: Traffic,
    sending: Option<SendTicket<'_>>,
    report: &Report,
) -> Result<Started, Failure> {
    let mut credentials = credentials(args)?;
    if let Some(sending) = sending {
        credentials.other_secret = send_secret(sending, &credentials, args)?;
    }
    let listen = bind(args)?;
    if let Some(warning) = listen.buffer_warning() {
        report.warning(&warning);
    }
    let local = listen.local_addr();
    credentials.reset_secret = resets::secret(args, local, report)?;
    let mut reachable = match args.address.is_empty() {
        true => addresses::reachable(local),
        false => args.address.clone(),
    };
    let mapping = Mapping::ask(&args.map, local, report)?;
    // The client that gets the ticket is outside, or the mapping would not be wanted.
    reachable.splice(0..0, mapping.as_ref().map(Mapping::external));
    let mut config = config(args, traffic, credentials, reachable.clone());
    let listen = listen.workers(workers(args));
    let listen = Traces::of_server(&args.trace, listen, &mut config.connection, report)?;
    let server = listen.start(config)?;
    if report.is_verbose() {
        say(args, traffic, &reachable, server.workers(), report);
    }
    if args.workers.is_some_and(|wanted| usize::from(wanted) != server.workers()) {
        report.warning("this system does not divide a port between sockets: there is one worker");
    }
    let usage = |error: TicketError| Failure::Usage(error.to_string());
    let ticket = server.ticket(&reachable).map_err(usage)?;
    let send_ticket = server.other_ticket(&reachable).map_err(usage)?;
    Ok(Started { server, local, ticket, send_ticket, mapping })
}

/// A host on a network without a router often has nothing but link-local addresses of IPv6, so whoever is to
/// be found there waits at those, too.
fn bind(args: &ListenArgs) -> Result<Listen, Failure> {
    if args.bind.is_none() && args.announce.lan.is_some() {
        // It fails where the system has no IPv6.
        if let Ok(listen) = Listen::bind((Ipv6Addr::UNSPECIFIED, 0)) {
            return Ok(listen);
        }
    }
    let at = args.bind.unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    Listen::bind(at).map_err(|error| Failure::socket(&format!("cannot wait at {at}"), &error))
}

/// What was decided.
fn say(
    args: &ListenArgs,
    traffic: Traffic,
    reachable: &[SocketAddr],
    workers: usize,
    report: &Report,
) {
    let at: Vec<String> = reachable.iter().map(SocketAddr::to_string).collect();
    report.detail(&format!("addresses for clients: {}", at.join(", ")));
    let lets_in = match (args.open, args.token_key.len(), &args.secret_file) {
        (true, ..) => "everybody, without encryption".into(),
        (_, 0, None) => "who has the ticket; its secret is of this run alone".into(),
        (_, 0, Some(_)) => "who has the ticket; its secret is from a file".into(),
        (_, keys, None) => format!("who has a connect token of {keys} keys"),
        (_, keys, Some(_)) => format!("who has the ticket, or a connect token of {keys} keys"),
    };
    report.detail(&format!("lets in {lets_in}; protocol id {:#x}", args.wire.protocol_id));
    let uplink = match traffic.uplink {
        Some(UplinkArg::Rate(bps)) => format!("{:.1} Mbit/s in all", bps as f64 / 1e6),
        Some(UplinkArg::Auto) => "found out by a crowd of clients".into(),
        None => "not limited".into(),
    };
    let rate = match traffic.max_rate_bps {
        u64::MAX => "as fast as its link".into(),
        bps => format!("at most {:.1} Mbit/s", bps as f64 / 1e6),
    };
    report.detail(&format!("each client {rate}; uplink {uplink}; threads {workers}"));
}

/// As many as are asked for, or as there are cores.
fn workers(args: &ListenArgs) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
    args.workers.map_or_else(|| cores().min(MAX_WORKERS), usize::from)
}

fn credentials(args: &ListenArgs) -> Result<ServerCredentials, Failure> {
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

/// The secret of the clients that may send: from the file if one is given; else a new one, unless only tokens
/// let clients in.
fn send_secret(
    sending: SendTicket<'_>,
    credentials: &ServerCredentials,
    args: &ListenArgs,
) -> Result<Option<Secret>, Failure> {
    let Some(path) = sending.secret_file else {
        return credentials.secret.as_ref().map(|_| new_secret()).transpose();
    };
    let secret = keys::read(path, Kind::Secret, args.key_files)?;
    if credentials.secret.as_ref() == Some(&secret) {
        let what =
            "--send-secret-file holds the secret of --secret-file: whoever may fetch could send";
        return Err(Failure::Usage(what.into()));
    }
    Ok(Some(secret))
}

fn config(
    args: &ListenArgs,
    traffic: Traffic,
    credentials: ServerCredentials,
    addresses: Vec<SocketAddr>,
) -> ServerConfig {
    let earlier_tokens = match args.earlier_tokens {
        true => EarlierTokens::Accepted,
        false => EarlierTokens::Refused,
    };
    let connection = ConnectionConfig::default()
        .with_max_rate_bps(traffic.max_rate_bps)
        .with_urgency(traffic.urgency)
        .with_idle_timeout(MAX_SILENCE)
        .with_delivery(Delivery::Chunks)
        // Without an inbox clients ask, and send nothing.
        .with_max_block_bytes(if traffic.has_inbox { MAX_BLOCK_BYTES } else { 0 })
        .with_max_unread_packet_bytes(4096);
    let config = ServerConfig::new(args.wire.protocol_id, credentials)
        .with_addresses(addresses)
        .with_earlier_tokens(earlier_tokens)
        .with_limits(limits(args))
        .with_connection(connection);
    match traffic.uplink {
        Some(UplinkArg::Rate(bps)) => config.with_max_uplink_bps(bps),
        Some(UplinkArg::Auto) => config.with_unknown_uplink(UnknownUplink::FoundOut),
        None => config,
    }
}

fn limits(args: &ListenArgs) -> ServerLimits {
    let memory_bytes = usize::try_from(args.max_memory).unwrap_or(usize::MAX);
    let limits = ServerLimits::default().with_memory_bytes(memory_bytes);
    match args.max_clients {
        Some(clients) => limits.with_connections(clients as usize),
        None => limits,
    }
}
