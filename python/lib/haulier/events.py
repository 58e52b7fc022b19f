"""What happens to a connection. Each event is a dataclass, so that `match` takes it apart:

    match event:
        case Event.Block(tag, data):
            load(data)
        case Event.Closed(kind):
            print(kind)

What a program does not know it leaves alone: later versions have more events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional, Union

from ._haulier import BlockHandle, BlockNumber, ConnectionId
from .types import Progress, TokenClaims


class Event:
    """The events of a connection, as classes inside of this one."""

    @dataclass(frozen=True)
    class Connected:
        """At a client: the server's welcome is verified. At a server: the client's address is validated."""

    @dataclass(frozen=True)
    class Queued:
        """At a client that is not connected yet: the server has no seat for it, and it waits in line."""

        place: Optional[int]
        """How many are before it, itself included: 1 is the next. None if even the line is full."""
        estimate_s: Optional[float]
        """How long it may take, if the server can say."""

    @dataclass(frozen=True)
    class BlockProgress:
        """More of a block has arrived."""

        tag: int
        """The tag that the sender gave it."""
        received_bytes: int
        """What has arrived of it."""
        length_bytes: int
        """Its size."""
        rate_bps: int
        """How fast it comes, in bit/s: the mean of about a second. 0 if that is not known yet."""
        estimate_s: Optional[float]
        """How long the rest will take at this rate; None in the first quarter of a second."""

    @dataclass(frozen=True)
    class BlockAnnounced:
        """The peer announced a block. It can be declined."""

        block: BlockNumber
        """Which one."""
        tag: int
        """The tag that the sender gave it."""
        length_bytes: int
        """Its size."""
        digest: bytes
        """Its BLAKE3."""

    @dataclass(frozen=True)
    class BlockCancelled:
        """The peer gave a block up that was being received."""

        block: BlockNumber
        """Which one."""
        tag: int
        """The tag that the sender gave it."""
        code: int
        """The peer's code."""

    @dataclass(frozen=True)
    class BlockHere:
        """The peer announced a block that this end said it has: it is complete."""

        tag: int
        """The tag that the sender gave it."""

    @dataclass(frozen=True)
    class BlockDeclined:
        """The peer does not want a block of this end."""

        handle: BlockHandle
        """Which one."""
        code: int
        """The peer's code."""

    @dataclass(frozen=True)
    class Block:
        """A block was received and verified."""

        tag: int
        """The tag that the sender gave it."""
        data: bytes = field(repr=False)
        """Its bytes."""

    @dataclass(frozen=True)
    class Chunk:
        """A chunk of a block was received and verified, with a `delivery` of chunks."""

        block: BlockNumber
        """Its block."""
        tag: int
        """The tag that the sender gave the block."""
        offset_bytes: int
        """Where it begins in the block."""
        data: bytes = field(repr=False)
        """Its bytes: 256 KiB, or less at the end of the block."""

    @dataclass(frozen=True)
    class BlockComplete:
        """All chunks of a block were handed out, or were here before."""

        block: BlockNumber
        """Which one."""
        tag: int
        """The tag that the sender gave it."""

    @dataclass(frozen=True)
    class BlockSent:
        """A block of this end was received by the peer: all of it is acknowledged."""

        handle: BlockHandle
        """Which one."""

    @dataclass(frozen=True)
    class Packet:
        """A packet was received."""

        sequence: int
        """Its sequence: 0 comes again after 65,535, so `haulier.is_newer` says which of two packets is newer."""
        data: bytes = field(repr=False)
        """Its bytes."""

    @dataclass(frozen=True)
    class PacketAcked:
        """A packet of this end arrived. This is certain."""

        sequence: int
        """Which one."""

    @dataclass(frozen=True)
    class PacketLost:
        """A packet of this end probably did not arrive."""

        sequence: int
        """Which one."""

    @dataclass(frozen=True)
    class Message:
        """A message was received: the next in order, or an unordered one."""

        channel: int
        """Its channel."""
        data: bytes = field(repr=False)
        """Its bytes."""

    @dataclass(frozen=True)
    class MessageAcked:
        """A message of this end arrived whole. This is certain."""

        channel: int
        """Its channel."""
        number: int
        """Its number on the channel."""

    @dataclass(frozen=True)
    class MessageWritable:
        """A channel whose queue was full has room again."""

        channel: int
        """The channel."""

    @dataclass(frozen=True)
    class AddressChanged:
        """The client's address has changed, and the new one is validated."""

    @dataclass(frozen=True)
    class Closed:
        """The connection has ended. This is its last event."""

        kind: str
        """The kind, as errors have it: "closed" also where nothing went wrong."""
        code: Optional[int]
        """Why, as a number, if one end has closed it: `CloseCode.DONE` is no error."""
        name: Optional[str]
        """What the code is called, or why the server refused."""
        reason: str
        """The peer's own words, to be shown and not to be trusted."""
        text: str
        """A sentence for a person."""

    @dataclass(frozen=True)
    class Other:
        """An event that this version has no class for."""

        text: str
        """What it is, for a log."""


class ServerEvent:
    """The events that a server has beside those of its connections, as classes inside of this one."""

    @dataclass(frozen=True)
    class Connecting:
        """A client with valid credentials has sent a request. To reject it, close the connection."""

        request: bytes
        """The application's request."""
        token: Optional[TokenClaims]
        """The content of its token, if it has one."""


class Received:
    """What becomes of files that clients send, as classes inside of this one."""

    @dataclass(frozen=True)
    class File:
        """A file is here under its name."""

        client: ConnectionId
        """Who has sent it."""
        name: str
        """Its name, with slashes between directories."""
        path: Path
        """Where it is."""
        size_bytes: int
        """Its size."""
        digest: bytes
        """Its BLAKE3."""
        was_here: bool
        """Whether it was here before, the same."""

    @dataclass(frozen=True)
    class Failed:
        """A file could not be had or stored."""

        client: ConnectionId
        """Who has sent it."""
        name: str
        """Its name."""
        reason: str
        """Why, to be shown and not to be trusted."""

    @dataclass(frozen=True)
    class Done:
        """A client has nothing more to send, and is gone: its files are here, but for those that failed."""

        client: ConnectionId
        """Which one."""
        failed: int
        """How many of its files failed."""
        progress: Progress
        """What came of them, and what was here: its sender does not know that."""

    @dataclass(frozen=True)
    class Other:
        """What this version has no class for."""

        text: str
        """What it is, for a log."""


AnyReceived = Union[Received.File, Received.Failed, Received.Done, Received.Other]
"""Anything that becomes of files that are sent."""

AnyEvent = Union[
    Event.Connected,
    Event.Queued,
    Event.BlockProgress,
    Event.BlockAnnounced,
    Event.BlockCancelled,
    Event.BlockHere,
    Event.BlockDeclined,
    Event.Block,
    Event.Chunk,
    Event.BlockComplete,
    Event.BlockSent,
    Event.Packet,
    Event.PacketAcked,
    Event.PacketLost,
    Event.Message,
    Event.MessageAcked,
    Event.MessageWritable,
    Event.AddressChanged,
    Event.Closed,
    Event.Other,
]
"""Any event of a connection."""

AnyServerEvent = Union[ServerEvent.Connecting, AnyEvent]
"""Any event of a server."""
