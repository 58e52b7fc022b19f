//! `haulier1.json`: keys, credentials, Noise messages and the seals of whole datagrams.
//!
//! Fields are not read here: a request is bytes with a check, a response or data datagram is a header, a
//! ciphertext and a tag.

use haulier_proto::connection::Suite;
use haulier_proto::credentials::{
    ConnectToken, Identity, Secret, Ticket, TicketAccess, TicketError, TokenClaims, TokenKey,
    TokenRate, TokenServers,
};
use haulier_proto::internals::{
    AeadKey, CookieKey, Initiator, RequestKeys, TokenError, TrafficSecret, open_check, open_tag,
    respond,
};
use serde_json::Value;

use crate::load::{hex, hex_number, int, load, rows, size, text, unhex};

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    unhex(text(value)).try_into().unwrap()
}

fn secret(value: &Value) -> Secret {
    Secret::from_bytes(bytes(value))
}

/// `None` for a null.
fn some<T>(value: &Value, read: impl Fn(&Value) -> T) -> Option<T> {
    (!value.is_null()).then(|| read(value))
}

fn addresses(value: &Value) -> Vec<std::net::SocketAddr> {
    value.as_array().unwrap().iter().map(|address| text(address).parse().unwrap()).collect()
}

fn protocol_id(file: &Value) -> u64 {
    hex_number(&file["protocol_id"])
}

fn assert_secret(secret: &Secret, expected: &Value, name: &str) {
    assert_eq!(hex(secret.as_bytes()), text(expected), "{name}");
}

#[test]
fn keys_of_requests_and_traffic() {
    let file = load("haulier1.json");
    for row in rows(&file, "request_keys", 12) {
        let keys = RequestKeys::new(&secret(&row["secret"]), protocol_id(row));
        assert_secret(keys.check_key(), &row["check_key"], "check key");
        assert_secret(keys.noise_psk(), &row["noise_psk"], "psk");
    }
    for row in rows(&file, "traffic", 4) {
        let mut traffic = TrafficSecret::new(secret(&row["secret"]));
        for link in rows(row, "chain", 4) {
            assert_secret(traffic.secret(), &link["secret"], "secret");
            assert_secret(&traffic.key_secret(), &link["key"], "key");
            traffic = traffic.next();
        }
    }
}

#[test]
fn cookies() {
    let file = load("haulier1.json");
    for row in rows(&file, "cookies", 18) {
        let key = CookieKey::new(secret(&row["key"]));
        let time = u32::try_from(int(&row["time"])).unwrap();
        let (id, address) = (bytes(&row["client_id"]), text(&row["address"]).parse().unwrap());
        let cookie = key.make(time, id, address);
        assert_eq!(hex(&cookie), text(&row["cookie"]));
        assert!(key.verify(time, id, address, &cookie));
    }
}

#[test]
fn tokens() {
    let file = load("haulier1.json");
    // The vectors have the values on the wire: bytes per second, 0 for none.
    let rate = |value: &Value| TokenRate::from_bps(u64::try_from(int(value)).unwrap() * 8);
    for row in rows(&file, "tokens", 4) {
        let name = text(&row["name"]);
        let key = TokenKey {
            id: u32::try_from(int(&row["key_id"])).unwrap(),
            key: secret(&row["token_key"]),
        };
        let unix = |field: &str| row[field].as_u64().unwrap();
        let servers = match (row["once_at_each"].as_bool().unwrap(), &*addresses(&row["servers"])) {
            (false, &[address]) => TokenServers::One(address),
            (false, _) => panic!("{name}: one server"),
            (true, []) => TokenServers::Every,
            (true, addresses) => TokenServers::Each(addresses.to_vec()),
        };
        let claims = TokenClaims::new(unix("issued_unix"), unix("expiry_unix"), servers)
            .with_client_id(bytes(&row["client_id"]))
            .with_client_address(some(&row["client_address"], |a| text(a).parse().unwrap()))
            .with_min_rate(rate(&row["least_bps"]))
            .with_max_rate(rate(&row["most_bps"]))
            .with_user_data(unhex(text(&row["user_data"])));
        let (inside, nonce) = (secret(&row["secret"]), bytes(&row["nonce"]));
        let mut token = key.issue(protocol_id(&file), &claims, inside.clone(), nonce).unwrap();
        if let Some(identity) = some(&row["identity"], bytes) {
            token = token.with_identity(identity);
        }
        assert_eq!(hex(token.sealed()), text(&row["sealed"]), "{name}");
        assert_eq!(hex(&token.to_bytes()), text(&row["client_part"]), "{name}");
        assert_eq!(token.to_text(), text(&row["text"]), "{name}");
        assert_eq!(ConnectToken::parse(text(&row["text"])).as_ref(), Ok(&token), "{name}");
        let opened = key.open(protocol_id(&file), token.sealed(), claims.expiry_unix - 1).unwrap();
        assert_eq!((opened.claims, opened.secret, opened.nonce), (claims, inside, nonce), "{name}");
    }
}

#[test]
fn broken_tokens() {
    let file = load("haulier1.json");
    let key = TokenKey { id: 7, key: secret(&file["tokens"][0]["token_key"]) };
    for row in rows(&file, "broken_tokens", 20) {
        let expected = match text(&row["reason"]) {
            "malformed" => TokenError::Malformed,
            "expired" => TokenError::Expired,
            "unknown_key" => TokenError::UnknownKey,
            "bad_seal" => TokenError::BadSeal,
            other => panic!("unknown reason {other}"),
        };
        let now = row["now_unix"].as_u64().unwrap();
        let opened = key.open(protocol_id(&file), &unhex(text(&row["sealed"])), now);
        assert_eq!(opened, Err(expected), "{}", row["name"]);
    }
}

