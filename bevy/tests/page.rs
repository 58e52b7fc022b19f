//! The page README.md and the book's chapter: they show the programs that are in
//! `examples/`, and those join.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bevy_haulier::haulier::{Client, Connect, Event};

const PAGE: &str = include_str!("../README.md");
const CHAPTER: &str = include_str!("../../book/src/bevy.md");
const SERVER: &str = include_str!("../examples/server.rs");
const CLIENT: &str = include_str!("../examples/client.rs");

/// A program without its first comment, which says how to run it.
fn code(program: &str) -> &str {
    program.find("\nuse ").map_or(program, |at| &program[at + 1..])
}

/// Where cargo has put an example: beside the directory of this test's program.
fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let directory = this.parent().and_then(Path::parent).unwrap().join("examples");
    directory.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
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
    let shown = PAGE.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
    assert_eq!(shown.collect::<Vec<_>>(), [code(SERVER), code(CLIENT)], "copy them into the page");
}

/// The book cannot compile what needs Bevy, so all of it is from programs that are compiled here.
#[test]
fn the_chapter_shows_parts_of_the_programs() {
    let blocks = CHAPTER.split("```rust,ignore\n").skip(1);
    let shown: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(shown.len(), 3);
    for part in shown {
        assert!(CLIENT.contains(part) || SERVER.contains(part), "in no example: {part}");
    }
}

/// Before it a client with a limit below the world is refused, which does not disturb the next one.
#[test]
fn the_programs_join_and_the_client_says_what_it_saw() {
    let server = Command::new(example("server")).stdout(Stdio::piped()).spawn();
    let mut server = Running(server.expect("cargo test builds the examples"));
    let mut said = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let ticket = said.next().unwrap().unwrap();
    let mut tiny = Connect::try_from(ticket.as_str()).unwrap();
    tiny.connection.max_block_bytes = 1000;
    let tiny = Client::connect(tiny).unwrap();
    let closed = loop {
        if let Event::Closed(reason) = tiny.wait(Duration::from_secs(60)).unwrap().unwrap() {
            break reason.to_string();
        }
    };
    assert!(closed.contains("larger than your max_block_bytes"), "{closed}");

    let client = Command::new(example("client")).arg(ticket).output().unwrap();
    assert!(client.status.success(), "{client:?}");
    let text = String::from_utf8_lossy(&client.stdout);
    for line in ["100 %", "the world has 500000 bytes", "the server says welcome", "you have left"]
    {
        let count = text.lines().filter(|shown| *shown == line).count();
        assert_eq!(count, 1, "{line:?} is there {count} times in {text}");
    }
    assert!(said.next().unwrap().unwrap().ends_with(" says hello"));
}

#[test]
fn a_client_without_a_ticket_says_so_and_fails() {
    let client = Command::new(example("client")).output().unwrap();
    assert!(!client.status.success(), "{client:?}");
    let text = String::from_utf8_lossy(&client.stdout);
    assert!(text.contains("ticket"), "{text}");
}
