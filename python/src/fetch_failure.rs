//! Why files could not be fetched, for a caller of `fetch`: what to do, with the names of its parameters. The
//! kinds are those of `haulier fetch`.

use std::path::{Path, PathBuf};

use haulier::{CloseCode, CloseReason};
use haulier_files::reason::{
    ANOTHER_FILE, BAD_OFFER, INTERRUPTED, NO_SUCH_FILE, NOT_UNDERSTOOD, Reason,
};
use haulier_files::session::{FetchError, Place};

use crate::failure::{Failure, Outcome};

/// The place for fetched files, which is checked before any request: a directory that is there or is to be
/// made, or the name for the only file.
pub(crate) fn place(into: PathBuf) -> Outcome<Place> {
    let (is_there, bytes) = (into.is_dir(), into.as_os_str().as_encoded_bytes());
    let has_slash = bytes.last().is_some_and(|&it| std::path::is_separator(it.into()));
    let around = into.parent().filter(|it| !it.as_os_str().is_empty());
    let around = around.unwrap_or(Path::new("."));
    if !is_there && !around.is_dir() {
        let what = "make it before, or give one that is there";
        return Err(Failure::io(format!("there is no directory {}: {what}", around.display())));
    }
    Ok(if is_there || has_slash { Place::Folder(into) } else { Place::File(into) })
}

/// The error for a caller that has asked for this name.
pub(crate) fn failure(error: FetchError, name: &str) -> Failure {
    let text = words(&error, name);
    let failure = Failure::from(error);
    match text {
        Some(text) => failure.with_text(text),
        None => failure,
    }
}

/// The hint how to list the server's files.
const LIST: &str = "`haulier fetch TICKET --list` says which there are";

/// Better words than the error has by itself.
fn words(error: &FetchError, name: &str) -> Option<String> {
    Some(match error {
        FetchError::NothingWanted => format!("no file there is called what `only` says; {LIST}"),
        FetchError::NoFolder { path, source } => {
            let what = "is no directory, and there are several files: say which `name` you want, or give a";
            format!("{} {what} directory ({source}); {LIST}", path.display())
        }
        FetchError::File { path, fault } if fault.reason == Reason::Taken && path.is_file() => {
            format!("{} exists; replace=True overwrites it", path.display())
        }
        FetchError::Ended { code, reason } => match *code {
            ANOTHER_FILE => "the server's file is not the one of the ticket: their BLAKE3 differ; \
                             nothing was stored"
                .to_owned(),
            BAD_OFFER => format!("the names of the server's files are not safe: {reason}"),
            _ => format!(
                "the server answered something else ({reason}): is it `haulier.serve`, or `haulier serve`?"
            ),
        },
        FetchError::Closed(CloseReason::There { code, .. }) => match *code {
            NO_SUCH_FILE if name.is_empty() => "there is no file there".to_owned(),
            NO_SUCH_FILE => format!("there is no file {name:?} there; {LIST}"),
            NOT_UNDERSTOOD => {
                "the server does not understand the request: is it `haulier.serve`, or \
                               `haulier serve`?"
                    .to_owned()
            }
            CloseCode::SHUTTING_DOWN | INTERRUPTED => {
                "the server was shut down before the file was here; what has arrived is kept"
                    .to_owned()
            }
            CloseCode::NO_PROGRESS => {
                "the server gave up: nothing got through for too long; what has arrived is kept"
                    .to_owned()
            }
            _ => return None,
        },
        _ => return None,
    })
}
