from os import PathLike
from types import TracebackType
from typing import Any, Callable, Optional, Sequence, Tuple, Type, Union, final

from typing_extensions import Buffer, Self

from .events import AnyEvent, AnyReceived, AnyServerEvent, Event
from .types import (
    Attempt,
    BlockProgress,
    ConnectionConfig,
    ConnectionStats,
    Progress,
    ServerStats,
    SoakReport,
    WireBytes,
)

__all__ = [
    "Block",
    "BlockHandle",
    "BlockNumber",
    "Client",
    "ConnectToken",
    "ConnectionId",
    "FileServer",
    "Operation",
    "Server",
    "Ticket",
    "TokenKey",
    "Wakeups",
    "fetch",
    "is_newer",
    "issue_token",
    "random_secret",
    "recv",
    "send",
    "serve",
    "soak",
]

@final
class ConnectionId:
    """Which client of a server."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BlockHandle:
    """Which block that this end sends."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BlockNumber:
    """Which block that this end receives."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Block:
    """Bytes to send, hashed once, to as many as want them. The tag is the program's own, below 2^62. `bytes`
    are not copied, and held until they were sent; what else has a buffer is copied."""

    def __new__(cls, tag: int, data: Buffer) -> Self: ...
    @property
    def tag(self) -> int:
        """The program's name for it."""
    @property
    def length_bytes(self) -> int:
        """Its size."""
    @property
    def digest(self) -> bytes:
        """Its BLAKE3."""
    @property
    def data(self) -> bytes:
        """A copy of its bytes."""

@final
class Ticket:
    """A line to copy: where a server is, and what lets a client in. It is as secret as what it opens."""

    @staticmethod
    def parse(text: str) -> Ticket:
        """Parses a ticket, "haulier1:..."; `CredentialsError` if the text is not a ticket."""
    @property
    def addresses(self) -> list[str]:
        """The addresses of the server, the likeliest first."""
    @property
    def protocol_id(self) -> int:
        """The number of the application's protocol."""
    @property
    def is_open(self) -> bool:
        """Whether it is for a server without encryption."""
    @property
    def digest(self) -> Optional[bytes]:
        """The BLAKE3 of the only file that is there, if there is but one."""
    @property
    def identity(self) -> Optional[bytes]:
        """The public key that the server must have, if it has one."""
    def to_text(self) -> str:
        """The line to copy, as `str` gives it."""

@final
class ConnectToken:
    """What lets one client in, once, for a limited time."""

    @staticmethod
    def parse(text: str) -> ConnectToken:
        """Parses a token, "haulier-token1:..."; `CredentialsError` if the text is not a token."""
    @property
    def servers(self) -> list[str]:
        """The addresses of the servers that it names."""
    @property
    def protocol_id(self) -> int:
        """The number of the application's protocol."""
    @property
    def expiry_unix(self) -> int:
        """When it expires, in Unix seconds."""
    def to_text(self) -> str:
        """The line to hand over, as `str` gives it."""

@final
class TokenKey:
    """What a matchmaker and its servers share: 32 bytes, and a number to tell it from the next one."""

    def __new__(cls, id: int, key: Buffer) -> Self: ...
    @property
    def id(self) -> int:
        """Its number."""