#[test]
fn tickets() {
    let file = load("haulier1.json");
    for row in rows(&file, "tickets", 6) {
        let name = text(&row["name"]);
        let access = some(&row["secret"], secret).map_or(TicketAccess::Open, TicketAccess::Secret);
        let addresses = addresses(&row["addresses"]);
        let mut ticket = Ticket::new(addresses, hex_number(&row["protocol_id"]), access).unwrap();
        if let Some(digest) = some(&row["digest"], bytes) {
            ticket = ticket.with_digest(digest);
        }
        if let Some(identity) = some(&row["identity"], bytes) {
            ticket = ticket.with_identity(identity).unwrap();
        }
        assert_eq!(ticket.to_text(), text(&row["text"]), "{name}");
        assert_eq!(Ticket::parse(text(&row["text"])), Ok(ticket), "{name}");
    }
    for row in rows(&file, "broken_tickets", 22) {
        let expected = match text(&row["reason"]) {
            "not_a_ticket" => TicketError::NotATicket,
            "newer" => TicketError::Newer,
            "cut_off" => TicketError::CutOff,
            "mistyped" => TicketError::Mistyped,
            other => panic!("unknown reason {other}"),
        };
        assert_eq!(Ticket::parse(text(&row["text"])), Err(expected), "{}", row["name"]);
    }
}

#[test]
fn noise_messages() {
    for row in rows(&load("haulier1.json"), "noise", 5) {
        let name = text(&row["name"]);
        let (psk, prologue) = (secret(&row["psk"]), unhex(text(&row["prologue"])));
        let (hello, welcome) = (unhex(text(&row["hello"])), unhex(text(&row["welcome"])));
        let identity = some(&row["identity_private"], secret).map(Identity::new);
        let public = identity.as_ref().map(Identity::public);
        assert_eq!(public, some(&row["identity_public"], bytes), "{name}");
        let ephemeral = secret(&row["client_ephemeral"]);
        let (mut client, first) =
            Initiator::new(&psk, public.as_ref(), &prologue, ephemeral, &hello).unwrap();
        assert_eq!(hex(&first), text(&row["message_1"]), "{name}");
        let opened = respond(&psk, identity.as_ref(), &prologue, &first).unwrap();
        assert_eq!(opened.hello(), hello, "{name}");
        let (second, split) = opened.answer(&secret(&row["server_ephemeral"]), &welcome).unwrap();
        assert_eq!(hex(&second), text(&row["message_2"]), "{name}");
        assert_secret(split.client_to_server.secret(), &row["client_to_server"], name);
        assert_secret(split.server_to_client.secret(), &row["server_to_client"], name);
        assert_eq!(client.finish(&second), Ok((welcome, split)), "{name}");
    }
}

#[test]
fn checks_of_requests_and_refusals() {
    let file = load("haulier1.json");
    let protocol = protocol_id(&file);
    let datagrams = rows(&file, "requests", 10).iter().chain(rows(&file, "refusals", 48));
    let datagrams = datagrams.chain(rows(&file, "in_lines", 7));
    for row in datagrams.filter(|row| row["check_is"] != "zero") {
        let datagram = unhex(text(&row["hex"]));
        let (before, check) = datagram.split_last_chunk().unwrap();
        let expected = match some(&row["secret"], secret) {
            Some(secret) => RequestKeys::new(&secret, protocol).check(before),
            None => open_check(protocol, before),
        };
        assert_eq!(check, &expected, "{}", row["name"]);
        assert_eq!(hex(check), text(&row["check"]), "{}", row["name"]);
    }
}

/// Each datagram is opened, and sealed again from its plaintext.
#[test]
fn seals_of_responses_and_data() {
    let file = load("haulier1.json");
    for row in rows(&file, "responses", 18).iter().chain(rows(&file, "data", 59)) {
        let (name, datagram) = (text(&row["name"]), unhex(text(&row["hex"])));
        let head = row["welcome_message"].as_str().map_or(13, |welcome| 15 + welcome.len() / 2);
        let (head, body) = datagram.split_at(head);
        let (mut body, plain) = (body.to_vec(), unhex(text(&row["plaintext"])));
        if row["key"].is_null() {
            let sender = &row[if row["from"] == "client" { "client_id" } else { "server_id" }];
            let tag = open_tag(protocol_id(&file), bytes(sender), &[head, &plain].concat());
            assert_eq!(body, [&plain[..], &tag].concat(), "{name}");
            continue;
        }
        let suite = Suite::from_u8(u8::try_from(size(&row["suite"])).unwrap()).unwrap();
        if !suite.is_built_in() {
            continue;
        }
        let key = AeadKey::new(&secret(&row["key"]), suite).unwrap();
        let number = hex_number(&row["packet_number"]);
        let mut sealed = plain.clone();
        let tag = key.seal(number, head, &mut sealed).unwrap();
        assert_eq!(body, [&sealed[..], &tag].concat(), "{name}");
        body.truncate(plain.len());
        key.open(number, head, &mut body, &tag).unwrap();
        assert_eq!(body, plain, "{name}");
    }
}
