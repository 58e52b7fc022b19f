//! Where files go that come, by `fetch` and by `recv`: a file, a directory, or a stream, which gets its bytes
//! when all of them are verified.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use haulier::file::Digest;
use haulier_files::session::{Place, Taking, was_fetched_into};
use haulier_files::writer::{check_folder, make_folder};
use haulier_shell::failure::{Failure, plain};
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use haulier_shell::units::count;
use serde_json::{Value, json};

use crate::files;
use crate::spool::Spool;

/// How often a wait for the reader of a stream checks for Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(50);

/// After this time without a reader, the program reports that it waits for one.
const WONDER: Duration = Duration::from_millis(500);

/// Where `-o` leads.
#[derive(Debug)]
pub(crate) enum Target {
    /// A file that is there, or is to be.
    File(PathBuf),
    Folder(PathBuf),
    /// Standard output, a pipe or a device; and where its bytes are until they are verified.
    Stream(PathBuf, Spool),
}

impl Target {
    /// Looks whether something could be stored there, before anything is asked for.
    pub(crate) fn find(path: &Path) -> Result<Self, Failure> {
        let no_spool = |error: io::Error| {
            let what = format!("{} has no room for a stream", std::env::temp_dir().display());
            Failure::Io(format!("{what}: {}; TMPDIR can name another directory", plain(&error)))
        };
        let is_special = |about: fs::Metadata| !about.is_file() && !about.is_dir();
        if path.as_os_str() == "-" || fs::metadata(path).is_ok_and(is_special) {
            return Ok(Self::Stream(path.to_owned(), Spool::new().map_err(no_spool)?));
        }
        let (is_there, has_slash) = (path.is_dir(), has_slash(path));
        let folder = if is_there { path } else { parent(path) };
        if !folder.is_dir() {
            return Err(no_folder(folder));
        }
        if has_slash && !is_there && plain_path(path).symlink_metadata().is_ok() {
            return Err(Failure::Io(format!("{} is no directory", plain_path(path).display())));
        }
        check_folder(folder, 0).map_err(|error| Failure::Io(error.to_string()))?;
        let is_folder = is_there || has_slash;
        Ok(if is_folder { Self::Folder(path.to_owned()) } else { Self::File(path.to_owned()) })
    }

    /// Makes the directory that it is, if that is not there. The one around it is.
    pub(crate) fn make_folder(&self) -> Result<(), Failure> {
        match self {
            Self::Folder(path) if !path.is_dir() => {
                make_folder(path).map_err(|error| Failure::file(path, &error))
            }
            _ => Ok(()),
        }
    }

    /// The place for the wanted files, whose number is `files`. For several of them a directory is made.
    pub(crate) fn place_for(&self, taking: &Taking, files: usize) -> Result<Place, Failure> {
        let one = match self {
            Self::Stream(..) if files > 1 => "is one stream",
            _ => match taking.make_place() {
                Ok(place) => return Ok(place),
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => "is a file",
                Err(error) => {
                    let what = format!("{self} cannot be made a directory: {}", plain(&error));
                    return Err(Failure::Io(what));
                }
            },
        };
        Err(Failure::Usage(format!(
            "{self} {one}, and there are {files}: say which file you want, or give a directory with -o; \
             --list says which there are"
        )))
    }

    /// Whether all of this may come at once, unasked: no fetch has begun here, and with leave to replace
    /// files the place is empty. Without that leave nothing else counts, for the request tells the server.
    pub(crate) fn may_come_unasked(&self, name: &str, may_replace: bool) -> bool {
        match self {
            Self::Folder(base) if !may_replace => {
                let inner = base.join(name);
                let inner = inner.parent().filter(|_| !name.is_empty());
                ![Some(base.as_path()), inner].into_iter().flatten().any(was_fetched_into)
            }
            _ => self.is_empty(name),
        }
    }

    fn is_empty(&self, name: &str) -> bool {
        let is_free = |path: &Path| {
            let part = format!("{}.haulier-part", path.display());
            path.symlink_metadata().is_err() && Path::new(&part).symlink_metadata().is_err()
        };
        match self {
            Self::File(path) => is_free(path),
            Self::Folder(base) if name.is_empty() => {
                let inside = fs::read_dir(base).map(|mut inside| inside.next().is_none());
                inside.unwrap_or_else(|error| error.kind() == io::ErrorKind::NotFound)
            }
            // The name is not known to be a safe one: then it is no file of an offer either.
            Self::Folder(base) => is_free(&base.join(name)),
            Self::Stream(..) => true,
        }
    }

    pub(crate) fn place(&self) -> Place {
        match self {
            Self::File(path) => Place::File(path.clone()),
            Self::Folder(path) => Place::Folder(path.clone()),
            Self::Stream(_, spool) => Place::File(spool.file()),
        }
    }

    /// Whether there is room for one file only.
    pub(crate) const fn is_one_file(&self) -> bool {
        !matches!(self, Self::Folder(_))
    }

    /// A file that is there is kept, and that is said before anybody sends one.
    pub(crate) fn check_free(&self) -> Result<(), Failure> {
        match self {
            Self::File(path) if path.symlink_metadata().is_ok() => Err(files::exists(path)),
            _ => Ok(()),
        }
    }