@final
class Client:
    """A client of a game, and its connection to a server.

    It is a handle: a network thread does the work. Several threads or tasks may use it; each event goes to
    one of them. A `with` ends by `finish`; a client that is forgotten closes its connection at once."""

    @staticmethod
    def connect(
        to: Union[str, Ticket, ConnectToken],
        *,
        protocol_id: Optional[int] = None,
        secret: Optional[Buffer] = None,
        identity: Optional[Buffer] = None,
        open: bool = False,
        request: Optional[Buffer] = None,
        servers: Optional[Sequence[str]] = None,
        copies: Optional[int] = None,
        max_time_in_line_s: Optional[float] = None,
        config: Optional[ConnectionConfig] = None,
        shared_thread: bool = False,
    ) -> Client:
        """Starts to connect, and returns at once: `connected` waits for it.

        `to` is a ticket or a connect token, or HOST:PORT, and then `protocol_id` and either `secret` (32
        bytes, with the server's public `identity` if it has one) or `open=True` are needed. `request` is
        what the program asks for: up to 400 bytes, which may be replayed and are not secret. `servers` are
        addresses for a token that names no server. `copies` of the request go out at once, 4 by default. It
        waits in a line for at most 10 minutes. With `shared_thread` one thread drives all such clients, in
        place of one for each: for load tests with hundreds; waits have a precision of 1 ms then."""
    def connected(self, timeout_s: Optional[float] = None) -> None:
        """Waits until there is a connection, or raises the reason why it failed. It takes no event."""
    async def connected_async(self) -> None:
        """`connected`, to be awaited."""
    def poll(self) -> Optional[AnyEvent]:
        """The next event, without waiting; None if no event is ready."""
    def wait(self, timeout_s: Optional[float] = None) -> Optional[AnyEvent]:
        """The next event; None if none came in that time, after a `wake`, and after the end."""
    def wake(self) -> None:
        """Ends a `wait` without an event: the one under way, or else the next. From any thread."""
    async def next_event(self) -> Optional[AnyEvent]:
        """The next event, awaited; None after the end. It may be cancelled, and loses no event."""
    def __iter__(self) -> Self:
        """Its events, waited for, until it is closed."""
    def __next__(self) -> AnyEvent: ...
    def __aiter__(self) -> Self:
        """Its events, awaited, until it is closed."""
    async def __anext__(self) -> AnyEvent: ...
    def send_packet(self, data: Buffer) -> int:
        """Sends a packet of the moment of up to 256 KiB, once. Returns its sequence, which wraps at
        65,536 (`is_newer`); an event says whether it arrived."""
    def send_message(self, data: Buffer, *, channel: int = 0, ordered: bool = True) -> int:
        """Sends a message of up to 64 KiB on a channel: it arrives, once. Returns its number there."""
    def send_block(
        self,
        block: Block,
        *,
        priority: int = 0,
        weight: int = 0,
        urgency: Optional[str] = None,
    ) -> BlockHandle:
        """Sends a block of any size. Those with a higher priority go first; of one priority, the weight is the
        share. `urgency` is as in `ConnectionConfig`."""
    def cancel_block(self, handle: BlockHandle, code: int = 0) -> bool:
        """Cancels a block, and sends the code to the server. True if it was waiting or being sent."""
    def decline_block(self, block: BlockNumber, code: int = 0) -> bool:
        """Does not want the rest of a block that was announced. Whether it was being received."""
    def have_block(self, digest: Buffer) -> bool:
        """The program has the block with this BLAKE3: when it is announced, `Event.BlockHere` takes its place.
        Whether it is remembered: at most 64 are."""
    def pause_block(self, handle: BlockHandle) -> bool:
        """Pauses a block. Whether it is on its way."""
    def resume_block(self, handle: BlockHandle) -> bool:
        """Goes on with a block that was paused. Whether it is on its way."""
    def prefer_range(self, handle: BlockHandle, begin_bytes: int, end_bytes: int) -> bool:
        """Says which bytes of a block go first. Whether it is on its way."""
    def set_block_priority(self, handle: BlockHandle, priority: int) -> bool:
        """Changes the priority of a block. Whether it is on its way."""
    def set_max_rate_bps(self, rate_bps: int) -> None:
        """Limits the rate of its blocks, in bit/s."""
    def set_urgency(self, urgency: str) -> None:
        """Changes how much blocks may take of the link: "load-screen" or "during-play"."""
    def close(self, code: int = 0, reason: str = "") -> None:
        """Closes the connection, with a reason of up to 255 bytes for the server. What was not acknowledged
        may be lost."""
    def finish(self, timeout_s: float = 5.0) -> Event.Closed:
        """Waits until all blocks and messages sent are acknowledged, and closes. Events in that time are
        dropped. Returns how the connection ended; `TimeoutError` if it was not done in time."""
    async def finish_async(self, timeout_s: float = 5.0) -> Event.Closed:
        """`finish`, to be awaited."""
    def __enter__(self) -> Self:
        """Itself."""
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        _error: Optional[BaseException],
        _traceback: Optional[TracebackType],
    ) -> None:
        """Finishes within 5 s; after an error it closes at once."""
    @property
    def all_acked(self) -> bool:
        """Whether every block and message that was sent is acknowledged."""
    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed, and the close was sent: there will be no more events."""
    @property
    def state(self) -> Optional[str]:
        """The state of the connection: "confirming", "connected", "closing", "closed"; None before the server
        has answered."""
    @property
    def server(self) -> str:
        """The server's address; one of several while connecting."""
    @property
    def local_addr(self) -> str:
        """The address of its socket."""
    @property
    def attempts(self) -> list[Attempt]:
        """All addresses that were tried, each with its outcome."""
    @property
    def wire_bytes(self) -> WireBytes:
        """Bytes of all datagrams, the handshake included."""
    @property
    def buffer_warning(self) -> Optional[str]:
        """What to do if the system gives its socket too little memory; None if it does not."""
    def sending(self) -> Optional[BlockProgress]:
        """The progress of the block that is being sent."""
    def receiving(self) -> Optional[BlockProgress]:
        """The progress of the block that is being received."""
    def stats(self) -> Optional[ConnectionStats]:
        """The counters of the connection; None before there is one."""
    def rebind(self) -> None:
        """Moves to a new socket, when the network has changed. The connection goes on."""

