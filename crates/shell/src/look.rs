//! Looking at what goes on: `--view`, a page for a browser, and `--tui`, a screen in the terminal.

use std::net::SocketAddr;

use haulier_view::{Names, Subject, View};
use serde_json::json;

use crate::failure::Failure;
use crate::report::Report;
use crate::tui::{self, Tui};

/// A page or a screen of what is going on.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What can be seen of it")]
pub struct LookArgs {
    /// Show what is going on in a browser, at this address: 127.0.0.1:8080, or port 0 for any.
    ///
    /// Also /snapshot.json, and /metrics for Prometheus. Whoever reaches the address sees who is there.
    #[arg(long, value_name = "ADDR", value_parser = crate::resolve::address)]
    pub view: Option<SocketAddr>,

    /// A name by which browsers may ask for --view: of this host, or of a proxy in front of it.
    ///
    /// Several add up. Others are refused, for anybody can point a name here and have a page read what is
    /// shown.
    #[arg(long, value_name = "NAME", requires = "view", value_parser = host_name, hide_short_help = true)]
    pub view_host: Vec<String>,

    /// Show it in this terminal: transfers, rates, the map of slices. q or Ctrl-C ends the command.
    #[cfg(feature = "tui")]
    #[arg(long, hide_short_help = true)]
    pub tui: bool,
}

impl LookArgs {
    /// Whether a screen is asked for.
    #[must_use]
    pub const fn has_screen(&self) -> bool {
        #[cfg(feature = "tui")]
        return self.tui;
        #[cfg(not(feature = "tui"))]
        false
    }
}

/// What is above a screen.
#[derive(Clone, Copy, Debug)]
pub struct Title<'a> {
    /// One line.
    pub text: &'a str,
    /// The last transfer is shown after its end, too.
    pub stays: bool,
}

impl<'a> From<&'a str> for Title<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, stays: false }
    }
}

/// What is looked at, while this lives.
#[derive(Debug)]
pub struct Look {
    names: Names,
    _view: Option<View>,
    tui: Option<Tui>,
}

impl Look {
    /// Starts what the arguments ask for. `title` is above a screen.
    pub fn start(
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
        let tui = match args.has_screen() {
            true => Some(Tui::start(subject, names.clone(), title, report)?),
            false => None,
        };
        Ok(Self { names, _view: view, tui })
    }

    /// The command is over: what there was is shown until the user has seen it.
    pub fn wait(&self) {
        if let Some(tui) = &self.tui {
            tui.wait("it is over: q leaves");
        }
    }

    /// What clients are called.
    pub const fn names(&self) -> &Names {
        &self.names
    }
}

/// Whether it can be looked at as the arguments ask: to be asked before anything is begun. `takes_output` if
/// standard output is for the file.
pub fn check(args: &LookArgs, takes_output: bool, report: &Report) -> Result<(), Failure> {
    if args.has_screen() { tui::check(takes_output, report) } else { Ok(()) }
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

/// A host's name, without a port: a browser names one only where it is not the usual one.
fn host_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("a host's name has letters, digits, hyphens and dots, and no port".into()),
    }
}
