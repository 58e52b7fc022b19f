//! Where a received file goes: under a temporary name until it is verified, then in one step under its
//! own. Whatever goes wrong before, nothing is left behind.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use haulier::file::{Header, Sink, plain_name};
use tempfile::NamedTempFile;

/// A file being received. Dropping it before [`commit`](Self::commit) removes what was written.
#[derive(Debug)]
pub(crate) struct Output {
    target: PathBuf,
    force: bool,
    open: Option<Open>,
    /// The sender's name for the file, if that is not safe to use as it is.
    unsafe_name: Option<String>,
}

#[derive(Debug)]
enum Open {
    /// Beside the place where it will be, so that the last step is a rename.
    Beside(NamedTempFile, PathBuf),
    /// For a pipe or a device: held back until it is verified, then copied.
    Spool(File),
}

impl Output {
    /// An output to `target`: a file, a directory, or `-`.
    pub(crate) fn new(target: &Path, force: bool) -> Self {
        Self { target: target.to_owned(), force, open: None, unsafe_name: None }
    }

    /// Looks whether a file could be stored there, before one is sent.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.is_stream() || self.target.is_dir() {
            return Ok(());
        }
        self.check_free(&self.target)?;
        let is_folder = self.target.as_os_str().as_encoded_bytes().ends_with(b"/");
        let folder = if is_folder { &self.target } else { parent(&self.target) };
        if folder.is_dir() {
            return Ok(());
        }
        let text = format!("there is no directory {}", folder.display());
        Err(io::Error::new(ErrorKind::NotFound, text))
    }

    /// The place where the file is, or will be.
    pub(crate) fn path(&self) -> &Path {
        match &self.open {
            Some(Open::Beside(_, path)) => path,
            _ => &self.target,
        }
    }

    /// What to say behind the path where the sender's name was not safe to use as it is.
    pub(crate) fn show_rename(&self) -> String {
        let rename = |name| format!(" (its sender calls it {name:?})");
        self.unsafe_name.as_ref().map_or_else(String::new, rename)
    }

    /// The file is what was sent: gives it its name.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some(Open::Beside(file, path)) => {
                // Before the name: a name on a full or broken disk would promise what is not there.
                file.as_file().sync_all()?;
                let named =
                    if self.force { file.persist(&path) } else { file.persist_noclobber(&path) };
                self.target = path;
                named.map(|_| ()).map_err(|error| error.error)
            }
            Some(Open::Spool(mut file)) => {
                file.rewind()?;
                if self.target.as_os_str() == "-" {
                    let mut stdout = io::stdout().lock();
                    io::copy(&mut file, &mut stdout)?;
                    stdout.flush()
                } else {
                    let mut device = File::options().write(true).open(&self.target)?;
                    io::copy(&mut file, &mut device).map(|_| ())
                }
            }
            None => Err(io::Error::other("nothing was received")),
        }
    }

    /// Whether the target is a stream: standard output, a pipe or a device.
    fn is_stream(&self) -> bool {
        self.target.as_os_str() == "-"
            || fs::metadata(&self.target).is_ok_and(|about| !about.is_file() && !about.is_dir())
    }

    fn check_free(&self, path: &Path) -> io::Result<()> {
        if self.force || fs::symlink_metadata(path).is_err() {
            return Ok(());
        }
        let text = format!("{} exists; use --force to overwrite it", path.display());
        Err(io::Error::new(ErrorKind::AlreadyExists, text))
    }

    /// The path for a file with this header.
    fn place(&self, header: &Header) -> io::Result<PathBuf> {
        if !self.target.is_dir() {
            return Ok(self.target.clone());
        }
        let name = plain_name(&header.name).ok_or_else(|| {
            let text =
                format!("the sender's name {:?} is no plain file name; use -o FILE", header.name);
            io::Error::new(ErrorKind::InvalidInput, text)
        })?;
        Ok(self.target.join(&*name))
    }
}

impl Sink for Output {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        if self.is_stream() {
            self.open = Some(Open::Spool(tempfile::tempfile()?));
            return Ok(());
        }
        let path = self.place(header)?;
        self.check_free(&path)?;
        let is_renamed = self.target.is_dir() && path.file_name() != Some(header.name.as_ref());
        self.unsafe_name = is_renamed.then(|| header.name.clone());
        let mut builder = tempfile::Builder::new();
        builder.prefix(".haulier-").suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // As for any new file: readable by all, less what the umask denies.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(parent(&path))?;
        self.open = Some(Open::Beside(file, path));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.open {
            Some(Open::Beside(file, _)) => file.write_all(bytes),
            Some(Open::Spool(file)) => file.write_all(bytes),
            None => Err(io::Error::other("bytes before the header")),
        }
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