@final
class Server:
    """A server of a game and all its clients, at one address.

    It is a handle: network threads do the work. Several threads or tasks may use it; each event goes to one
    of them. A `with` ends by `finish`; when it is forgotten, all its connections are closed."""

    @staticmethod
    def bind(
        local: str,
        protocol_id: int,
        *,
        secret: Optional[Buffer] = None,
        open: bool = False,
        token_keys: Sequence[TokenKey] = ...,
        identity: Optional[Buffer] = None,
        addresses: Sequence[str] = ...,
        earlier_tokens: bool = False,
        connections: Optional[int] = None,
        max_uplink_bps: Optional[int] = None,
        workers: int = 1,
        first_block: Optional[Block] = None,
        config: Optional[ConnectionConfig] = None,
    ) -> Server:
        """Listens at an address, and starts. With port 0 the system chooses one.

        Clients with the `secret` are let in, or with a token of one of the `token_keys`, or with `open`
        all, without encryption; with none of these there is a new secret, which is in the `ticket`. The
        private `identity` proves the server to clients. `addresses` are those of a router in front of it,
        with which tokens are compared; `earlier_tokens` accepts those issued before the start. `connections`
        is the maximum number of clients, by default as many as 1 GiB holds; `max_uplink_bps` limits the rate
        to all clients together, by default without a limit. `workers` is the number of threads: more than 1
        only on Linux.
        The `first_block` goes to each client with the answer to its request, however late the program looks;
        a client that accepts only smaller blocks is closed."""
    def ticket(self, addresses: Optional[Sequence[str]] = None) -> Ticket:
        """A ticket to it, which clients reach at these addresses, or at its own; `UsageError` if it
        accepts only tokens."""
    def poll(self) -> Optional[Tuple[ConnectionId, AnyServerEvent]]:
        """The next event and its client, without waiting; None if no event is ready."""
    def wait(
        self, timeout_s: Optional[float] = None
    ) -> Optional[Tuple[ConnectionId, AnyServerEvent]]:
        """The next event, and of which client; None if none came in that time, after a `wake`, and when it is
        shut down."""
    def wake(self) -> None:
        """Ends a `wait` without an event: the one under way, or else the next. From any thread."""
    async def next_event(self) -> Optional[Tuple[ConnectionId, AnyServerEvent]]:
        """The next event, awaited; None when it is shut down. It may be cancelled, and loses no event."""
    def __iter__(self) -> Self:
        """Its events, waited for, until it is shut down."""
    def __next__(self) -> Tuple[ConnectionId, AnyServerEvent]: ...
    def __aiter__(self) -> Self:
        """Its events, awaited, until it is shut down."""
    async def __anext__(self) -> Tuple[ConnectionId, AnyServerEvent]: ...
    def send_packet(self, id: ConnectionId, data: Buffer) -> int:
        """Sends a packet of the moment of up to 256 KiB, once. Returns its sequence, which wraps at
        65,536 (`is_newer`); an event says whether it arrived."""
    def send_message(
        self, id: ConnectionId, data: Buffer, *, channel: int = 0, ordered: bool = True
    ) -> int:
        """Sends a message of up to 64 KiB on a channel: it arrives, once. Returns its number there."""
    def send_block(
        self,
        id: ConnectionId,
        block: Block,
        *,
        priority: int = 0,
        weight: int = 0,
        urgency: Optional[str] = None,
    ) -> BlockHandle:
        """Sends a block of any size, from `ServerEvent.Connecting` on. Those with a higher priority go first;
        of one priority, the weight is the share."""
    def cancel_block(self, id: ConnectionId, handle: BlockHandle, code: int = 0) -> bool:
        """Cancels a block, and sends the code to the client. True if it was waiting or being sent."""
    def decline_block(self, id: ConnectionId, block: BlockNumber, code: int = 0) -> bool:
        """Does not want the rest of a block that was announced. Whether it was being received."""
    def close(self, id: ConnectionId, code: int = 0, reason: str = "") -> None:
        """Closes a connection, with a reason of up to 255 bytes for the client. To refuse a client, close at
        `ServerEvent.Connecting` with `CloseCode.NOT_ACCEPTED` or a code of the program's own."""
    def shut_down(self) -> None:
        """Starts to close all connections; iterations end when that is done."""
    def finish(self, timeout_s: float = 5.0) -> None:
        """Shuts down, and waits until every close is sent. Events in that time are dropped."""
    async def finish_async(self, timeout_s: float = 5.0) -> None:
        """`finish`, to be awaited."""
    def __enter__(self) -> Self:
        """Itself."""
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        _error: Optional[BaseException],
        _traceback: Optional[TracebackType],
    ) -> None:
        """Finishes, for 5 s at most; after an error it only starts to. A client that has vanished answers no
        close, and that is no error of the program's."""
    @property
    def is_shut_down(self) -> bool:
        """Whether it was shut down, and no connection is left."""
    @property
    def local_addr(self) -> str:
        """The address it listens at."""
    @property
    def workers(self) -> int:
        """The number of its threads."""
    def connections(self) -> list[ConnectionId]:
        """All connections, those in their handshake included."""
    def address_of(self, id: ConnectionId) -> Optional[str]:
        """The address of a client; None if it is gone."""
    def all_acked(self, id: ConnectionId) -> bool:
        """Whether every block and message sent to a client is acknowledged."""
    def state(self, id: ConnectionId) -> Optional[str]:
        """The state of a connection; None if it is gone."""
    def sending(self, id: ConnectionId) -> Optional[BlockProgress]:
        """The progress of the block that is being sent to a client."""
    def receiving(self, id: ConnectionId) -> Optional[BlockProgress]:
        """The progress of the block that is being received from a client."""
    def connection_stats(self, id: ConnectionId) -> Optional[ConnectionStats]:
        """The counters of a connection; None if it is gone."""
    def set_max_rate_bps(self, id: ConnectionId, rate_bps: int) -> None:
        """Limits the rate of a connection's blocks, in bit/s."""
    def set_urgency(self, id: ConnectionId, urgency: str) -> None:
        """Changes how much a connection's blocks may take of the link: "load-screen" or "during-play"."""
    def stats(self) -> ServerStats:
        """The counters of the server."""

