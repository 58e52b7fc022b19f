//! The client of docs/FIRST-JOIN.md: it joins with the ticket that the server has printed.
//!
//!     cargo run --example first_join_client haulier1:...

use haulier::{Client, Event};
use std::time::Duration;

fn main() {
    if let Err(error) = join() {
        eprintln!("no world: {error}");
        std::process::exit(1);
    }
}

fn join() -> Result<(), Box<dyn std::error::Error>> {
    let ticket = std::env::args().nth(1).ok_or("give me the ticket of the server")?;
    let client = Client::connect(ticket.as_str())?;
    while let Some(event) = client.wait(Duration::from_secs(20))? {
        match event {
            Event::BlockProgress { received, length, .. } => println!("{received} of {length}"),
            Event::Block { data, .. } => {
                println!("the world is here: {} bytes", data.len());
                client.send_message("thank you")?;
                client.finish(Duration::from_secs(5))?;
                return Ok(());
            }
            Event::Closed(reason) => return Err(reason.to_string().into()),
            _ => {}
        }
    }
    Err("nothing for 20 s".into())
}
