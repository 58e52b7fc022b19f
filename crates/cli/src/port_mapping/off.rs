//! In place of port mapping in a program that was built without it: nobody can ask for it.

use std::net::SocketAddr;

use haulier_shell::failure::Failure;
use haulier_shell::report::Report;

use crate::args::MapArgs;

/// A mapping, of which this build can have no value.
#[derive(Debug)]
pub(crate) enum Mapping {}

impl Mapping {
    #[expect(clippy::unnecessary_wraps, reason = "as in a program that maps ports")]
    pub(crate) const fn ask(
        _: &MapArgs,
        _: SocketAddr,
        _: &Report,
    ) -> Result<Option<Self>, Failure> {
        Ok(None)
    }

    pub(crate) const fn external(&self) -> SocketAddr {
        match *self {}
    }

    pub(crate) const fn say_news(&self, _: &Report) {
        match *self {}
    }
}