@final
class FileServer:
    """Files that are served by a thread, and those that clients send, until it is closed; a `with` closes it.

    What becomes of files that are sent here is what it iterates over, or `wait` gives: `Received.File` and
    others."""

    @property
    def ticket(self) -> Ticket:
        """What lets a client in; `UsageError` if it accepts only tokens."""
    @property
    def local_addr(self) -> str:
        """The address it listens at."""
    @property
    def skipped(self) -> list[str]:
        """What is in the directories and is not served: links, pipes, and names that not every system has."""
    def wait(self, timeout_s: Optional[float] = None) -> Optional[AnyReceived]:
        """What became of the next file that was sent here; None if nothing did in that time, and after the end."""
    def __iter__(self) -> Self:
        """What becomes of files that are sent here, waited for, until it is closed."""
    def __next__(self) -> AnyReceived: ...
    @property
    def clients(self) -> int:
        """The number of connected clients."""
    def close(self) -> None:
        """Closes the server and its connections. Clients keep the files that they have."""
    def __enter__(self) -> Self:
        """Itself."""
    def __exit__(
        self,
        _kind: Optional[Type[BaseException]],
        _error: Optional[BaseException],
        _traceback: Optional[TracebackType],
    ) -> None:
        """Closes it."""

@final
class Operation:
    """A call that is awaited."""

    def poll(self, wakeups: Wakeups, number: int) -> Optional[Tuple[Any]]:
        """Whether it is done: its result in a tuple of one, or None, and then `number` is rung when it should
        be polled again."""

@final
class Wakeups:
    """What a loop awaits, each under a number, and the end of a pipe that says that one of them goes on."""

    def __new__(cls) -> Self: ...
    def fileno(self) -> int:
        """What a loop watches for reading."""
    def take(self) -> list[int]:
        """The numbers that were rung."""