    /// Whether standard output carries the file.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stream(path, _) if path.as_os_str() == "-")
    }

    /// What came and where it is, as text and as fields; `here` files were there before.
    pub(crate) fn describe(
        &self,
        taking: &Taking,
        here: u32,
        fields: &mut Value,
    ) -> (String, String) {
        let wanted: Vec<u32> = taking.wanted().collect();
        let one = match wanted[..] {
            [file] => taking.root_of(file).map(|known| (file, known)),
            _ => None,
        };
        match (one, self) {
            (Some((file, (_, root))), _) => {
                let path = match self {
                    Self::Stream(path, _) => path.clone(),
                    _ => taking.path_of(file).unwrap_or_default(),
                };
                let digest = Digest::from_bytes(root);
                fields["file"] = json!(show_path(&path));
                fields["blake3"] = json!(digest.to_hex().as_str());
                (show_path(&path), format!("\nblake3 {}", digest.to_hex()))
            }
            (None, _) => {
                let (Place::File(path) | Place::Folder(path)) = taking.place();
                let is_file = |file: &&u32| {
                    taking.offer().entry(**file).is_some_and(|entry| !entry.is_directory())
                };
                let files = wanted.iter().filter(is_file).count() as u64;
                let folder = show_path(path);
                fields["folder"] = json!(folder);
                fields["files"] = json!(files);
                fields["files_here"] = json!(here);
                let what = match files {
                    0 => "empty directories, and no file,".into(),
                    files => count(files),
                };
                let is_part = (1..files).contains(&here.into());
                let here = if is_part { format!(" ({here} were here)") } else { String::new() };
                (format!("{what} in {folder}{here}"), String::new())
            }
        }
    }

    /// Whether what has come of an unfinished file stays, so that the same command goes on from there.
    pub(crate) const fn keeps_unfinished(&self) -> bool {
        !matches!(self, Self::Stream(..))
    }

    /// It is all here: a stream gets it. Its reader may be late, or slow: a thread of its own waits for it,
    /// so that Ctrl-C ends the wait.
    pub(crate) fn commit(&self, report: &Report) -> Result<(), Failure> {
        let Self::Stream(path, spool) = self else { return Ok(()) };
        let failed = |error: io::Error| Failure::Io(format!("{self}: {}", plain(&error)));
        let (from, to) = (File::open(spool.file()).map_err(failed)?, path.clone());
        let (said, steps) = mpsc::channel();
        thread::spawn(move || {
            // After Ctrl-C the receiver is gone.
            let _gone = said.send(pour(from, &to, || drop(said.send(Ok(Poured::Open)))));
        });
        let (started, mut is_waiting) = (Instant::now(), true);
        loop {
            match steps.recv_timeout(LOOK_UP) {
                Ok(Ok(Poured::Open)) => is_waiting = false,
                Ok(Ok(Poured::All)) => return Ok(()),
                Ok(Err(error)) => return Err(failed(error)),
                Err(RecvTimeoutError::Timeout) if interrupt::requested() => {
                    return Err(Failure::Unread(show_path(path)));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Internal("the thread that writes broke down".into()));
                }
            }
            if is_waiting && started.elapsed() > WONDER {
                is_waiting = false;
                let text = format!("all is here; waiting for a reader of {self}");
                report.status("waiting", json!({ "message": text }), &text);
            }
        }
    }
}

/// How far a stream is.
enum Poured {
    /// It has a reader.
    Open,
    All,
}

/// Copies a file into a stream. Opening a pipe waits for its reader.
fn pour(mut from: File, to: &Path, on_open: impl FnOnce()) -> io::Result<Poured> {
    if to.as_os_str() == "-" {
        on_open();
        let mut stdout = io::stdout().lock();
        io::copy(&mut from, &mut stdout)?;
        stdout.flush()?;
    } else {
        let mut to = File::options().write(true).open(to)?;
        on_open();
        io::copy(&mut from, &mut to)?;
    }
    Ok(Poured::All)
}

/// What is needed is not there: says how to make it, unless something else has the name.
pub(crate) fn no_folder(path: &Path) -> Failure {
    let taken = path.ancestors().find(|part| part.symlink_metadata().is_ok() && !part.is_dir());
    Failure::Io(match taken {
        Some(taken) => format!(
            "{} is no directory, so nothing can be put into it: choose another place",
            taken.display()
        ),
        None => format!(
            "there is no directory {}: `mkdir -p {}` makes it",
            path.display(),
            in_shell(&path.display().to_string())
        ),
    })
}

/// A word as a shell reads it.
fn in_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn has_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Without a slash at its end, with which the system takes no file for it.
fn plain_path(path: &Path) -> PathBuf {
    path.components().collect()
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::File(path) | Self::Folder(path) | Self::Stream(path, _)) = self;
        f.write_str(&show_path(path))
    }
}

/// What a path is called in a sentence.
pub(crate) fn show_path(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard output".into() } else { path.display().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request says whether all may come at once, so other files must not decide it.
    #[test]
    fn the_request_depends_on_no_files_but_fetched_ones() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::Folder(dir.path().to_owned());
        let unasked =
            |may_replace| ["", "x"].map(|name| target.may_come_unasked(name, may_replace));
        assert_eq!([unasked(false), unasked(true)], [[true, true], [true, true]]);
        fs::write(dir.path().join("x"), "mine").unwrap();
        assert_eq!([unasked(false), unasked(true)], [[true, true], [false, false]]);
        fs::write(dir.path().join("y.haulier-part"), "begun").unwrap();
        assert_eq!(unasked(false), [false, false]);
    }
}
