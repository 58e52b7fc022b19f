//! `haulier token`: connect tokens as a matchmaker makes them, and what one holds.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haulier::{ConnectToken, IssueTokenError, TokenClaims, TokenKey, TokenRate, TokenServers};
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use haulier_shell::units::show_words;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::access::TOKEN_PREFIX;
use crate::args::{IssueArgs, ShowArgs, TokenArgs, TokenCommand};
use crate::keys;
use crate::qr;

pub(crate) fn run(args: &TokenArgs, report: &Report) -> Result<(), Failure> {
    match &args.token {
        TokenCommand::Issue(args) => issue(args, report),
        TokenCommand::Show(args) => show(args, report),
    }
}

fn issue(args: &IssueArgs, report: &Report) -> Result<(), Failure> {
    qr::check(&args.qr, report)?;
    let key = keys::read_token_key(&args.token_key, args.key_files)?;
    let issued_unix = unix_time()?;
    // A token of less than a second would have expired when it is printed.
    let expiry_unix = issued_unix + args.expires.as_secs_f64().ceil().max(1.0) as u64;
    let claims = TokenClaims::new(issued_unix, expiry_unix, servers(args)?)
        .with_client_id(args.client_id.to_le_bytes())
        .with_client_address(args.client_address)
        .with_min_rate(args.min_rate.map(token_rate).transpose()?)
        .with_max_rate(args.rate.map(token_rate).transpose()?)
        .with_user_data(args.user_data.clone().unwrap_or_default().into_bytes());
    let mut token = new_token(&key, args.wire.protocol_id, &claims)?;
    if let Some(path) = &args.identity_file {
        token = token.with_identity(keys::read_public(path, args.key_files)?);
    }
    let text = Zeroizing::new(token.to_text());
    let mut fields = json!({ "ok": true, "expires_unix": claims.expiry_unix });
    qr::show(&args.qr, &text, report)?;
    match &args.output {
        Some(path) => {
            keys::write_private(Some(path), &text)?;
            fields["file"] = json!(path.display().to_string());
            report.done(fields, &format!("a new token: {}", path.display()));
        }
        None if report.is_json() => {
            fields["token"] = json!(*text);
            report.done(fields, "");
        }
        None => keys::write_private(None, &text)?,
    }
    Ok(())
}

/// One server, unless more are asked for: each of them lets the client in once.
fn servers(args: &IssueArgs) -> Result<TokenServers, Failure> {
    let usage = |what: &str| Err(Failure::Usage(what.into()));
    match (&*args.server, args.once_at_each) {
        (&[server], false) => Ok(TokenServers::One(server)),
        ([], false) => usage(
            "which server is the token for? --server ADDR says it, and --once-at-each alone that every \
             server with the key is to let the client in once",
        ),
        (_, false) => usage(
            "servers do not tell each other of tokens: with several --server, each lets the client in once, \
             and --once-at-each says that this is meant",
        ),
        ([], true) => Ok(TokenServers::Every),
        (servers, true) => Ok(TokenServers::Each(servers.to_vec())),
    }
}

/// A token, as a matchmaker makes it.
pub(crate) fn new_token(
    key: &TokenKey,
    protocol_id: u64,
    claims: &TokenClaims,
) -> Result<ConnectToken, Failure> {
    haulier::issue_token(key, protocol_id, claims).map_err(|error| match error {
        IssueTokenError::Claims(error) => Failure::Usage(error.to_string()),
        error => Failure::Io(error.to_string()),
    })
}

fn token_rate(bps: u64) -> Result<TokenRate, Failure> {
    let beyond = || Failure::Usage("a token's rate is above 0 and at most 34G".into());
    TokenRate::from_bps(bps).ok_or_else(beyond)
}

/// The text of the token, wherever it is. It is not quoted: with a letter wrong it is still a secret.
fn token_text(args: &ShowArgs) -> Result<Zeroizing<String>, Failure> {
    let path = Path::new(&args.token);
    if args.token == "-" {
        keys::read_stdin()
    } else if args.token.starts_with(TOKEN_PREFIX) {
        Ok(args.token.clone().into())
    } else if path.exists() {
        keys::read_text(path, args.key_files)
    } else {
        let what =
            "this is no token, which begins with haulier-token, and no file of this name is here";
        Err(Failure::Credentials(what.into()))
    }
}

