//! `haulier-lab bench peer`: one end of a join as a program, for an emulator that starts two of them in two
//! networks. It says in the environment where they are: SERVER_ADDR and CLIENT_ADDR.

use std::env::{self, VarError};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use haulier::Listen;
use haulier::udp::Socket;
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use haulier_shell::units::in_millis;
use serde_json::json;

use super::ends::{self, Joined, article, haulier1};
use crate::args::{CallArgs, EndArgs, PeerArgs, PeerCommand, PeerCredentials, Wire};

pub(super) fn run(args: &PeerArgs, report: &Report) -> Result<(), Failure> {
    match &args.peer {
        PeerCommand::Serve { end, calls } => serve(end, *calls, report),
        PeerCommand::Fetch { end, credentials, timeout, calls } => {
            let name = match (end.wire, credentials) {
                (Wire::Article, _) => "haulier-article",
                (Wire::Haulier1, PeerCredentials::Token) => "haulier-token",
                (Wire::Haulier1, PeerCredentials::Ticket) => "haulier-ticket",
            };
            let joined = fetch(end, *credentials, *timeout, *calls);
            conclude(name, end.bytes, joined, report)
        }
    }
}

fn serve(end: &EndArgs, calls: CallArgs, report: &Report) -> Result<(), Failure> {
    check(end, calls)?;
    let fail = |error: std::io::Error| Failure::socket("server", &error);
    let (data, local) = (ends::block(end.bytes)?, server(end)?);
    let listens = |addr: SocketAddr| {
        let fields = json!({ "addr": addr.to_string() });
        report.event("listening", fields, &format!("listening at {addr}"));
    };
    let goes_on = || !interrupt::requested();
    match end.wire {
        Wire::Haulier1 => {
            let listen = Listen::bind(local).map_err(fail)?;
            let local = listen.local_addr();
            let server = haulier1::start(listen, &data, calls)?;
            listens(local);
            haulier1::serve(&server, calls, goes_on)?;
        }
        Wire::Article => {
            let socket = Socket::bind(local).map_err(fail)?;
            listens(socket.local_addr());
            article::serve(socket, &data, goes_on).map_err(fail)?;
        }
    }
    Err(Failure::Interrupted)
}

fn fetch(
    end: &EndArgs,
    mode: PeerCredentials,
    timeout: Duration,
    calls: CallArgs,
) -> Result<Joined, Failure> {
    check(end, calls)?;
    // The program ends with the join: what comes after it is no part of the result.
    let lingers = || false;
    let (data, server) = (ends::block(end.bytes)?, server(end)?);
    let credentials = match (end.wire, mode) {
        (Wire::Article, _) => return article::fetch(server, &data, timeout, lingers),
        (Wire::Haulier1, PeerCredentials::Token) => haulier1::token(place("CLIENT_ADDR")?)?,
        (Wire::Haulier1, PeerCredentials::Ticket) => haulier1::ticket(),
    };
    haulier1::fetch(server, credentials, &data, timeout, calls, lingers)
}

/// The article's ends are runners without a thread, and always wait.
fn check(end: &EndArgs, calls: CallArgs) -> Result<(), Failure> {
    if end.wire == Wire::Article && (calls.inline || calls.frame_hz.is_some()) {
        let what = "--frame-hz and --inline go with --wire haulier1";
        return Err(Failure::Usage(what.into()));
    }
    Ok(())
}

fn server(end: &EndArgs) -> Result<SocketAddr, Failure> {
    Ok(SocketAddr::new(place("SERVER_ADDR")?, end.port))
}

/// The address in a variable of the environment; loopback if the variable is not set.
fn place(variable: &str) -> Result<IpAddr, Failure> {
    match env::var(variable) {
        Err(VarError::NotPresent) => Ok(Ipv4Addr::LOCALHOST.into()),
        found => found.ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
            Failure::Usage(format!("{variable} is no IP address: write one, as 192.0.2.7"))
        }),
    }
}

/// The last line is JSON, asked for or not: the emulator reads it.
fn conclude(
    name: &str,
    bytes: u64,
    joined: Result<Joined, Failure>,
    report: &Report,
) -> Result<(), Failure> {
    let mut fields = json!({ "peer": name, "bytes": bytes, "ok": joined.is_ok() });
    match joined {
        Ok(joined) => {
            fields["connect_ms"] = json!(in_millis(joined.connect));
            fields["total_ms"] = json!(in_millis(joined.total));
            report.done(fields.clone(), &fields.to_string());
            Ok(())
        }
        Err(failure) => {
            fields["error"] = json!(failure.to_string());
            report.event("failed", fields.clone(), &fields.to_string());
            Err(failure)
        }
    }
}
