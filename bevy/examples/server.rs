//! A server: it prints a ticket, gives its world to whoever joins with it, and answers what they say.
//!
//!     cargo run --example server

use std::time::Duration;

use bevy::app::ScheduleRunnerPlugin;
use bevy::prelude::*;
use bevy_haulier::prelude::*;

fn main() -> AppExit {
    let frames = ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0));
    App::new()
        .add_plugins((MinimalPlugins.set(frames), HaulierServerPlugin))
        .add_systems(Startup, listen)
        .add_systems(Update, answer)
        .run()
}

fn listen(mut commands: Commands) -> Result {
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let world = named_block("world", vec![b'w'; 500_000]); // hashed once, whoever gets it
    // It goes with the answer to a request, before the next frame hears of a player.
    let config = ServerConfig::new(1, credentials).with_first_block(Some(world));
    let server = HaulierServer::bind("127.0.0.1:0", config)?;
    let ticket = server.ticket(&[server.local_addr()])?.ok_or("it has a secret")?;
    println!("{}", ticket.to_text());
    commands.insert_resource(server);
    Ok(())
}

fn answer(mut from: MessageReader<FromClient>, mut to: MessageWriter<ToClients>) {
    for FromClient { client, event, .. } in from.read() {
        if let ServerEvent::Connection(HaulierEvent::Message { data, .. }) = event {
            println!("{client} says {}", String::from_utf8_lossy(data));
            to.write(ToClients::message(*client, "welcome"));
        }
    }
}
