//! Looking at what goes on: `--view`, a page for a browser.

use haulier_view::{Names, Subject, View};
use serde_json::json;

use crate::args::LookArgs;
use crate::failure::Failure;
use crate::report::Report;

/// What is looked at, while this lives.
#[derive(Debug)]
pub(crate) struct Look {
    names: Names,
    _view: Option<View>,
}

impl Look {
    /// Starts what the arguments ask for.
    pub(crate) fn start(
        args: &LookArgs,
        subject: impl Into<Subject>,
        report: &Report,
    ) -> Result<Self, Failure> {
        let (subject, names) = (subject.into(), Names::new());
        let view = match args.view {
            Some(at) => Some(view(at, subject, &names, report)?),
            None => None,
        };
        Ok(Self { names, _view: view })
    }

    /// What clients are called.
    pub(crate) const fn names(&self) -> &Names {
        &self.names
    }
}

fn view(
    at: std::net::SocketAddr,
    subject: Subject,
    names: &Names,
    report: &Report,
) -> Result<View, Failure> {
    let view = View::start_with_names(at, subject, names.clone());
    let view =
        view.map_err(|error| Failure::socket(&format!("cannot show anything at {at}"), &error))?;
    if let Some(warning) = view.warning() {
        report.warning(&warning);
    }
    let url = view.url();
    report.event("view", json!({ "address": url }), &format!("to look at it: {url}"));
    Ok(view)
}
