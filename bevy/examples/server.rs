//! A server: it prints a ticket, gives its world to whoever joins with it, and answers what they say.
//!
//!     cargo run --example server

use std::time::Duration;

use bevy::app::ScheduleRunnerPlugin;
use bevy::prelude::*;
use bevy_haulier::prelude::*;

#[derive(Resource)]
struct Level(Block);

fn main() -> AppExit {
    let frames = ScheduleRunnerPlugin::run_loop(Duration::from_secs_f64(1.0 / 60.0));
    App::new()
        .add_plugins((MinimalPlugins.set(frames), HaulierServerPlugin))
        .insert_resource(Level(named_block("world", vec![b'w'; 500_000]))) // hashed once
        .add_systems(Startup, listen)
        .add_systems(Update, serve)
        .run()
}

fn listen(mut commands: Commands) -> Result {
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let server = HaulierServer::bind("127.0.0.1:0", ServerConfig::new(1, credentials))?;
    let ticket = server.ticket(&[server.local_addr()])?.ok_or("it has a secret")?;
    println!("{}", ticket.to_text());
    commands.insert_resource(server);
    Ok(())
}

fn serve(
    server: Res<HaulierServer>,
    level: Res<Level>,
    mut from: MessageReader<FromClient>,
    mut to: MessageWriter<ToClients>,
) {
    for FromClient { client, id, event } in from.read() {
        match event {
            // What fails here concerns one player: a `?` would end the game for all.
            ServerEvent::Connecting { .. } => {
                let sent = server.send_block(*id, &level.0);
                if sent.is_err() {
                    server.close(*id, CloseCode::NOT_ACCEPTED, "your limit is below our world");
                }
            }
            ServerEvent::Connection(HaulierEvent::Message { data, .. }) => {
                println!("{client} says {}", String::from_utf8_lossy(data));
                to.write(ToClients::message(*client, "welcome"));
            }
            _ => {}
        }
    }
}
