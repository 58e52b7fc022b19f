//! `--lan`: servers say on the local network that they are there (mDNS and DNS-SD, RFC 6762 and 6763), and
//! clients find them by name.
//!
//! What is heard is a claim: everybody on the network can say anything. It says where a server might be, and
//! never who it is. That is the matter of the handshake, with what lets the client in: a ticket, a token, a
//! secret. Text from the network is shown without what a terminal would obey, and whatever is heard is
//! bounded here.

mod announced;
mod found;
mod record;

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::time::Duration;

use haulier::ErrorKind;
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use haulier_shell::units::show_words;
use serde_json::{Value, json};

pub(crate) use self::announced::Announced;
use self::found::{Found, Heard, MAX_SERVERS, Wanted, look};
pub(crate) use self::record::{LetsIn, Record};
use crate::access::{self, Access};
use crate::args::{ConnectArgs, FetchArgs};

/// What haulier's servers are called in DNS-SD.
const SERVICE: &str = "_haulier._udp.local.";

/// Where a firewall must let it through.
const MDNS_PORT: u16 = 5353;

/// `fetch --lan`: lists the servers on the local network.
pub(crate) fn list(args: &FetchArgs, report: &Report) -> Result<(), Failure> {
    if let Some(text) = &args.source {
        return Err(Failure::Usage(format!(
            "to fetch from a server on this network, write --lan=NAME, as in --lan={text}; --lan alone \
             lists them"
        )));
    }
    let connect = &args.connect;
    let has_access = connect.open
        || connect.secret_file.is_some()
        || connect.token_file.is_some()
        || connect.ticket_file.is_some();
    if has_access || args.list {
        let what = "which server? --lan=NAME says it, and --lan alone lists those that are there";
        return Err(Failure::Usage(what.into()));
    }
    let wait = connect.lan.wait;
    say_looking("servers ", wait, report);
    let heard = look(wait, Wanted::All)?;
    report.finish_bar();
    say_list(&heard, wait, report)
}

/// Prints the list. An empty one is a failure with an exit code of its own, for scripts.
fn say_list(heard: &Heard, wait: Duration, report: &Report) -> Result<(), Failure> {
    if heard.wanted.is_empty() {
        return Err(Failure::Negative(nobody(wait)));
    }
    let fields = json!({
        "ok": true,
        "waited_ms": haulier_shell::units::in_millis(wait),
        "servers": heard.wanted.values().map(in_json).collect::<Vec<_>>(),
        "is_overfull": heard.is_overfull,
    });
    report.answer(fields, &table(heard, wait));
    Ok(())
}

/// What lets the client in at the server of this name, and where that is.
pub(crate) fn find(
    name: &str,
    args: &ConnectArgs,
    peer: &'static str,
    report: &Report,
) -> Result<Access, Failure> {
    let has_file = args.open || args.secret_file.is_some() || args.token_file.is_some();
    let ticket = if has_file { None } else { access::elsewhere(args)? };
    if !has_file && ticket.is_none() {
        return Err(Failure::Usage(format!(
            "a name on the network lets nobody in: give what does, with --ticket-file FILE or HAULIER_TICKET \
             for the line that {peer} printed, or one of --open, --secret-file and --token-file"
        )));
    }
    let wait = args.lan.wait;
    say_looking(&format!("{} ", show_words(name)), wait, report);
    let heard = look(wait, Wanted::Named(name))?;
    report.finish_bar();
    let Some(server) = heard.wanted.get(name) else {
        return Err(Failure::peer(ErrorKind::NoAnswer, not_found(name, &heard, wait)));
    };
    let addresses = &server.addresses;
    let at = listed(addresses);
    let fields = in_json(server);
    report.status("found", fields, &format!("{} says that it is at {at}", show_words(name)));
    access::on_lan(ticket.as_deref().map(String::as_str), addresses, args, peer)
}

/// What a server is called there.
fn fullname(name: &str) -> String {
    format!("{name}.{SERVICE}")
}

/// And the other way round.
fn name_in(fullname: &str) -> Option<&str> {
    fullname.strip_suffix(SERVICE)?.strip_suffix('.')
}

fn say_looking(what: &str, wait: Duration, report: &Report) {
    let seconds = wait.as_secs_f64();
    let text = format!("looking for {what}on this network, for up to {seconds} s");
    if io::stderr().is_terminal() {
        report.waiting(&text);
    } else {
        report.status("looking", json!({ "wait_s": seconds }), &text);
    }
}

fn not_found(name: &str, heard: &Heard, wait: Duration) -> String {
    let others: Vec<String> = heard.others.iter().map(|name| show_words(name)).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!(" (there are {})", others.join(", ")),
    };
    format!(
        "no server called {} was heard on this network for {} s{others}: is it started with --lan, and on \
         the same network? {}",
        show_words(name),
        wait.as_secs_f64(),
        why_silent(),
    )
}

fn why_silent() -> String {
    format!(
        "Guest networks often carry nothing between their hosts, and firewalls have to let UDP port \
         {MDNS_PORT} through. An address does as well"
    )
}

fn listed(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ")
}

fn in_json(found: &Found) -> Value {
    let record = &found.record;
    json!({
        "name": found.name,
        "addresses": found.addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>(),
        "lets_in": record.lets_in.map(LetsIn::word),
        "version": record.version,
        "files": record.files,
        "takes_files": record.takes_files,
        "identity": record.identity_hex(),
    })
}

fn nobody(wait: Duration) -> String {
    format!(
        "no server was heard on this network for {} s: is one started with --lan? {}",
        wait.as_secs_f64(),
        why_silent()
    )
}

/// The servers that were found, a line for each.
fn table(heard: &Heard, wait: Duration) -> String {
    let rows: Vec<[String; 5]> = heard.wanted.values().map(row).collect();
    let heads = ["name", "address", "lets in", "files", "identity"];
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    let line = |cells: [&str; 5]| {
        let mut line = String::new();
        for (cell, width) in cells.into_iter().zip(widths) {
            // Nothing can go wrong with a string.
            let _written = write!(line, "{cell:width$}  ");
        }
        line.trim_end().to_owned()
    };
    let mut lines = vec![line(heads)];
    lines.extend(rows.iter().map(|row| line(row.each_ref().map(String::as_str))));
    if heard.is_overfull {
        lines.push(format!(
            "there are more than these {MAX_SERVERS}, so somebody makes them up: --lan=NAME finds yours"
        ));
    }
    let seconds = wait.as_secs_f64();
    lines.push(format!(
        "heard in {seconds} s. To fetch: haulier fetch --lan=NAME --ticket-file FILE, or --open. Anybody on \
         this network can say any of this: a ticket says who the server is, a name does not"
    ));
    lines.join("\n")
}

fn row(found: &Found) -> [String; 5] {
    let record = &found.record;
    let first = found.addresses.first().map_or_else(String::new, SocketAddr::to_string);
    let more = match found.addresses.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let files = record.files.map_or_else(|| "?".into(), |files| files.to_string());
    let takes = if record.takes_files { ", takes files" } else { "" };
    let lets_in = match record.version {
        Some(Record::VERSION) => record.lets_in.map_or("?", LetsIn::in_words),
        _ => "another version",
    };
    [
        show_words(&found.name),
        format!("{first}{more}"),
        lets_in.into(),
        format!("{files}{takes}"),
        record.identity_hex().unwrap_or_else(|| "none".into()),
    ]
}

#[cfg(test)]
mod tests;
