//! `keygen` and `token`: keys that other users cannot read, tokens that work once, and secrets that are never
//! said but as themselves.

use haulier::proto::internals::kdf;
use haulier::{Secret, TokenClaims, TokenKey, TokenServers};
use serde_json::{Value, json};

use crate::support::{Dir, Finished, Serving, data, fetch, haulier, serve};

/// A token key of which a test knows the bytes, as a file.
fn token_key(dir: &Dir) -> (TokenKey, String) {
    let key = Secret::from_bytes([7; 32]);
    let id = kdf("haulier/1 2026 token key id", &[key.as_bytes()]);
    let id = u32::from_le_bytes(id.as_bytes()[..4].try_into().unwrap());
    let file = dir.secret("key", format!("haulier-token-key1:{}\n", "07".repeat(32)).as_bytes());
    (TokenKey { id, key }, file)
}

const PROTOCOL: u64 = 0x6861_756c_6669_6c65;

/// A server that takes tokens of the key in `dir`.
fn serve_tokens(dir: &Dir, key: &str) -> Serving {
    serve(&[&dir.file("world.bin", &data(3_000)), "--token-key", key])
}

fn issue(key: &str, options: &[&str]) -> String {
    let basic = ["token", "issue", "--json", "--token-key", key, "--client-id", "42"];
    let done = haulier(&[&basic[..], &["--expires", "60s"], options].concat()).done();
    done["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_token_is_good_for_one_connection() {
    let dir = Dir::new();
    let (_, key) = token_key(&dir);
    let serving = serve_tokens(&dir, &key);
    assert_eq!(serving.ticket, "", "a server that takes tokens prints no ticket");
    let token = issue(&key, &["--server", &serving.addr]);
    fetch(&[&token, "-o", &dir.path("a")]).done();
    let message = fetch(&[&token, "-o", &dir.path("b")]).error(3);
    assert!(message.contains("used before") && message.contains("another one"), "{message}");
    assert_eq!(dir.read("a"), data(3_000));
    assert_eq!(dir.names(""), ["a", "key", "world.bin"]);
}

#[test]
fn a_token_without_a_server_goes_with_an_address() {
    let dir = Dir::new();
    let (_, key) = token_key(&dir);
    let serving = serve_tokens(&dir, &key);
    let file = dir.secret("token", issue(&key, &["--once-at-each"]).as_bytes());
    let message = fetch(&["--ticket-file", &file, "-o", &dir.path("out")]).error(2);
    assert!(message.contains("does not say where to go"), "{message}");
    fetch(&[&serving.addr, "--token-file", &file, "-o", &dir.path("out")]).done();
}

#[test]
fn tokens_that_are_refused_say_why() {
    let dir = Dir::new();
    let (key, file) = token_key(&dir);
    let serving = serve_tokens(&dir, &file);
    let addr = serving.addr.parse().unwrap();
    let refused = |token: &str| fetch(&[token, "-o", &dir.path("out")]).error(3);

    // By a second that is long past, so that the test need not wait for it.
    let claims = TokenClaims::new(0, 1, TokenServers::One(addr));
    let expired = key.issue(PROTOCOL, &claims, Secret::from_bytes([1; 32]), [2; 24]).unwrap();
    let message = refused(&expired.to_text());
    assert!(message.contains("expired") && message.contains("another one"), "{message}");

    let other = dir.path("other");
    haulier(&["keygen", "--token", "-o", &other]);
    let message = refused(&issue(&other, &["--server", &serving.addr]));
    assert!(message.contains("not made with its --token-key"), "{message}");

    // For another server, carried to this one.
    let elsewhere = dir.secret("elsewhere", issue(&file, &["--server", "192.0.2.1:9"]).as_bytes());
    let args = [&*serving.addr, "--token-file", &elsewhere, "-o", &dir.path("out")];
    assert!(fetch(&args).error(3).contains("not for this server"));
}

/// A restarted server has forgotten which tokens were used, and says that it does not take them.
#[test]
fn a_token_of_before_the_start_is_refused_unless_the_server_says_otherwise() {
    let dir = Dir::new();
    let (key, file) = token_key(&dir);
    let world = dir.file("world.bin", b"x");
    for (options, is_taken) in [(&[][..], false), (&["--earlier-tokens"][..], true)] {
        let serving = serve(&[&[&*world, "--token-key", &file], options].concat());
        let server = TokenServers::One(serving.addr.parse().unwrap());
        let claims = TokenClaims::new(1, u64::MAX, server);
        let token = key.issue(PROTOCOL, &claims, Secret::from_bytes([1; 32]), [2; 24]).unwrap();
        let fetched = fetch(&[&token.to_text(), "-o", &dir.path("out"), "--force"]);
        match is_taken {
            true => drop(fetched.done()),
            false => assert!(fetched.error(3).contains("older than the server's start")),
        }
    }
}

#[test]
fn keys_are_changed_while_the_old_one_lives() {
    let dir = Dir::new();
    let (old, new) = (dir.path("old"), dir.path("new"));
    for key in [&old, &new] {
        haulier(&["keygen", "--token", "-o", key]);
    }
    let file = dir.file("world.bin", b"x");
    let serving = serve(&[&file, "--token-key", &new, "--token-key", &old]);
    for key in [&old, &new] {
        let token = issue(key, &["--server", &serving.addr]);
        fetch(&[&token, "-o", &dir.path("out"), "--force"]).done();
    }
}

#[test]
fn a_token_insists_on_the_identity() {
    let dir = Dir::new();
    let (_, key) = token_key(&dir);
    let identity = dir.path("identity");
    let made = haulier(&["keygen", "--json", "--identity", "-o", &identity]).done();
    let public = dir.file("public", made["public"].as_str().unwrap().as_bytes());
    let file = dir.file("world.bin", b"x");
    let proven = serve(&[&file, "--token-key", &key, "--identity-file", &identity]);
    for known in [&public, &identity] {
        let token = issue(&key, &["--server", &proven.addr, "--identity-file", known]);
        fetch(&[&token, "-o", &dir.path("out"), "--force"]).done();
    }
    let without = serve(&[&file, "--token-key", &key]);
    let token = issue(&key, &["--server", &without.addr, "--identity-file", &public]);
    fetch(&[&token, "-o", &dir.path("no")]).error(3);
}

#[test]
fn what_a_token_holds_is_shown_and_its_secrets_are_not() {
    let dir = Dir::new();
    let (_, key) = token_key(&dir);
    let said = ["--server", "192.0.2.7:4016", "--client-address", "192.0.2.9", "--rate", "8M"];
    let token =
        issue(&key, &[&said[..], &["--least-rate", "80k", "--user-data", "level 3"]].concat());
    let show = |args: &[&str]| haulier(&[&["token", "show", "--json", &token], args].concat());
    let closed = show(&[]).done();
    assert_eq!((&closed["expired"], &closed["identity"]), (&json!(false), &json!(false)));
    assert_eq!((&closed["servers"], &closed["claims"]), (&json!(["192.0.2.7:4016"]), &Value::Null));
    let opened = show(&["--token-key", &key]);
    let claims = json!({
        "client_id": 42,
        "issued_unix": closed["expires_unix"].as_u64().unwrap() - 60,
        "servers": ["192.0.2.7:4016"],
        "once_at_each": false,
        "client_address": "192.0.2.9",
        "least_rate": 80_000,
        "rate": 8_000_000,
        "user_data": "level 3",
    });
    assert_eq!(opened.done()["claims"], claims);
    let secret = haulier::ConnectToken::parse(&token).unwrap().secret().clone();
    let secret = blake3::Hash::from_bytes(*secret.as_bytes()).to_hex();
    let text = haulier(&["token", "show", &token, "--token-key", &key]);
    for run in [opened, text] {
        assert!(!run.text().contains(secret.as_str()), "the secret is shown");
        assert!(run.text().contains("level 3"), "{}", run.what);
    }
    let other = dir.path("other");
    haulier(&["keygen", "--token", "-o", &other]);
    assert!(show(&["--token-key", &other]).error(4).contains("is not its key"));
}

#[test]
fn a_token_that_cannot_be_made_is_not() {
    let dir = Dir::new();
    let (_, key) = token_key(&dir);
    let issue = |options: &[&str]| {
        let basic = ["token", "issue", "--json", "--token-key", &*key, "--client-id", "1"];
        haulier(&[&basic[..], &["--expires", "60"], options].concat()).error(2)
    };
    let server = "--server=192.0.2.7:4016";
    let nine = [&[server; 9][..], &["--once-at-each"]].concat();
    assert!(issue(&nine).contains("at most 8 servers"));
    assert!(issue(&[]).contains("which server"));
    assert!(issue(&[server, server]).contains("--once-at-each"));
    assert!(issue(&[server, "--user-data", &"x".repeat(257)]).contains("at most 256 bytes"));
    assert!(issue(&[server, "--rate", "100G"]).contains("at most 34G"));
}

#[test]
fn keys_are_of_a_kind() {
    let dir = Dir::new();
    for (option, prefix) in [
        ("--secret", "haulier-secret1:"),
        ("--token", "haulier-token-key1:"),
        ("--identity", "haulier-identity1:"),
    ] {
        let run = haulier(&["keygen", option, "-o", "-"]);
        let hex = run.text().strip_prefix(prefix).unwrap_or_else(|| panic!("{}", run.what));
        assert_eq!((hex.len(), hex.ends_with('\n')), (65, true), "{}", run.what);
        assert_ne!(haulier(&["keygen", option, "-o", "-"]).text(), run.text());
        let is_printed = run.stderr.starts_with("haulier-public1:");
        assert_eq!(is_printed, option == "--identity", "{}", run.what);
    }
    let (file, key) = (dir.file("in", b"x"), dir.path("key"));
    haulier(&["keygen", "--token", "-o", &key]);
    let message = haulier(&["serve", "--json", &file, "--secret-file", &key]).error(2);
    assert!(message.contains("another kind") && message.contains("keygen --secret"), "{message}");
    assert!(haulier(&["keygen", "--json", "-o", "-"]).error(2).contains("-o FILE"));
}

#[test]
fn a_key_is_never_overwritten_and_only_the_owner_reads_it() {
    let dir = Dir::new();
    let key = dir.path("key");
    let done = haulier(&["keygen", "--json", "-o", &key]).done();
    assert_eq!(done, json!({ "event": "done", "ok": true, "kind": "secret", "file": key }));
    let before = dir.read("key");
    let message = haulier(&["keygen", "--json", "-o", &key]).error(5);
    assert!(message.contains("exists"), "{message}");
    assert_eq!(dir.read("key"), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// A key is printed when that is asked for, and never else.
#[test]
fn a_key_is_not_printed_unasked() {
    for json in [&[][..], &["--json"]] {
        let run = haulier(&[&["keygen"], json].concat());
        assert_eq!(run.code, Some(2), "{}", run.what);
        assert!(!run.text().contains("haulier-secret1:"), "{}", run.what);
        assert!(format!("{}{}", run.text(), run.stderr).contains("--output"), "{}", run.what);
        // The ways there are belong to what is missing.
        let is_text = json.is_empty();
        assert!(!is_text || run.stderr.contains("[--secret|--token|--identity]"), "{}", run.what);
    }
    let run = haulier(&["keygen", "--json", "-o", "-"]);
    assert!(run.error(2).contains("-o FILE"));
    assert!(!run.text().contains("haulier-secret1:"), "{}", run.what);
}

/// Every option that takes a file with a secret, and every mode that lets others at it.
#[cfg(unix)]
#[test]
fn a_file_with_a_secret_that_others_can_read_is_refused() {
    let dir = Dir::new();
    let key = |option: &str, name: &str| {
        let path = dir.path(name);
        haulier(&["keygen", option, "-o", &path]);
        path
    };
    let (secret, identity) = (key("--secret", "secret"), key("--identity", "identity"));
    let (file, out) = (dir.file("world.bin", b"x"), dir.path("out"));
    let (token_file, token_key) = (dir.path("token"), key("--token", "key"));
    let serving = serve(&[&file, "--token-key", &token_key, "--secret-file", &secret]);
    let server = format!("--server={}", serving.addr);
    let issue = ["token", "issue", "--json", "--client-id", "1", "--expires", "60", &server];
    let key_option = ["--token-key", &*token_key];
    haulier(&[&issue[..], &key_option, &["-o", &token_file]].concat()).done();
    let ticket = dir.secret("ticket", serving.ticket.as_bytes());
    let token = String::from_utf8(dir.read("token")).unwrap();
    let runs: [(&str, Vec<&str>); 9] = [
        ("secret", vec!["serve", &file, "--secret-file", &secret]),
        ("identity", vec!["serve", &file, "--identity-file", &identity]),
        ("key", vec!["serve", &file, "--token-key", &token_key]),
        ("key", [&issue[..], &key_option].concat()),
        ("identity", [&issue[..], &key_option, &["--identity-file", &identity]].concat()),
        ("key", vec!["token", "show", token.trim(), "--token-key", &token_key]),
        ("secret", vec!["fetch", &serving.addr, "--secret-file", &secret, "-o", &out]),
        ("token", vec!["fetch", &serving.addr, "--token-file", &token_file, "-o", &out]),
        ("ticket", vec!["fetch", "--ticket-file", &ticket, "-o", &out]),
    ];
    for (name, args) in &runs {
        for mode in [0o644, 0o640, 0o604, 0o620, 0o602] {
            dir.set_mode(name, mode);
            let message = haulier(&[&["--json"], &args[..]].concat()).error(6);
            let advice = format!("chmod 600 {}", dir.path(name));
            assert!(message.contains(&advice), "{args:?} {message}");
            assert!(message.contains("--allow-exposed-keys"), "{message}");
        }
        dir.set_mode(name, 0o400);
    }
    // With the flag, and with modes that are right.
    dir.set_mode("ticket", 0o644);
    let fetched = ["--ticket-file", &ticket, "-o", &out, "--allow-exposed-keys"];
    fetch(&fetched).done();
    fetch(&[&serving.addr, "--token-file", &token_file, "-o", &dir.path("again")]).done();
    // A public key is no secret.
    let public = haulier(&["keygen", "--json", "--identity", "-o", &dir.path("another")]).done();
    let public = dir.file("public", public["public"].as_str().unwrap().as_bytes());
    dir.set_mode("public", 0o644);
    haulier(&[&issue[..], &key_option, &["--identity-file", &public]].concat()).done();
}

/// What is made to be handed over is what these print, under its own name; the keys behind it are not.
#[test]
fn tickets_and_tokens_are_printed_and_their_keys_are_not() {
    let dir = Dir::new();
    let (secret, key) = (dir.path("secret"), dir.path("key"));
    haulier(&["keygen", "-o", &secret]);
    haulier(&["keygen", "--token", "-o", &key]);
    let file = dir.file("world.bin", b"x");
    let serving = serve(&[&file, "--secret-file", &secret, "--token-key", &key]);
    assert!(serving.ticket.starts_with("haulier1:"), "{}", serving.ticket);
    let issued = haulier(&[
        "token",
        "issue",
        "--once-at-each",
        "--json",
        "--token-key",
        &key,
        "--client-id",
        "1",
        "--expires",
        "60",
    ]);
    let done = issued.done();
    assert_eq!(crate::support::keys(&done), "event expires_unix ok token");
    assert!(done["token"].as_str().unwrap().starts_with("haulier-token1:"), "{done}");
    for name in ["secret", "key"] {
        let text = String::from_utf8(dir.read(name)).unwrap();
        let hex = text.trim().split_once(':').unwrap().1.to_owned();
        let said = format!("{}{}{}", issued.text(), issued.stderr, serving.program.line("{"));
        assert!(!said.contains(&hex), "{name} is in {said}");
    }
}

/// A token is kept in a file, so that is what is looked at; and it is as secret there as anywhere.
#[test]
fn a_token_is_shown_from_its_file() {
    let dir = Dir::new();
    let key = dir.path("key");
    haulier(&["keygen", "--token", "-o", &key]);
    let text = issue(&key, &["--server", "192.0.2.7:4016"]);
    let file = dir.secret("token", format!("{text}\n").as_bytes());
    let done = haulier(&["token", "show", "--json", &file, "--token-key", &key]).done();
    assert_eq!(done["servers"][0], "192.0.2.7:4016");
    assert_eq!(
        done["claims"],
        haulier(&["token", "show", "--json", &text, "--token-key", &key]).done()["claims"]
    );
    let missing = haulier(&["token", "show", "--json", &dir.path("missing")]);
    assert!(
        missing.error_of(2, "credentials").contains("no file of this name"),
        "{}",
        missing.what
    );
    haulier(&["token", "show", "--json", &key]).error_of(2, "credentials");
    #[cfg(unix)]
    {
        dir.set_mode("token", 0o644);
        let message = haulier(&["token", "show", "--json", &file]).error_of(6, "exposed");
        assert!(message.contains("chmod 600"), "{message}");
        haulier(&["token", "show", "--json", &file, "--allow-exposed-keys"]).done();
    }
}

/// All that programs say while keys, tickets and tokens go through them, well and badly: no part of a
/// secret is in it, but in what is printed as the ticket.
#[test]
fn no_secret_is_ever_said() {
    let dir = Dir::new();
    let hex = "5ec7e7".repeat(11)[..64].to_owned();
    let key = |name: &str, prefix: &str| dir.secret(name, format!("{prefix}{hex}\n").as_bytes());
    let (secret, token) = (key("secret", "haulier-secret1:"), key("token", "haulier-token-key1:"));
    let identity = key("identity", "haulier-identity1:");
    let damaged = dir.secret("damaged", format!("haulier-secret1:{hex}0").as_bytes());
    let file = dir.file("world.bin", b"x");
    let options = ["--secret-file", &*secret, "--token-key", &token, "--identity-file", &identity];
    let serving = serve(&[&[&*file], &options[..], &["--once"]].concat());
    let out = dir.path("out");
    let issued = issue(&token, &["--server", &serving.addr]);
    let ticket = dir.secret("ticket", serving.ticket.as_bytes());
    let mut runs: Vec<Finished> = [
        &["fetch", &serving.ticket, "other", "-o", &out][..],
        &["fetch", &format!("{}x", serving.ticket), "-o", &out],
        &["fetch", &serving.ticket, "--open", "-o", &out],
        &["fetch", "-o", &out, "--ticket-file", &secret],
        &["fetch", &serving.addr, "--open", "--secret-file", &secret],
        &["fetch", &serving.addr, "-o", &out, "--secret-file", &damaged],
        &["serve", &file, "--secret-file", &damaged],
        &["serve", &file, "--secret-file", &identity],
        &["serve", &file, "--token-key", &secret],
        &["token", "show", &issued, "--token-key", &token],
        &["token", "show", &format!("{issued}x")],
        &["token", "show", &issued[1..]],
        &["token", "show", &secret],
        &["keygen", "-o", &secret],
        &["fetch", "--ticket-file", &ticket, "-o", &out],
    ]
    .into_iter()
    .flat_map(|args| [haulier(&[&["--json"], args].concat()), haulier(args)])
    .collect();
    runs.push(serving.program.finish());
    let secret_of = |text: &str| text.split_once(':').unwrap().1[30..60].to_owned();
    let (in_ticket, in_token) = (secret_of(&serving.ticket), secret_of(&issued));
    for run in runs {
        let listening = format!("\"ticket\":\"{}\"", serving.ticket);
        let said = format!("{}{}", run.text().replace(&listening, ""), run.stderr);
        for hidden in [&hex[..12], &in_ticket, &in_token] {
            assert!(!said.contains(hidden), "a secret is in\n{said}");
        }
    }
}
