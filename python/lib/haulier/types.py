"""Settings, counters and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional


class CloseCode:
    """Why a connection was closed, as a number: below 256 the connection's own, from there on a program's."""

    DONE = 0
    """No error."""
    PROTOCOL = 1
    """The peer violated a rule of the wire."""
    NO_PROGRESS = 2
    """A block made no progress, or too little."""
    BLOCK_TOO_LARGE = 3
    """A block is larger than the receiver accepts."""
    BLOCK_DAMAGED = 4
    """A block's bytes are not those that were announced."""
    SHUTTING_DOWN = 5
    """The program is shutting down."""
    NOT_ACCEPTED = 6
    """The application rejected the request."""
    RESOURCES = 7
    """The peer's share of memory, or its place among the handshakes, is used up."""
    TIMED_OUT = 8
    """Nothing was received from the peer for its time limit."""
    AEAD_LIMIT = 9
    """So many datagrams were forged that a further one might pass."""
    CREDIT = 10
    """The peer sent more of blocks than it had credit for."""
    FIRST_OF_APPLICATION = 256
    """The first of a program's own codes."""


@dataclass(frozen=True)
class ConnectionConfig:
    """The settings of connections. What is None has haulier's default."""

    max_rate_bps: Optional[int] = None
    """The most that this end's blocks take, in bit/s with headers, 4000 or more. No limit."""
    urgency: Optional[str] = None
    """How much of the link a block may take: "load-screen", which is the default, or "during-play"."""
    min_rate_bps: Optional[int] = None
    """The least that blocks take, whatever the delay and loss. 200 kbit/s."""
    idle_timeout_s: Optional[float] = None
    """Silence after which the connection ends, 1 s or more; both ends use the smaller one. 15 s."""
    handshake_timeout_s: Optional[float] = None
    """How long a handshake may take. 10 s."""
    max_block_bytes: Optional[int] = None
    """The largest block that is accepted. 64 MiB."""
    delivery: Optional[str] = None
    """How received blocks come: as "blocks", the default, as "chunks", or as chunks "in-order"."""
    max_unread_block_bytes: Optional[int] = None
    """Bytes of received blocks that may wait to be read. 64 MiB."""
    max_unread_packet_bytes: Optional[int] = None
    """Bytes of received packets that may wait to be read; the oldest are dropped beyond it. 1 MiB."""
    max_queued_blocks: Optional[int] = None
    """Blocks that may wait to be sent. 64."""
    max_queued_packet_bytes: Optional[int] = None
    """Bytes of packets that may wait to be sent. 1 MiB."""
    max_queued_message_bytes: Optional[int] = None
    """Bytes of messages that may wait to be sent or acknowledged on each channel. 256 KiB."""
    max_channels: Optional[int] = None
    """Channels of messages that are accepted, 1 to 256. 16."""
    max_channel_bytes: Optional[int] = None
    """Bytes of messages that a channel may hold unread, 131,072 or more, which is the default."""
    no_progress_timeout_s: Optional[float] = None
    """A block that makes no progress for this long closes the connection. 15 s."""
    min_block_rate_bps: Optional[int] = None
    """A block that is slower than this for a minute closes the connection; 0 lets it. 16 kbit/s."""
    max_datagram_bytes: Optional[int] = None
    """The largest datagram, 1200 to 65,507 bytes; 1201 keeps to 1200. What the path carries, up to 9000."""
    ecn: Optional[bool] = None
    """Whether datagrams are marked as ECN-capable. Yes."""


@dataclass(frozen=True)
class BlockProgress:
    """How far a block is."""

    tag: int
    """The tag that its sender gave it."""
    done_bytes: int
    """What is received, or acknowledged."""
    length_bytes: int
    """Its size."""


@dataclass(frozen=True)
class WireBytes:
    """Bytes of all datagrams of a client, the handshake included, without UDP and IP."""

    received: int
    """Received, dropped ones included."""
    sent: int
    """Sent."""


@dataclass(frozen=True)
class Attempt:
    """An address of a server that was tried, and what came of it."""

    server: str
    """The address."""
    kind: Optional[str]
    """The kind of the error; None while it is tried, and if it succeeded."""
    error: Optional[str]
    """The error, as a sentence."""


