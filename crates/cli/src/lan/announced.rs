//! A server says that it is here, until it is dropped: then it says goodbye.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use blake3::Hasher;
use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};
use serde_json::json;

use super::SERVICE;
use super::record::Record;
use crate::failure::Failure;
use crate::report::Report;
use crate::units::show_words;

/// How long saying goodbye may take. Who does not hear it forgets the server in two minutes.
const GOODBYE: Duration = Duration::from_millis(500);

/// A server that is announced, while this lives.
pub(crate) struct Announced {
    daemon: ServiceDaemon,
    fullname: String,
}

impl Announced {
    /// Begins to say that a server listens at `local`, by this name or that of the host.
    pub(crate) fn start(
        name: Option<&str>,
        local: SocketAddr,
        record: &Record,
        report: &Report,
    ) -> Result<Self, Failure> {
        let name = name.map_or_else(host_name, str::to_owned);
        let service = service(&name, local, record)
            .map_err(|error| Failure::Usage(format!("--lan={name}: {error}")))?;
        let fullname = service.get_fullname().to_owned();
        let failed = |error: mdns_sd::Error| {
            Failure::Io(format!("this cannot be said on the network: {error}"))
        };
        let daemon = ServiceDaemon::new().map_err(failed)?;
        daemon.register(service).map_err(failed)?;
        let text = format!("on this network as {}", show_words(&name));
        report.event("announced", json!({ "name": name }), &text);
        if local.ip().is_loopback() {
            report
                .warning("the server waits at loopback, where no other host on the network comes");
        }
        Ok(Self { daemon, fullname })
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        // It ends anyway, and what was said expires.
        if let Ok(done) = self.daemon.unregister(&self.fullname) {
            let _said = done.recv_timeout(GOODBYE);
        }
        if let Ok(done) = self.daemon.shutdown() {
            let _ended = done.recv_timeout(GOODBYE);
        }
    }
}

/// The records: addresses are those of the host's interfaces, as they come and go, of the families that the
/// server listens to; or the one that it listens at.
fn service(name: &str, local: SocketAddr, record: &Record) -> mdns_sd::Result<ServiceInfo> {
    let pairs = record.pairs();
    let (host, port) = (host_label(name, local), local.port());
    if !local.ip().is_unspecified() {
        return ServiceInfo::new(SERVICE, name, &host, local.ip(), port, &pairs[..]);
    }
    let mut service =
        ServiceInfo::new(SERVICE, name, &host, "", port, &pairs[..])?.enable_addr_auto();
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
