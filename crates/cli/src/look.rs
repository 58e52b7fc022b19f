//! Looking at what goes on: `--view`, a page for a browser, and `--tui`, a screen in the terminal.

use haulier_view::{Names, Subject, View};
use serde_json::json;

use crate::args::LookArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::tui::{self, Tui};

/// What is above a screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Title<'a> {
    pub(crate) text: &'a str,
    /// The last transfer is shown after its end, too.
    pub(crate) stays: bool,
}

impl<'a> From<&'a str> for Title<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, stays: false }
    }
}

/// What is looked at, while this lives.
#[derive(Debug)]
pub(crate) struct Look {
    names: Names,
    _view: Option<View>,
    tui: Option<Tui>,
}

impl Look {
    /// Starts what the arguments ask for. `title` is above a screen.
    pub(crate) fn start(
        args: &LookArgs,
        subject: impl Into<Subject>,
        title: Title<'_>,
        report: &Report,
    ) -> Result<Self, Failure> {
        let (subject, names) = (subject.into(), Names::new());
        let view = match args.view {
            Some(at) => Some(view(at, &args.view_host, subject.clone(), &names, report)?),
            None => None,
        };
        let tui = match args.tui {
            true => Some(Tui::start(subject, names.clone(), title, report)?),
            false => None,
        };
        Ok(Self { names, _view: view, tui })
    }

    /// The command is over: what there was is shown until the user has seen it.
    pub(crate) fn wait(&self) {
        if let Some(tui) = &self.tui {
            tui.wait("it is over: q leaves");
        }
    }

    /// What clients are called.
    pub(crate) const fn names(&self) -> &Names {
        &self.names
    }
}

/// Whether it can be looked at as the arguments ask: to be asked before anything is begun. `takes_output` if
/// standard output is for the file.
pub(crate) fn check(args: &LookArgs, takes_output: bool, report: &Report) -> Result<(), Failure> {
    if args.tui { tui::check(takes_output, report) } else { Ok(()) }
}

fn view(
    at: std::net::SocketAddr,
    hosts: &[String],
    subject: Subject,
    names: &Names,
    report: &Report,
) -> Result<View, Failure> {
    let view = View::start_known_as(at, hosts, subject, names.clone());
    let view =
        view.map_err(|error| Failure::socket(&format!("cannot show anything at {at}"), &error))?;
    if let Some(warning) = view.warning() {
        report.warning(&warning);
    }
    let url = view.url();
    report.status("view", json!({ "address": url }), &format!("to look at it: {url}"));
    Ok(view)
}
