//! A fetch in one call, from a server on loopback: where its files go.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

use haulier::{ErrorKind, Server, ServerConfig, ServerCredentials, Ticket};
use haulier_files::Only;
use haulier_files::reason::Reason;
use haulier_files::session::{Fetch, FetchError, Library, Place, Serving};
use haulier_files::tree_cache::TreeCache;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Serves `maps`, a directory with two files, for as long as `what` takes.
fn with_maps(folder: &Path, what: impl FnOnce(&Ticket) -> Outcome<()>) -> Outcome<()> {
    let maps = folder.join("served/maps");
    fs::create_dir_all(maps.join("deep"))?;
    fs::create_dir_all(maps.join("void"))?;
    fs::write(maps.join("a"), "one")?;
    fs::write(maps.join("deep/b"), "two")?;
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let server = Server::bind("127.0.0.1:0", ServerConfig::new(1, credentials))?;
    let ticket = server.ticket(&[server.local_addr()])?.ok_or("it has a secret")?;
    let library = Library::load(&[("maps".into(), maps)], TreeCache::beside())?;
    thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&server, library));
        // A test that fails must not wait for its server.
        let outcome = catch_unwind(AssertUnwindSafe(|| what(&ticket)));
        server.shut_down();
        serving.join().expect("no panic")?;
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
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

/// The first of them was written under the name of the place, and the second found that taken.
#[test]
fn several_files_make_the_place_a_directory() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    with_maps(folder.path(), |ticket| {
        for (name, place) in [("", "all"), ("maps", "named"), ("maps/", "with-a-slash")] {
            let place = folder.path().join(place);
            Fetch::new(name, Place::File(place.clone())).run(ticket, |_| ())?;
            assert_eq!(fs::read(place.join("maps/a"))?, b"one");
            assert_eq!(fs::read(place.join("maps/deep/b"))?, b"two");
        }
        let one = folder.path().join("one");
        Fetch::new("maps/deep/b", Place::File(one.clone())).run(ticket, |_| ())?;
        assert_eq!(fs::read(one)?, b"two");
        // An empty one has no file that could have the name: this waited for ever.
        let void = folder.path().join("void");
        Fetch::new("maps/void", Place::File(void.clone())).run(ticket, |_| ())?;
        assert!(void.join("maps/void").is_dir());
        Ok(())
    })
}

#[test]
fn a_directory_that_is_not_there_is_made_but_not_the_one_that_it_is_in() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    with_maps(folder.path(), |ticket| {
        let new = folder.path().join("new");
        Fetch::new("maps/a", Place::Folder(new.clone())).run(ticket, |_| ())?;
        assert_eq!(fs::read(new.join("maps/a"))?, b"one");
        let deep = folder.path().join("missing/new");
        let error = Fetch::new("", Place::Folder(deep.clone())).run(ticket, |_| ()).unwrap_err();
        assert!(matches!(&error, FetchError::NoFolder { path, .. } if *path == deep));
        assert_eq!(error.kind(), ErrorKind::Io);
        Ok(())
    })
}

#[test]
fn a_file_is_no_place_for_several() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let precious = folder.path().join("precious");
    fs::write(&precious, "mine")?;
    with_maps(folder.path(), |ticket| {
        let fetch = Fetch::new("", Place::File(precious.clone()));
        let error = fetch.run(ticket, |_| ()).unwrap_err();
        assert!(error.to_string().contains("precious is no directory for the files"), "{error}");
        assert_eq!(fs::read(&precious)?, b"mine");
        Ok(())
    })
}

/// A file that is edited in place while it is served ended every fetch until the server was started again.
/// A change of its size or time is seen before it is offered. A change of its bytes alone ends the first
/// fetch that finds it; the next fetch gets the changed file.
#[test]
fn a_file_that_changes_while_it_is_served_is_looked_at_again() -> Outcome<()> {
    use std::os::unix::fs::FileExt as _;
    let folder = tempfile::tempdir()?;
    with_maps(folder.path(), |ticket| {
        let served = folder.path().join("served/maps/a");
        let mut places = (0..).map(|at| folder.path().join(format!("fetched-{at}")));
        for (edit, is_silent) in [("two", true), ("another", false), ("the end", true)] {
            let file = fs::File::options().write(true).open(&served)?;
            let time = file.metadata()?.modified()?;
            file.write_all_at(edit.as_bytes(), 0)?;
            file.set_modified(if is_silent { time } else { time + Duration::from_secs(1) })?;
            let place = places.next().ok_or("a place")?;
            let first = Fetch::new("maps/a", Place::File(place.clone())).run(ticket, |_| ());
            // Another time is seen before the file is offered; the bytes alone when they are read.
            if is_silent {
                let Err(FetchError::File { fault, .. }) = first else {
                    return Err(format!("{edit}: {first:?}").into());
                };
                assert_eq!(fault.reason, Reason::Changed, "{edit}");
                assert!(!place.exists());
                Fetch::new("maps/a", Place::File(place.clone())).run(ticket, |_| ())?;
            } else {
                first?;
            }
            assert_eq!(fs::read_to_string(place)?, edit);
        }
        Ok(())
    })
}

/// A user who may write in a served directory could have any file of the server's user served: a link
/// takes the place of a file, and the next look would go through it.
#[test]
fn a_link_that_replaces_a_file_of_a_served_directory_is_not_followed() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("private"))?;
    fs::write(folder.path().join("private/b"), "secret")?;
    with_maps(folder.path(), |ticket| {
        let maps = folder.path().join("served/maps");
        // In place, so that it is looked at again; and then a link to another file, and one in the way.
        for round in 0..3 {
            fs::write(maps.join("deep/b"), format!("edit {round}"))?;
            if round == 1 {
                fs::remove_file(maps.join("deep/b"))?;
                std::os::unix::fs::symlink(folder.path().join("private/b"), maps.join("deep/b"))?;
            }
            if round == 2 {
                fs::remove_file(maps.join("deep/b"))?;
                fs::remove_dir(maps.join("deep"))?;
                std::os::unix::fs::symlink(folder.path().join("private"), maps.join("deep"))?;
            }
            for attempt in 0..3 {
                let place = folder.path().join(format!("got-{round}-{attempt}"));
                drop(Fetch::new("maps/deep/b", Place::File(place.clone())).run(ticket, |_| ()));
                let got = fs::read_to_string(place).unwrap_or_default();
                assert_ne!(got, "secret", "{round} {attempt}");
            }
            if round == 1 {
                fs::remove_file(maps.join("deep/b"))?;
            }
        }
        Ok(())
    })
}

/// It ended with "closed here: done".
#[test]
fn what_is_wanted_and_not_there_is_said() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    with_maps(folder.path(), |ticket| {
        let fetch = Fetch::new("", Place::Folder(folder.path().join("new")));
        let error = fetch.with_only(Only::new(["*.xyz"])?).run(ticket, |_| ()).unwrap_err();
        assert!(matches!(error, FetchError::NothingWanted), "{error}");
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(!folder.path().join("new").exists());
        Ok(())
    })
}
