//! A server says that it is here, until it is dropped: then it says goodbye.

use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use blake3::Hasher;
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use haulier_shell::units::show_words;
use mdns_sd::{DaemonEvent, IfKind, Receiver, ServiceDaemon, ServiceInfo};
use serde_json::json;

use super::record::Record;
use super::{SERVICE, fullname, name_in};

/// The maximum time for a goodbye. A host that does not get it forgets the server in two minutes.
const GOODBYE: Duration = Duration::from_millis(500);

/// After a goodbye, which is sent twice within a tenth of a second, a name is forgotten in a second (RFC
/// 6762, 10.1). An announcement of the name before that is forgotten with it.
const FORGOTTEN: Duration = Duration::from_millis(1500);

/// A server that is announced, while this lives.
pub(crate) struct Announced {
    daemon: ServiceDaemon,
    news: Receiver<DaemonEvent>,
    name: String,
    host: String,
    local: SocketAddr,
    record: Record,
    /// When its present name is announced, and the former name, which another host has.
    renamed: Option<(Instant, String)>,
}

impl Announced {
    /// Begins to say that a server listens at `local`, by this name or that of the host.
    pub(crate) fn start(
        name: Option<&str>,
        local: SocketAddr,
        record: Record,
        report: &Report,
    ) -> Result<Self, Failure> {
        let name = name.map_or_else(host_name, str::to_owned);
        let host = host_label(&name, local);
        let service = service(&name, &host, local, &record)
            .map_err(|error| Failure::Usage(format!("--lan={name}: {error}")))?;
        let failed = |error: mdns_sd::Error| {
            Failure::Io(format!("this cannot be said on the network: {error}"))
        };
        let daemon = ServiceDaemon::new().map_err(failed)?;
        let news = daemon.monitor().map_err(failed)?;
        daemon.register(service).map_err(failed)?;
        let text = format!("on this network as {}", show_words(&name));
        report.event("announced", json!({ "name": name }), &text);
        if local.ip().is_loopback() {
            report
                .warning("the server waits at loopback, where no other host on the network comes");
        }
        Ok(Self { daemon, news, name, host, local, record, renamed: None })
    }

    /// Goes by another name if another server on the network has this one. mDNS takes the new name only where
    /// the other server is heard, and on this host both would answer to the old one: so the new one is
    /// registered everywhere.
    pub(crate) fn say_news(&mut self, report: &Report) {
        while let Ok(event) = self.news.try_recv() {
            let DaemonEvent::NameChange(change) = event else { continue };
            if let Some(name) = name_in(&change.new_name)
                && change.original == fullname(&self.name)
            {
                // The daemon does its orders in sequence, so there is no answer to wait for.
                let _told = self.daemon.unregister(&fullname(&self.name));
                let taken = mem::replace(&mut self.name, name.to_owned());
                self.renamed = Some((Instant::now() + FORGOTTEN, taken));
            }
        }
        if let Some((_, taken)) = self.renamed.take_if(|(at, _)| *at <= Instant::now()) {
            let service = service(&self.name, &self.host, self.local, &self.record);
            if let Err(error) = service.and_then(|service| self.daemon.register(service)) {
                report.warning(&format!("nothing is said on the network any more: {error}"));
                return;
            }
            let (name, taken) = (show_words(&self.name), show_words(&taken));
            let text = format!("on this network as {name}, for another server there is {taken}");
            report.event("announced", json!({ "name": self.name }), &text);
        }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        // It ends anyway, and what was said expires.
        if let Ok(done) = self.daemon.unregister(&fullname(&self.name)) {
            let _said = done.recv_timeout(GOODBYE);
        }
        if let Ok(done) = self.daemon.shutdown() {
            let _ended = done.recv_timeout(GOODBYE);
        }
    }
}

/// The records: addresses are those of the host's interfaces, as they come and go, of the families that the
/// server listens to; or the one that it listens at.
fn service(
    name: &str,
    host: &str,
    local: SocketAddr,
    record: &Record,
) -> mdns_sd::Result<ServiceInfo> {
    let (pairs, port) = (record.pairs(), local.port());
    if !local.ip().is_unspecified() {
        return ServiceInfo::new(SERVICE, name, host, local.ip(), port, &pairs[..]);
    }
    let mut service =
        ServiceInfo::new(SERVICE, name, host, "", port, &pairs[..])?.enable_addr_auto();
    let interfaces = match local.ip() {
        IpAddr::V4(_) => IfKind::IPv4,
        IpAddr::V6(_) => IfKind::All,
    };
    service.set_interfaces(vec![interfaces]);
    Ok(service)
}

/// A host name of the server's own, beside which the system may announce its own: two programs that answer
/// for one name take it from each other.
fn host_label(name: &str, local: SocketAddr) -> String {
    let mut hasher = Hasher::new();
    hasher.update(name.as_bytes()).update(local.to_string().as_bytes());
    hasher.update(host_name().as_bytes()).update(&std::process::id().to_le_bytes());
    format!("haulier-{}.local.", &hasher.finalize().to_hex()[..12])
}

/// The name of the host, without its domain.
fn host_name() -> String {
    let name = gethostname::gethostname();
    let name: String = name.to_string_lossy().split('.').next().unwrap_or_default().into();
    let name: String = name.chars().filter(|c| !c.is_control() && *c != '\\').take(15).collect();
    if name.is_empty() { "haulier".into() } else { name }
}
