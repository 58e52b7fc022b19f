//! The mods of a game server: the first join fetches all of them, the next one only the new parts of one mod.
//! Run it: `cargo run -p haulier-files --features net --example mods`.

use haulier::{Server, ServerConfig, ServerCredentials};
use haulier_files::session::{Fetch, Library, Place, Serving};
use haulier_files::{Progress, tree_cache::TreeCache, writer::Replace};
use std::{error::Error, fs, path::Path, thread};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
const MODS: [&str; 3] = ["maps.pak", "skins.pak", "sounds.pak"];

fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let (game, mods) = (folder.path(), folder.path().join("server/mods"));
    fs::create_dir_all(&mods)?;
    for name in MODS {
        fs::write(mods.join(name), noise(name, 8_000_000))?;
    }
    let first = join(&mods, game)?;
    fs::write(mods.join(MODS[0]), [noise("news", 99_999), noise(MODS[0], 8_000_000)].concat())?;
    let second = join(&mods, game)?;
    println!("{} bytes came, then {}", first.wire_bytes, second.wire_bytes);
    for name in MODS {
        assert!(fs::read(game.join("mods").join(name))? == fs::read(mods.join(name))?);
    }
    assert!(first.wire_bytes >= 24_000_000 && second.wire_bytes < 1_000_000);
    Ok(())
}

fn join(mods: &Path, game: &Path) -> Outcome<Progress> {
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let server = Server::bind("127.0.0.1:0", ServerConfig::new(1, credentials))?;
    let ticket = server.ticket(&[server.local_addr()])?.ok_or("it has a secret")?;
    let library = Library::load(&[("mods".into(), mods.to_owned())], TreeCache::beside())?;
    thread::scope(|scope| {
        scope.spawn(|| serve(&server, library).expect("a server of mods"));
        let fetch = Fetch::new("mods", Place::Folder(game.to_owned())).with_replace(Replace::File);
        let fetched = fetch.run(&ticket, |_| ());
        server.shut_down();
        Ok(fetched?)
    })
}

fn serve(server: &Server, library: Library) -> Outcome<()> {
    let mut serving = Serving::new(library)?;
    while !server.is_shut_down() {
        if let Some((id, event)) = server.wait(serving.max_wait())? {
            serving.handle_event(server, id, &event);
        }
        serving.turn(server);
    }
    Ok(())
}

fn noise(seed: &str, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    blake3::Hasher::new_derive_key(seed).finalize_xof().fill(&mut noise);
    noise
}