@dataclass(frozen=True)
class ConnectionStats:
    """Counters of one end of a connection, and what it measured of the path."""

    datagrams_sent: int
    """Datagrams sent."""
    bytes_sent: int
    """Bytes in them, without UDP and IP."""
    datagrams_received: int
    """Datagrams received and verified."""
    bytes_received: int
    """Bytes in them, without UDP and IP."""
    ack_bytes_sent: int
    """Bytes of the sent datagrams that contained only acks."""
    datagrams_refused: int
    """Datagrams received that could not be verified, were duplicates, or violated a rule."""
    datagrams_lost: int
    """Datagrams sent and declared lost."""
    slices_sent: int
    """Slices sent: source slices, repair slices, and retransmissions."""
    repair_slices_sent: int
    """Repair slices among them."""
    slices_resent: int
    """Slices sent for the second or a later time."""
    packets_dropped: int
    """Packets received and dropped because nobody read them."""
    datagrams_marked: int
    """Datagrams sent that were marked as ECN-capable."""
    congestion_marks: int
    """Acks that reported congestion by ECN."""
    black_holes: int
    """How often the path stopped carrying datagrams of more than 1200 bytes."""
    key_updates: int
    """Updates of the sending key."""
    bandwidth_bps: Optional[int]
    """The bandwidth of the path to the peer, headers included; None while it is not known."""
    loss: float
    """The fraction of datagrams lost on that path, 0 to 0.6; 0.02 before anything was measured."""
    rtt_s: Optional[float]
    """The smoothed round trip; None before it was measured, as the two below."""
    min_rtt_s: Optional[float]
    """The shortest round trip."""
    rtt_variation_s: Optional[float]
    """The variation of the round trip."""
    max_datagram_bytes: int
    """The largest datagram that the path is known to carry."""
    datagrams_in_flight: int
    """Datagrams in flight that are to be acknowledged."""
    suite: Optional[str]
    """The cipher suite; None without encryption."""


@dataclass(frozen=True)
class ServerStats:
    """Counters of a server."""

    connections: int
    """Connections, handshakes in progress included."""
    handshakes: int
    """Handshakes in progress."""
    lingering: int
    """Connections that have ended, and are still answered."""
    memory_bytes: int
    """What clients make it hold."""
    in_line: int
    """Clients who wait in line."""
    remembered: int
    """Tokens and requests that are remembered, so that none is accepted twice."""
    requests: int
    """Requests received."""
    accepted: int
    """Requests accepted."""
    closed: int
    """Connections that have ended."""
    refused: int
    """Refusals sent."""
    resets: int
    """Resets sent."""
    closes_repeated: int
    """Closes that were sent again."""
    strays: int
    """Datagrams that came to another worker than their connection's, and were handed over."""
    strays_dropped: int
    """Those that were dropped."""
    datagrams_received: int
    """Datagrams received."""
    bytes_received: int
    """Bytes in them."""
    datagrams_sent: int
    """Datagrams sent."""
    bytes_sent: int
    """Bytes in them."""


@dataclass(frozen=True)
class TokenClaims:
    """What a matchmaker states about a client."""

    issued_unix: int
    """When the token was issued, in Unix seconds."""
    expiry_unix: int
    """When it expires, in Unix seconds."""
    servers: List[str]
    """The servers that accept it; none for every server."""
    client_id: int
    """The application's name for the player; 0 for none."""
    client_address: Optional[str]
    """The address at which the matchmaker knows the client."""
    min_rate_bps: Optional[int]
    """A minimum rate for this client, for the application."""
    max_rate_bps: Optional[int]
    """The maximum rate of blocks for this client; None for no limit."""
    user_data: bytes
    """Data from the matchmaker for the server."""


@dataclass(frozen=True)
class Progress:
    """How far a transfer of files is."""

    files_done: int
    """Files that are done: stored, here already, or failed."""
    files: int
    """Files in all."""
    wanted_bytes: int
    """Bytes that are wanted, as far as sizes are known."""
    verified_bytes: int
    """Bytes of these that are here and verified."""
    wire_bytes: int
    """Bytes of files that came over the connection, before they were unpacked."""
    resumed_bytes: int
    """Verified bytes that were here from an interrupted transfer."""
    copied_bytes: int
    """Verified bytes that were copied from an older version, or from a file with the same content."""
    packed_bytes: int
    """Verified bytes that came packed, as many as they are unpacked."""
    saved_bytes: int
    """What packing saved."""
    here_bytes: int
    """Verified bytes of files that were here already."""
    bytes_per_second: int
    """The rate of the last 3 s."""
    remaining_s: Optional[float]
    """The time that the rest will take; None while that is not known."""


@dataclass(frozen=True)
class SoakFailure:
    """A scenario that failed."""

    scenario: int
    """Its seed."""
    what: str
    """What went wrong."""
    replay: str
    """The command that runs exactly this one again."""


@dataclass(frozen=True)
class SoakReport:
    """The results of a soak."""

    scenarios: int
    """Scenarios run."""
    transfers: int
    """Chunks that arrived unchanged."""
    packets: int
    """Packets that were accepted at the other end."""
    restarts: int
    """Runs of chunks that both ends restarted after a timeout of one."""
    hangs: int
    """Scenarios in which something never finished."""
    mismatches: int
    """Scenarios in which data was wrong, or reported as arrived and had not."""
    virtual_time_s: float
    """Virtual time of all scenarios together."""
    trace: str
    """A hash over all that happened: the same seed gives the same."""
    seed: int
    """The seed of the soak."""
    layers: str
    """What was soaked."""
    failures: List[SoakFailure]
    """What went wrong, each with the command that replays it."""

    @property
    def is_ok(self) -> bool:
        """Whether there was no failure."""
        return self.hangs == 0 and self.mismatches == 0
