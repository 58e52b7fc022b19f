//! The example that `cargo xtask web` runs: a player that takes no world does not end it for the others.

#![allow(clippy::unwrap_used, reason = "a test program")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use haulier::{Client, Connect, Event};

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

/// Waits for the first event that `is_last`.
fn events(client: &Client, is_last: impl Fn(&Event) -> bool) -> Event {
    loop {
        let event = client.wait(Duration::from_secs(60)).unwrap().expect("an event in a minute");
        if is_last(&event) {
            return event;
        }
    }
}

#[test]
fn a_player_whose_limit_is_too_low_is_turned_away_alone() {
    let mut world = Command::new(example("world"));
    let world = world.args(["no-page", "0"]).stdout(Stdio::piped()).spawn();
    let mut world = Running(world.expect("cargo test builds the examples"));
    let mut said = BufReader::new(world.0.stdout.take().unwrap()).lines();
    let first = said.next().unwrap().unwrap();
    let ticket = first.strip_prefix("ticket for players by UDP: ").unwrap();

    let mut tiny = Connect::try_from(ticket).unwrap();
    tiny.connection.max_block_bytes = 1000;
    let tiny = Client::connect(tiny).unwrap();
    let Event::Closed(reason) = events(&tiny, |event| matches!(event, Event::Closed(_))) else {
        unreachable!("it is what was waited for")
    };
    assert!(reason.to_string().contains("larger than your max_block_bytes"), "{reason}");

    let player = Client::connect(ticket).unwrap();
    let is_world = |event: &Event| matches!(event, Event::Block { .. } | Event::Closed(_));
    let Event::Block { data, .. } = events(&player, is_world) else { panic!("it has no world") };
    assert_eq!(data.len(), 3 << 20);
}
