//! What is heard on the network, within bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::{Duration, Instant};

use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use mdns_sd::{ResolvedService, ScopedIp, ServiceDaemon, ServiceEvent};

use super::record::Record;
use super::{SERVICE, name_in};

/// Servers that are listed: a network with more has somebody who makes them up. One that is looked for by its
/// name is found among any number, for no other is kept.
pub(super) const MAX_SERVERS: usize = 256;

/// Others that are named beside one that is not there: what fits in a line.
const MAX_OTHERS: usize = 5;

/// Addresses of one server: a ticket has no more.
const MAX_ADDRESSES: usize = 8;

/// How often a wait checks for Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(50);

/// How long the rest of a server's addresses is waited for after the first.
const GRACE: Duration = Duration::from_millis(200);

/// A server that was announced. Any host on the network may have written these fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// As it was heard: it is shown by `show_words` alone.
    pub(super) name: String,
    /// The likeliest first.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) record: Record,
}

impl Found {
    /// `None` if there is nothing to connect to.
    pub(super) fn of(service: &ResolvedService) -> Option<Self> {
        let name = name_in(&service.fullname)?;
        let ips = service.addresses.iter().map(scoped);
        let addresses = addresses(ips, service.port);
        let record = Record::read(|key| service.get_property_val(key).flatten());
        let is_server = !name.is_empty() && !addresses.is_empty();
        is_server.then(|| Self { name: name.to_owned(), addresses, record })
    }
}

/// An address, and the interface that it means, of those that each interface has.
fn scoped(ip: &ScopedIp) -> (IpAddr, u32) {
    match ip {
        ScopedIp::V6(v6) => (IpAddr::V6(*v6.addr()), v6.scope_id().index),
        other => (other.to_ip_addr(), 0),
    }
}

/// Those that a server can have, each once: first of the LAN, then others, then those that mean nothing
/// without their interface, and last this host itself.
pub(super) fn addresses(ips: impl Iterator<Item = (IpAddr, u32)>, port: u16) -> Vec<SocketAddr> {
    if port == 0 {
        return Vec::new();
    }
    let is_possible =
        |ip: &IpAddr| !ip.is_unspecified() && !ip.is_multicast() && *ip != IpAddr::from([255; 4]);
    let mut all: Vec<(IpAddr, u32)> = ips
        .filter(|(ip, _)| is_possible(ip))
        .map(|(ip, scope)| if is_link_local(ip) { (ip, scope) } else { (ip, 0) })
        .collect();
    all.sort_by_key(|&(ip, scope)| (rank(ip), ip, scope));
    all.dedup();
    all.truncate(MAX_ADDRESSES);
    let with_port = |(ip, scope): (IpAddr, u32)| match ip {
        IpAddr::V6(ip) => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope)),
        ip => SocketAddr::new(ip, port),
    };
    all.into_iter().map(with_port).collect()
}

fn rank(ip: IpAddr) -> u8 {
    match ip {
        _ if ip.is_loopback() => 4,
        _ if is_link_local(ip) => 3,
        IpAddr::V4(v4) if v4.is_private() => 0,
        IpAddr::V6(v6) if is_unique_local(v6) => 1,
        _ => 2,
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

const fn is_unique_local(ip: Ipv6Addr) -> bool {
    ip.segments()[0] & 0xfe00 == 0xfc00
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'a> {
    All,
    /// The server of this name.
    Named(&'a str),
}

impl Wanted<'_> {
    fn includes(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(wanted) => wanted == name,
        }
    }
}

/// What was heard.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// By its name, each that is wanted.
    pub(super) wanted: BTreeMap<String, Found>,
    /// A few of the others, to be named when the wanted one is not there.
    pub(super) others: BTreeSet<String>,
    /// There were more than are kept.
    pub(super) is_overfull: bool,
}

/// Listens for the time `wait`, or until the wanted server is heard.
pub(super) fn look(wait: Duration, wanted: Wanted<'_>) -> Result<Heard, Failure> {
    let failed =
        |error: mdns_sd::Error| Failure::Io(format!("this network cannot be asked: {error}"));
    let daemon = ServiceDaemon::new().map_err(failed)?;
    let events = daemon.browse(SERVICE).map_err(failed)?;
    let mut until = Instant::now() + wait;
    let mut heard = Heard::default();
    loop {
        interrupt::check()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match events.recv_timeout(left.min(LOOK_UP)) {
            Ok(event) => {
                heard.take(wanted, event);
                if matches!(wanted, Wanted::Named(_)) && !heard.wanted.is_empty() {
                    until = until.min(Instant::now() + GRACE);
                }
            }
            Err(_) if events.is_disconnected() => break,
            Err(_) => {}
        }
    }
    // It ends with the program in any case.
    let _ended = daemon.shutdown();
    Ok(heard)
}

impl Heard {
    /// Takes in what was heard.
    pub(super) fn take(&mut self, wanted: Wanted<'_>, event: ServiceEvent) {
        match event {
            ServiceEvent::ServiceResolved(service) => {
                let Some(server) = Found::of(&service) else { return };
                if !wanted.includes(&server.name) {
                    if self.others.len() < MAX_OTHERS {
                        self.others.insert(server.name);
                    }
                } else if self.wanted.len() < MAX_SERVERS || self.wanted.contains_key(&server.name)
                {
                    self.wanted.insert(server.name.clone(), server);
                } else {
                    self.is_overfull = true;
                }
            }
            ServiceEvent::ServiceRemoved(_, fullname) => {
                if let Some(name) = name_in(&fullname) {
                    self.wanted.remove(name);
                    self.others.remove(name);
                }
            }
            _ => {}
        }
    }
}
