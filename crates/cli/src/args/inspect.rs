//! What `inspect` is asked for.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use haulier_shell::units;

/// The kinds of datagrams of both wires, as they are called in JSON.
pub(crate) const KINDS: [&str; 12] = [
    "request", "retry", "refusal", "in_line", "response", "reset", "data", "slice", "ack",
    "fragment", "payload", "acks",
];

/// The wires that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wire {
    /// The connection of docs/STANDARD-1.md.
    Haulier1,
    /// The wire of the articles, docs/STANDARD.md.
    Article,
}

/// The arguments of `inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct InspectArgs {
    /// Datagrams as hex digits; an empty one ("") is a datagram of 0 bytes.
    #[arg(required_unless_present = "pcap", conflicts_with = "pcap", value_name = "HEX")]
    pub(crate) datagrams: Vec<String>,

    /// Read the datagrams of a capture instead, pcap or pcapng; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,

    /// Open what is sealed with the secrets of this key log: what `--keylog` of `serve`, `fetch`, `send` and
    /// `recv` wrote.
    #[arg(long, value_name = "FILE", requires = "pcap")]
    pub(crate) keylog: Option<PathBuf>,

    /// Write what is shown to this file, as a pcap, and what was opened as mode `open` would have sent it, so
    /// that Wireshark shows every frame. It is as secret as the key log.
    #[arg(long, value_name = "FILE", requires = "pcap")]
    pub(crate) write: Option<PathBuf>,

    /// Only datagrams from or to these ports, separated by commas. On them a datagram of haulier/1 is known
    /// by its first byte alone, as in a capture that has no handshake.
    #[arg(long, value_name = "PORTS", requires = "pcap", value_delimiter = ',')]
    pub(crate) port: Vec<u16>,

    /// Only these kinds, separated by commas. The summary counts all.
    #[arg(long, value_name = "KINDS", requires = "pcap", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(KINDS))]
    pub(crate) only: Vec<String>,

    /// Also datagrams of UDP that are of neither wire, and why others are not read.
    #[arg(long, requires = "pcap", conflicts_with = "only")]
    pub(crate) all: bool,

    /// The wire they were sent on: by default `article`, and in a capture both.
    #[arg(long)]
    pub(crate) wire: Option<Wire>,

    /// The protocol id they were sent with, instead of each layer's own, and of that of `serve`.
    #[arg(long, value_name = "ID", value_parser = units::wide_id)]
    pub(crate) protocol_id: Option<u64>,

    /// Read them as packets of this layer only. By default both are tried.
    #[arg(long)]
    pub(crate) layer: Option<Layer>,

    /// Fragments have their count as it is, as the 2016 original writes it, and not count - 1. Nothing
    /// in a fragment tells the two apart.
    #[arg(long)]
    pub(crate) raw_count: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layer {
    /// Slices and acks of chunks; protocol id 0x11223344.
    Chunks,
    /// Fragments, payload packets and ack packets; protocol id 0x55667788.
    Packets,
}

const HELP: &str = "\
A datagram does not say which protocol it is of. Its checksum does: it is computed over a \
protocol id that both ends know and nobody sends, so it fits under the right id only. \
Tried are, in this order:
  chunks   under 0x11223344
  packets  under 0x55667788
The first that accepts the datagram is shown. If none does, you hear why from the first that \
its checksum fits. With --protocol-id both are tried under that one id. The checksum is then \
right for both, so if chunks are not what was sent, say --layer packets.

With --json a datagram is one object, and no other line is printed; a capture ends with a line of its counts.

In a capture a datagram of haulier/1 is known by the request that its connection began with, by \
a right tag of mode `open`, or by an id in the key log. If the capture began later, give --port.

Examples:
  haulier inspect 75be2b4800020a0a0c006861756c696572e2ac0899          a slice of a chunk
  haulier inspect 880c07d90201250308000000046a756d70e2ac0899          a payload packet with acks
  haulier inspect --raw-count f529e6a2010104080058ffa64df49b42e99037  a fragment of the original
  haulier inspect --protocol-id 0xcafe --layer packets HEX            a game with its own id
  haulier inspect --wire haulier1 HEX                                 a connection's: sealed, unless open
  haulier inspect --pcap join.pcapng --only request,response          how a join began
  tcpdump -i lo -w - udp | haulier inspect --pcap -                   as it happens
  haulier inspect --pcap a.pcap --keylog keys --write open.pcap       all of it, and for Wireshark";
