//! The programs of the chapter on tokens: a matchmaker, a server and a player, each a process.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use haulier::{Client, Connect, Event};

/// A program that says where it listens, and ends with the test, however that ends.
struct Running {
    process: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(name: &str, args: &[&str]) -> Self {
        let mut command = Command::new(example(name));
        let mut process = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, said }
    }

    fn next_line(&mut self) -> String {
        self.said.next().unwrap().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _already_over = self.process.kill();
        let _already_over = self.process.wait();
    }
}

/// Where cargo has put an example: beside the directory of this test's program.
fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let directory = this.parent().and_then(Path::parent).unwrap().join("examples");
    let path = directory.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "no {}: `cargo test -p haulier-book` builds it", path.display());
    path
}

fn join(matchmaker: &str, session: &str) -> Output {
    Command::new(example("match_client")).args([matchmaker, session]).output().unwrap()
}

/// A server, and its matchmaker with the address of that.
fn game(key: &str) -> (Running, Running, String) {
    let key = Path::new(env!("CARGO_TARGET_TMPDIR")).join(key);
    std::fs::write(&key, format!("haulier-token-key1:{}\n", "7b".repeat(32))).unwrap();
    let key = key.to_str().unwrap();
    let mut server = Running::start("match_server", &[key]);
    let address = server.next_line();
    let mut matchmaker = Running::start("matchmaker", &[key, &address]);
    let at = matchmaker.next_line();
    (server, matchmaker, at)
}

/// One with a limit below the world is turned away, and it alone: the next one gets its world.
#[test]
fn who_takes_no_world_ends_no_game() {
    let (_server, _running, matchmaker) = game("small.key");
    let mut stream = TcpStream::connect(&matchmaker).unwrap();
    let request =
        "POST /join HTTP/1.1\r\nhost: here\r\nauthorization: Bearer alices-session\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let mut tiny = Connect::try_from(answer.lines().last().unwrap()).unwrap();
    tiny.connection.max_block_bytes = 1000;
    let tiny = Client::connect(tiny).unwrap();
    let closed = loop {
        if let Event::Closed(reason) = tiny.wait(Duration::from_secs(60)).unwrap().unwrap() {
            break reason.to_string();
        }
    };
    assert!(closed.contains("your limit is below our world"), "{closed}");
    let bob = join(&matchmaker, "bobs-session");
    assert!(bob.status.success(), "{bob:?}");
}

/// A token names its player to the server, and who is not logged in gets none.
#[test]
fn who_is_logged_in_joins() {
    let (mut server, _running, matchmaker) = game("match.key");

    let alice = join(&matchmaker, "alices-session");
    assert!(alice.status.success(), "{alice:?}");
    assert_eq!(alice.stdout, b"the world is here: 500000 bytes\n");
    assert_eq!([server.next_line(), server.next_line()], ["alice is 42", "ready"]);

    let stranger = join(&matchmaker, "no-session");
    assert!(!stranger.status.success());
    let said = String::from_utf8(stranger.stderr).unwrap();
    assert!(said.contains("the matchmaker says: log in first"), "{said}");

    let bob = join(&matchmaker, "bobs-session");
    assert!(bob.status.success(), "{bob:?}");
    assert_eq!(server.next_line(), "bob is 43");
}
