//! In place of the screen in a program that was built without it: nobody can ask for one.

use haulier_view::{Names, Subject};

use crate::failure::Failure;
use crate::look::Title;
use crate::report::Report;

/// The screen of a program without one: it has no values.
#[derive(Debug)]
pub(crate) enum Tui {}

impl Tui {
    pub(crate) fn start(
        _: Subject,
        _: Names,
        _: Title<'_>,
        report: &Report,
    ) -> Result<Self, Failure> {
        check(false, report)?;
        Err(Failure::Internal("this program has no screen".into()))
    }

    pub(crate) const fn wait(&self, _: &str) {
        match *self {}
    }
}

pub(crate) fn check(_: bool, _: &Report) -> Result<(), Failure> {
    Err(Failure::Usage("this program was built without --tui: feature `tui` of the package".into()))
}