fn show(args: &ShowArgs, report: &Report) -> Result<(), Failure> {
    let text = token_text(args)?;
    let token = ConnectToken::parse(&text);
    let token = token.map_err(|error| Failure::Credentials(error.to_string()))?;
    let claims = match &args.token_key {
        Some(path) => {
            let key = keys::read_token_key(path, args.key_files)?;
            // An expired one may still be looked at.
            let opened = key.open(token.protocol_id(), token.sealed(), 0);
            let opened = opened.map_err(|error| {
                Failure::Verification(format!("{error}: {} is not its key", path.display()))
            })?;
            Some(opened.claims)
        }
        None => None,
    };
    let left = token.expiry_unix().checked_sub(unix_time()?).filter(|&left| left > 0);
    let mut fields = json!({
        "ok": true,
        "protocol_id": format!("{:#x}", token.protocol_id()),
        "expires_unix": token.expiry_unix(),
        "expired": left.is_none(),
        "servers": texts(token.servers()),
        "identity": token.identity().is_some(),
        "sealed_bytes": token.sealed().len(),
    });
    let expires = match left {
        Some(left) => format!("in {:?}", Duration::from_secs(left)),
        None => "it has expired".into(),
    };
    let mut lines = vec![
        ("protocol id", format!("{:#x}", token.protocol_id())),
        ("expires", format!("{expires} (Unix time {})", token.expiry_unix())),
        ("servers", listed(token.servers())),
        ("identity", if token.identity().is_some() { "insisted on" } else { "any" }.into()),
        ("sealed", format!("{} bytes", token.sealed().len())),
    ];
    if let Some(claims) = &claims {
        fields["claims"] = in_json(claims);
        lines.extend(in_words(claims));
    }
    let words: Vec<String> =
        lines.iter().map(|(name, value)| format!("  {name:<14} {value}")).collect();
    report.answer(fields, &format!("connect token\n{}", words.join("\n")));
    Ok(())
}

fn in_json(claims: &TokenClaims) -> Value {
    json!({
        "client_id": u64::from_le_bytes(claims.client_id),
        "issued_unix": claims.issued_unix,
        "servers": texts(claims.servers.addresses()),
        "once_at_each": !matches!(claims.servers, TokenServers::One(_)),
        "client_address": claims.client_address.map(|address| address.ip().to_string()),
        "least_rate": claims.min_rate.map(TokenRate::bps),
        "rate": claims.max_rate.map(TokenRate::bps),
        "user_data": String::from_utf8_lossy(&claims.user_data),
    })
}

fn in_words(claims: &TokenClaims) -> Vec<(&'static str, String)> {
    let rate = |rate: Option<TokenRate>| {
        rate.map_or("not given".into(), |rate| format!("{} bit/s", rate.bps()))
    };
    let address = claims.client_address.map(|address| address.ip().to_string());
    vec![
        ("client id", u64::from_le_bytes(claims.client_id).to_string()),
        ("issued", format!("Unix time {}", claims.issued_unix)),
        ("good at", good_at(&claims.servers)),
        ("client is at", address.unwrap_or_else(|| "not said".into())),
        ("least rate", rate(claims.min_rate)),
        ("most rate", rate(claims.max_rate)),
        ("user data", show_words(&String::from_utf8_lossy(&claims.user_data))),
    ]
}

fn good_at(servers: &TokenServers) -> String {
    match servers {
        TokenServers::One(server) => server.to_string(),
        TokenServers::Each(servers) => format!("{}, once each", texts(servers).join(", ")),
        TokenServers::Every => "every server with the key, once each".into(),
    }
}

fn texts(addresses: &[SocketAddr]) -> Vec<String> {
    addresses.iter().map(SocketAddr::to_string).collect()
}

fn listed(addresses: &[SocketAddr]) -> String {
    if addresses.is_empty() { "any".into() } else { texts(addresses).join(", ") }
}

/// Seconds since 1970.
fn unix_time() -> Result<u64, Failure> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since =
        since.map_err(|_| Failure::Io("the clock shows a year before 1970: set it".into()))?;
    Ok(since.as_secs())
}
