//! `--map-port`: the router lets others through to the server's port, as long as the server is there.
//!
//! One thread talks with the router: it asks, renews at half of the lifetime, and removes the mapping at the
//! end. It is asked for an hour, so that a program that is killed leaves nothing for long. A mapping whose
//! address is not public is removed again: a ticket with it would lead nowhere.

mod addresses;
mod router;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use haulier::ErrorKind;
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::json;

use self::addresses::{default_gateway, why_not_public};
use self::router::{Held, Router};
use crate::args::{MapArgs, MapWhen};

/// How often a wait checks for Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(50);

/// How long removing the mapping may take.
const GOODBYE: Duration = Duration::from_secs(3);

/// The shortest time between two renewals, whatever a router says.
const MIN_RENEWAL: Duration = Duration::from_secs(1);

/// A renewal that failed is tried again after this part of the time for one, before the mapping ends.
const AGAIN: u32 = 8;

/// A mapping, while this lives.
#[derive(Debug)]
pub(crate) struct Mapping {
    external: SocketAddrV4,
    news: Receiver<String>,
    stop: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl Mapping {
    /// Asks, if the arguments want it, for a server that listens at `local`.
    pub(crate) fn ask(
        args: &MapArgs,
        local: SocketAddr,
        report: &Report,
    ) -> Result<Option<Self>, Failure> {
        let Some(when) = args.map_port else { return Ok(None) };
        let found = match inside(args, local)? {
            Some((router, inside)) => Self::start(router, inside, report),
            None => Err(refusal(ErrorKind::Unreachable, "this host has no network")),
        };
        match found {
            Ok(mapping) => Ok(Some(mapping)),
            Err(failure) if when == MapWhen::Required => Err(failure),
            Err(Failure::Interrupted) => Err(Failure::Interrupted),
            Err(failure) => {
                report.warning(&format!("{failure}; going on without a mapping"));
                Ok(None)
            }
        }
    }

    fn start(router: Router, inside: SocketAddrV4, report: &Report) -> Result<Self, Failure> {
        report.waiting("asking the router for a mapping");
        let (stop, stopped) = mpsc::channel();
        let (tell, news) = mpsc::channel();
        let (asked, answer) = mpsc::sync_channel(1);
        let (end, ended) = mpsc::channel();
        let thread = thread::Builder::new().name("port mapping".into()).spawn(move || {
            let _told_when_dropped = end;
            match router.ask(inside) {
                Ok(held) => {
                    // After Ctrl-C the receiver is gone, and the mapping is removed below.
                    let _gone = asked.send(Ok(held.summary()));
                    hold(held, &stopped, &tell);
                }
                Err(why) => drop(asked.send(Err(why))),
            }
        });
        thread.map_err(|error| Failure::socket("no thread for the router", &error))?;
        let summary = loop {
            interrupt::check()?;
            match answer.recv_timeout(LOOK_UP) {
                Ok(Ok(summary)) => break summary,
                Ok(Err(why)) => return Err(refusal(why.kind, &why.text)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Internal("the thread for the router broke down".into()));
                }
            }
        };
        report.finish_bar();
        let mapping = Self { external: summary.external, news, stop: Some(stop), ended };
        if let Some(why) = why_not_public(*summary.external.ip()) {
            drop(mapping);
            return Err(refusal(ErrorKind::Unreachable, &why));
        }
        let (external, by) = (summary.external, summary.by);
        let seconds = summary.lifetime.as_secs();
        let lasts =
            if seconds == 0 { "until it is removed".into() } else { format!("for {seconds} s") };
        report.event(
            "mapped",
            json!({ "addr": external.to_string(), "by": by, "lifetime_s": seconds }),
            &format!("the router lets others through at {external} (by {by}, {lasts}, renewed)"),
        );
        Ok(mapping)
    }

    /// Where others reach the server.
    pub(crate) const fn external(&self) -> SocketAddr {
        SocketAddr::V4(self.external)
    }

    /// Says what became of the mapping meanwhile.
    pub(crate) fn say_news(&self, report: &Report) {
        for news in self.news.try_iter() {
            report.warning(&news);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The thread ends its side when it is done. A router that says nothing is not waited for.
        let _ended = self.ended.recv_timeout(GOODBYE);
    }
}

fn refusal(kind: ErrorKind, why: &str) -> Failure {
    Failure::peer(kind, format!("no mapping in the router: {why}"))
}

/// The router, and the address that it would let others through to; `None` without a network.
fn inside(args: &MapArgs, local: SocketAddr) -> Result<Option<(Router, SocketAddrV4)>, Failure> {
    let gateway = args.gateway.or_else(default_gateway);
    let own = match local.ip() {
        IpAddr::V4(ip) if !ip.is_unspecified() => Some(ip),
        IpAddr::V6(ip) if !ip.is_unspecified() => {
            let what = "a mapping is for IPv4, and the server waits at an address of IPv6: over IPv6 there \
                        is no address to translate, only a firewall to open";
            return Err(Failure::Usage(what.into()));
        }
        _ => own_address(gateway),
    };
    let router = Router { gateway, is_named: args.gateway.is_some() };
    Ok(own.map(|own| (router, SocketAddrV4::new(own, local.port()))))
}

/// The address that this host has for the router. Connecting a UDP socket sends nothing.
fn own_address(gateway: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
    // An address for documentation: no host has it, and it is routed like any other.
    let to = gateway.unwrap_or(Ipv4Addr::new(192, 0, 2, 1));
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(ip) if !ip.is_unspecified() => Some(ip),
        _ => None,
    }
}

/// Keeps a mapping until it is not wanted any more.
fn hold(mut held: Held, stopped: &Receiver<()>, tell: &Sender<String>) {
    let mut wait = renewal(held.summary().lifetime);
    loop {
        let waited = match wait {
            Some(wait) => stopped.recv_timeout(wait),
            None => stopped.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        if !matches!(waited, Err(RecvTimeoutError::Timeout)) {
            break;
        }
        let before = held.summary();
        let renewed = held.renew();
        wait = renewal(held.summary().lifetime).map(|wait| match renewed {
            Ok(()) => wait,
            Err(_) => (wait / AGAIN).max(MIN_RENEWAL),
        });
        let news = match renewed {
            Ok(()) if held.summary().external == before.external => None,
            Ok(()) => Some(format!(
                "the router lets others through at {} now, and the ticket says {}: start again for one that \
                 is right",
                held.summary().external,
                before.external
            )),
            Err(why) => Some(format!("the router did not renew the mapping: {why}; trying again")),
        };
        if let Some(news) = news {
            // Nobody listens at the end.
            let _gone = tell.send(news);
        }
    }
    held.remove();
}

/// When to renew; never, if it lasts.
fn renewal(lifetime: Duration) -> Option<Duration> {
    (!lifetime.is_zero()).then(|| (lifetime / 2).max(MIN_RENEWAL))
}