def is_newer(a: int, b: int) -> bool:
    """Whether packet `a` was sent after packet `b`, by their sequences. These wrap: after 65,535 comes 0, within
    an hour at 20 a second, and then `a > b` is wrong."""

def random_secret() -> bytes:
    """32 random bytes from the system: for a server, for a token key."""

def issue_token(
    key: TokenKey,
    protocol_id: int,
    servers: Sequence[str] = ...,
    *,
    lifetime_s: float = 60.0,
    issued_unix: Optional[int] = None,
    client_id: int = 0,
    client_address: Optional[str] = None,
    max_rate_bps: Optional[int] = None,
    user_data: Optional[Buffer] = None,
) -> ConnectToken:
    """Makes a connect token, as a matchmaker does: for the servers at these addresses, once each, or for every
    server with the key. The server gets `client_id` and up to 256 bytes of `user_data` with the request.
    It is issued now, or at `issued_unix`, in Unix seconds."""

def fetch(
    ticket: Union[str, Ticket, ConnectToken],
    into: Union[str, PathLike[str]],
    *,
    name: str = "",
    only: Optional[Sequence[str]] = None,
    replace: bool = False,
    on_progress: Optional[Callable[[Progress], object]] = None,
) -> Progress:
    """Fetches files, verified, and comes back when the last has its name.

    `into` is a directory, which is made if several files come, or the name for the only file. `name` is what
    is wanted of all that is served, and `only` patterns of files in it, such as "**/*.map". Several files go
    where no others are: in a directory that has others, into one of their own. Files that an earlier fetch
    has stored do not come again, and one that was interrupted goes on. Other files are kept; they are
    compared only with `replace`: then the parts of them that differ come, and the server hears which files
    are here. `on_progress` is called ten times a second; its exception ends the fetch, as Ctrl-C does."""

def serve(
    paths: Union[str, PathLike[str], Sequence[Union[str, PathLike[str]]]],
    bind: str = "127.0.0.1:0",
    *,
    addresses: Optional[Sequence[str]] = None,
    secret: Optional[Buffer] = None,
    open: bool = False,
    token_keys: Sequence[TokenKey] = ...,
    identity: Optional[Buffer] = None,
    max_rate_bps: Optional[int] = None,
    inbox: Optional[Union[str, PathLike[str]]] = None,
    replace: bool = False,
    max_inbox_bytes: Optional[int] = None,
) -> FileServer:
    """Serves files and directories, one path or several, each under the last part of its path, in a thread of
    its own.

    Only this machine reaches it unless `bind` is another address, such as "0.0.0.0:4016"; then `addresses`
    are those for the ticket. Clients are let in by the rules of `Server.bind`. With an `inbox` clients may
    send files into that directory, too, as with `recv`."""

def send(
    paths: Union[str, PathLike[str], Sequence[Union[str, PathLike[str]]]],
    ticket: Union[str, Ticket, ConnectToken],
    *,
    max_rate_bps: Optional[int] = None,
    on_progress: Optional[Callable[[Progress], object]] = None,
) -> Progress:
    """Sends files and directories, one path or several, each under the last part of its path, to a `haulier
    recv`, a `haulier serve --inbox` or `recv`, and comes back when all are stored there.

    Files that are already there are not sent again, and an interrupted transfer is resumed. `on_progress` is
    called ten times a second; its exception ends the transfer, as Ctrl-C does."""

def recv(
    into: Union[str, PathLike[str]],
    bind: str = "127.0.0.1:0",
    *,
    addresses: Optional[Sequence[str]] = None,
    secret: Optional[Buffer] = None,
    open: bool = False,
    token_keys: Sequence[TokenKey] = ...,
    identity: Optional[Buffer] = None,
    replace: bool = False,
    max_bytes: Optional[int] = None,
) -> FileServer:
    """Takes files that clients send, with `send` or `haulier send`, and stores them in a directory, verified.

    It is what it iterates over that says what came. A file that has a name already is not touched, unless
    `replace` says so, and of all that is there and may come there are at most `max_bytes`. The rest is as
    with `serve`."""

def soak(
    transfers: int = 1000,
    seed: int = 1,
    *,
    layers: str = "both",
    on_progress: Optional[Callable[[SoakReport], object]] = None,
) -> SoakReport:
    """Random transfers and a game's packets under random faults in virtual time: all of them have to finish.

    `layers` are "chunks", "packets", "both" or "connection". The same seed gives the same transfers. It stops
    at the tenth failure; each has the command that replays it."""
