//! Talking with the router, by what it speaks: PCP or its older form NAT-PMP, otherwise UPnP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::num::NonZeroU16;
use std::thread;
use std::time::Duration;

use crab_nat::{
    InternetProtocol, MappingFailure, PortMapping, PortMappingOptions, PortMappingType,
    TimeoutConfig, natpmp, pcp,
};
use haulier::ErrorKind;
use igd_next::aio::tokio::{Tokio, search_gateway};
use igd_next::{AddPortError, PortMappingProtocol, SearchOptions, aio};
use tokio::runtime::{Builder, Runtime};

/// How long a mapping is asked for: what a program that is killed leaves behind.
const LIFETIME_S: u32 = 3600;

/// Three requests of PCP within 1.75 s: routers are near.
const PATIENCE: TimeoutConfig = TimeoutConfig {
    initial_timeout: Duration::from_millis(250),
    max_retries: 2,
    max_retry_timeout: None,
};

/// How long a router may take to answer a search by UPnP, for which it has 3 s, with its description.
const SEARCH: Duration = Duration::from_secs(4);

/// Where a search by UPnP goes: to all routers, or to one.
const SSDP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 250);
const SSDP_PORT: u16 = 1900;

/// A router that speaks UPnP.
type Gateway = aio::Gateway<Tokio>;

/// What the router shows in its list.
const DESCRIPTION: &str = "haulier";

/// The router, if it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Router {
    pub(super) gateway: Option<Ipv4Addr>,
    /// The user says that it is this one.
    pub(super) is_named: bool,
}

/// Why there is no mapping.
#[derive(Clone, Debug)]
pub(super) struct Why {
    pub(super) kind: ErrorKind,
    pub(super) text: String,
}

impl Why {
    fn refused(text: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Unreachable, text: text.into() }
    }
}

/// A mapping in words and numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    pub(super) external: SocketAddrV4,
    pub(super) by: &'static str,
    /// Zero: until it is removed.
    pub(super) lifetime: Duration,
}

/// A mapping that the router has.
pub(super) enum Held {
    Pcp {
        runtime: Runtime,
        mapping: Box<PortMapping>,
        external: Ipv4Addr,
    },
    Upnp {
        runtime: Runtime,
        gateway: Box<Gateway>,
        inside: SocketAddrV4,
        external: SocketAddrV4,
        lifetime_s: u32,
    },
}

impl Router {
    /// Asks for a mapping to `inside`, of the same port if it is free. UPnP is searched for meanwhile, and
    /// asked for nothing if it is not needed.
    pub(super) fn ask(self, inside: SocketAddrV4) -> Result<Held, Why> {
        let search = thread::spawn(move || self.search());
        let pcp = match self.gateway {
            Some(gateway) => pcp_mapping(gateway, inside),
            None => Err(None),
        };
        match pcp {
            Ok(held) => Ok(held),
            Err(refused) => match search.join() {
                Ok(Some((runtime, gateway))) => upnp_mapping(runtime, gateway, inside),
                _ => Err(refused.unwrap_or_else(|| self.silent())),
            },
        }
    }

    fn silent(self) -> Why {
        let seconds = SEARCH.as_secs();
        let text = match self.gateway {
            Some(gateway) => format!(
                "{gateway} answers neither PCP, NAT-PMP nor UPnP within {seconds} s: these may be switched \
                 off in its settings; or forward the UDP port there by hand, and say --address"
            ),
            None => format!(
                "no router answers a search by UPnP within {seconds} s, and this host has no default route \
                 that is known: say which one it is with --gateway IP"
            ),
        };
        Why { kind: ErrorKind::NoAnswer, text }
    }

    /// `None` if no router is found: an error of another device that answered is not reported.
    fn search(self) -> Option<(Runtime, Gateway)> {
        let mut options = SearchOptions::default();
        let to = if self.is_named { self.gateway.unwrap_or(SSDP) } else { SSDP };
        options.broadcast_address = SocketAddr::from((to, SSDP_PORT));
        // What a router says of itself has to be at its own address, or at the one that the user named.
        options.allowed_gateway_ips =
            self.gateway.filter(|_| self.is_named).map(IpAddr::V4).into_iter().collect();
        options.timeout = Some(SEARCH);
        options.single_search_timeout = Some(SEARCH);
        let runtime = runtime().ok()?;
        let gateway = runtime.block_on(search_gateway(options)).ok()?;
        Some((runtime, gateway))
    }
}

/// `Err(None)` if the router says nothing.
fn pcp_mapping(gateway: Ipv4Addr, inside: SocketAddrV4) -> Result<Held, Option<Why>> {
    let refused = |text: String| Some(Why::refused(text));
    let runtime = runtime().map_err(|error| refused(error.to_string()))?;
    let port = NonZeroU16::new(inside.port()).ok_or(None)?;
    let options = PortMappingOptions {
        external_port: Some(port),
        lifetime_seconds: Some(LIFETIME_S),
        timeout_config: Some(PATIENCE),
    };
    let own = IpAddr::V4(*inside.ip());
    let asked = PortMapping::new(gateway.into(), own, InternetProtocol::Udp, port, options);
    let mapping = runtime.block_on(asked).map_err(|error| {
        (!is_silence(&error)).then(|| Why::refused(format!("{gateway} refuses: {error}")))
    })?;
    let external = external(&runtime, gateway, &mapping);
    let mapping = Box::new(mapping);
    let held = |external| Held::Pcp { runtime, mapping, external };
    match external {
        Ok(external) => Ok(held(external)),
        Err(why) => {
            held(Ipv4Addr::UNSPECIFIED).remove();
            Err(refused(format!("{gateway} does not say its public address: {why}")))
        }
    }
}

