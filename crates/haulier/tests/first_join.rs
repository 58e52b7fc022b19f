//! The page FIRST-JOIN: it shows the programs that are in `examples/`, and those join.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use haulier::{Client, Connect, Event};

const PAGE: &str = include_str!("../../../docs/FIRST-JOIN.md");
const SERVER: &str = include_str!("../examples/first_join_server.rs");
const CLIENT: &str = include_str!("../examples/first_join_client.rs");

/// A program without its first comment, which says how to run it.
fn code(program: &str) -> &str {
    program.find("\nuse ").map_or(program, |at| &program[at + 1..])
}

fn shown() -> Vec<&'static str> {
    PAGE.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Where cargo has put an example: beside the directory of this test's program.
fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let directory = this.parent().and_then(Path::parent).unwrap().join("examples");
    let path = directory.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "no {}: `cargo test -p haulier` builds it", path.display());
    path
}

/// Ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _already_over = self.0.kill();
        let _already_over = self.0.wait();
    }
}

#[test]
fn the_page_shows_the_programs_there_are() {
    assert_eq!(shown(), [code(SERVER), code(CLIENT)], "copy the examples into the page");
}

/// The sentence of the error, and not how Rust writes it down.
#[test]
fn a_ticket_that_is_none_is_said_in_words() {
    let client = Command::new(example("first_join_client")).arg("haulier1:AAAA").output().unwrap();
    assert_eq!(client.status.code(), Some(1), "{client:?}");
    let error = haulier::Ticket::parse("haulier1:AAAA").unwrap_err();
    assert_eq!(String::from_utf8(client.stderr).unwrap(), format!("no world: {error}\n"));
}

#[test]
fn the_programs_are_as_short_as_the_page_says() {
    let lines = [SERVER, CLIENT].map(|program| {
        let is_code = |line: &&str| line.trim().len() > 1 && !line.starts_with("use ");
        code(program).lines().filter(is_code).count()
    });
    assert!(lines.iter().sum::<usize>() <= 40, "{lines:?}");
}

/// A client with a limit below the world is turned away, and it alone: the next one gets its world.
#[test]
fn the_programs_join_also_after_one_whose_limit_is_too_low() {
    let mut server = Command::new(example("first_join_server"));
    let mut server = Running(server.stdout(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let ticket = said.next().unwrap().unwrap();
    let mut tiny = Connect::try_from(ticket.as_str()).unwrap();
    tiny.connection.max_block_bytes = 1000;
    let tiny = Client::connect(tiny).unwrap();
    let closed = loop {
        match tiny.wait(Duration::from_secs(20)).unwrap().expect("an answer") {
            Event::Closed(reason) => break reason.to_string(),
            _ => continue,
        }
    };
    assert!(closed.contains("larger than your max_block_bytes"), "{closed}");

    let client = Command::new(example("first_join_client")).arg(ticket).output().unwrap();
    assert!(client.status.success(), "{client:?}");
    let printed = String::from_utf8(client.stdout).unwrap();
    assert_eq!(printed.lines().last(), Some("the world is here: 500000 bytes"));
    assert_eq!(said.next().unwrap().unwrap(), "a client says thank you");
}
