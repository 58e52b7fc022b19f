//! The arguments about a mapping in the router.

#[cfg(feature = "port-mapping")]
use std::net::Ipv4Addr;

#[cfg(feature = "port-mapping")]
use clap::ValueEnum;

/// Whether a router is asked: of `serve` and `recv`.
#[derive(Debug, clap::Args)]
pub(crate) struct MapArgs {
    /// Ask the router to let others through to this port (PCP, NAT-PMP, UPnP), and put its public address
    /// into the ticket.
    ///
    /// The mapping is renewed, and removed at the end. Without a router that does it, a warning says so; with
    /// --map-port=required it is an error.
    #[cfg(feature = "port-mapping")]
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "try"
    )]
    pub(crate) map_port: Option<MapWhen>,

    /// The router to ask, if it is not the one of the default route.
    #[cfg(feature = "port-mapping")]
    #[arg(long, value_name = "IP", requires = "map_port", hide_short_help = true)]
    pub(crate) gateway: Option<Ipv4Addr>,
}

/// What the program does when it gets no mapping.
#[cfg(feature = "port-mapping")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapWhen {
    /// Go on without.
    Try,
    /// End.
    Required,
}
