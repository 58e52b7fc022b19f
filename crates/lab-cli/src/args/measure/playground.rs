//! What `playground` is asked for.

use std::net::SocketAddr;
use std::path::PathBuf;

use haulier_lab::scenes::{Scene, SceneError};
use haulier_shell::resolve::address;

/// The arguments of `playground`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct PlaygroundArgs {
    /// Where a browser finds it. With another address than that of loopback others can see it, too.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) bind: SocketAddr,

    /// Play this scene here instead, and say what became of it: the part of a page's address behind the `?`.
    #[arg(long, value_name = "QUERY", conflicts_with = "bind", value_parser = scene)]
    pub(crate) scene: Option<Scene>,

    /// Write the scene as a moving picture to this file.
    #[arg(long, value_name = "FILE", requires = "scene")]
    pub(crate) svg: Option<PathBuf>,

    /// Write what the client sends and what reaches it to this file, as a capture: for `inspect --pcap` and
    /// Wireshark. The first sender has the client 10.0.0.2, the second 10.0.1.2 and so on.
    #[arg(long, value_name = "FILE", requires = "scene")]
    pub(crate) pcap: Option<PathBuf>,

    /// In that capture haulier/1 is encrypted, as with a ticket, and not in mode `open`.
    #[arg(long, requires = "pcap")]
    pub(crate) sealed: bool,

    /// Write the keys of that capture to this file, for `inspect --pcap FILE --keylog`.
    #[arg(long, value_name = "FILE", requires = "sealed")]
    pub(crate) keylog: Option<PathBuf>,
}

fn scene(text: &str) -> Result<Scene, SceneError> {
    Scene::parse(text)
}

const HELP: &str = "\
Examples:
  haulier-lab playground                        then open http://127.0.0.1:8080/
  haulier-lab playground --bind 127.0.0.1:0     any free port; the address is printed
  haulier-lab playground --scene 'rate=20M&rtt=50&loss=2&seed=7' --svg docs/lab/scene.svg
  haulier-lab playground --scene 'bytes=64k&loss=5' --pcap join.pcap     a join to look at in Wireshark

The page is in programs that were built with it: `cargo xtask playground` in the repository builds one and \
runs it.";