/// Runs in the thread that waits for it, and no longer.
fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn is_silence(error: &MappingFailure) -> bool {
    match error {
        MappingFailure::NatPmp(error) => {
            matches!(error, natpmp::Failure::Timeout | natpmp::Failure::Socket(_))
        }
        MappingFailure::Pcp(error) => {
            matches!(error, pcp::Failure::Timeout | pcp::Failure::Socket(_))
        }
    }
}

fn external(
    runtime: &Runtime,
    gateway: Ipv4Addr,
    mapping: &PortMapping,
) -> Result<Ipv4Addr, String> {
    match mapping.mapping_type() {
        PortMappingType::Pcp { external_ip: IpAddr::V4(ip), .. } => Ok(ip),
        PortMappingType::Pcp { external_ip: IpAddr::V6(ip), .. } => {
            ip.to_ipv4_mapped().ok_or_else(|| format!("{ip} is none of IPv4"))
        }
        PortMappingType::NatPmp => {
            let asked = natpmp::external_address(gateway.into(), Some(PATIENCE));
            runtime.block_on(asked).map_err(|error| error.to_string())
        }
    }
}

fn upnp_mapping(runtime: Runtime, gateway: Gateway, inside: SocketAddrV4) -> Result<Held, Why> {
    let at = gateway.addr.ip();
    let refused = |text: String| Why::refused(format!("{at} refuses: {text}"));
    let external = runtime.block_on(gateway.get_external_ip());
    let external = external.map_err(|error| refused(error.to_string()))?;
    let IpAddr::V4(external) = external else {
        return Err(Why::refused(format!("{at} has an address of IPv6 alone")));
    };
    let (protocol, inner) = (PortMappingProtocol::UDP, SocketAddr::V4(inside));
    let mut lifetime_s = LIFETIME_S;
    let mut port = Ok(inside.port());
    let add =
        |lifetime_s| gateway.add_port(protocol, inside.port(), inner, lifetime_s, DESCRIPTION);
    let mut asked = runtime.block_on(add(lifetime_s));
    if matches!(asked, Err(AddPortError::OnlyPermanentLeasesSupported)) {
        lifetime_s = 0;
        asked = runtime.block_on(add(lifetime_s));
    }
    if let Err(error) = asked {
        port = match error {
            AddPortError::PortInUse => {
                let any = gateway.add_any_port(protocol, inner, lifetime_s, DESCRIPTION);
                runtime.block_on(any).map_err(|error| error.to_string())
            }
            error => Err(error.to_string()),
        };
    }
    let external = SocketAddrV4::new(external, port.map_err(refused)?);
    Ok(Held::Upnp { runtime, gateway: Box::new(gateway), inside, external, lifetime_s })
}

impl Held {
    pub(super) fn summary(&self) -> Summary {
        match self {
            Self::Pcp { mapping, external, .. } => Summary {
                external: SocketAddrV4::new(*external, mapping.external_port().get()),
                by: match mapping.mapping_type() {
                    PortMappingType::NatPmp => "NAT-PMP",
                    PortMappingType::Pcp { .. } => "PCP",
                },
                lifetime: Duration::from_secs(mapping.lifetime().into()),
            },
            Self::Upnp { external, lifetime_s, .. } => Summary {
                external: *external,
                by: "UPnP",
                lifetime: Duration::from_secs((*lifetime_s).into()),
            },
        }
    }

    pub(super) fn renew(&mut self) -> Result<(), String> {
        match self {
            Self::Pcp { runtime, mapping, external } => {
                runtime.block_on(mapping.renew()).map_err(|error| error.to_string())?;
                if let IpAddr::V4(gateway) = IpAddr::from(mapping.gateway()) {
                    *external = self::external(runtime, gateway, mapping)?;
                }
                Ok(())
            }
            Self::Upnp { runtime, gateway, inside, external, lifetime_s } => {
                let (protocol, inner) = (PortMappingProtocol::UDP, SocketAddr::V4(*inside));
                let add =
                    gateway.add_port(protocol, external.port(), inner, *lifetime_s, DESCRIPTION);
                runtime.block_on(add).map_err(|error| error.to_string())
            }
        }
    }

    /// What the router does not hear expires.
    pub(super) fn remove(self) {
        match self {
            Self::Pcp { runtime, mapping, .. } => {
                let _heard = runtime.block_on(mapping.try_drop());
            }
            Self::Upnp { runtime, gateway, external, .. } => {
                let remove = gateway.remove_port(PortMappingProtocol::UDP, external.port());
                let _heard = runtime.block_on(remove);
            }
        }
    }
}
