"""A program that waits for an hour, in the call whose name it gets; `test_interrupt.py` sends it SIGINT.

It prints a line once it waits: another thread can do that only while the call lets other threads run, for
nothing else ever makes this one yield.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import threading
from typing import Callable, Coroutine, Dict, List, Tuple, TypeVar

import haulier
from haulier import Block, Client, ConnectionConfig, Server, Ticket

HOUR_S = 3600.0
PATIENT = ConnectionConfig(handshake_timeout_s=HOUR_S, idle_timeout_s=HOUR_S, no_progress_timeout_s=HOUR_S)

T = TypeVar("T")

kept: List[object] = []
"""What has to live as long as the call."""


def say_so_once_it_waits() -> None:
    """Prints a line as soon as the main thread lets another one run."""
    sys.setswitchinterval(HOUR_S)
    go = threading.Lock()
    go.acquire()

    def say_so() -> None:
        with go:
            os.write(1, b"waiting\n")

    threading.Thread(target=say_so, daemon=True).start()
    go.release()


def connecting() -> Client:
    """A client whose server says nothing."""
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    kept.append(silent)
    host, port = silent.getsockname()
    return Client.connect(f"{host}:{port}", protocol_id=7, open=True, config=PATIENT)


def server() -> Server:
    """A server that nobody joins."""
    return Server.bind("127.0.0.1:0", 7, config=PATIENT)


def sending() -> Client:
    """A client with a block that takes hours."""
    other = server()
    kept.append(other)
    client = Client.connect(other.ticket(), config=PATIENT)
    client.connected(60)
    client.set_max_rate_bps(10_000)
    client.send_block(Block(1, bytes(10_000_000)))
    return client


def leave(client: Client) -> None:
    """The end of a `with`, which waits as long as `finish` by itself."""
    with client:
        pass


def large() -> str:
    """A file that takes long at 100 kbit/s."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(os.urandom(1_000_000))
    return file.name


def inbox() -> haulier.FileServer:
    """What takes files."""
    return haulier.recv(tempfile.mkdtemp())


def inbox_for_one() -> Tuple[Ticket, str]:
    """What takes files, and a file for it. Nothing else is done when it waits, for that would say so, too."""
    kept.append(taker := inbox())
    return taker.ticket, large()


def files() -> Tuple[Ticket, str]:
    """A file that comes too slowly, and where to put it."""
    kept.append(slow := haulier.serve([large()], max_rate_bps=100_000))
    return slow.ticket, tempfile.mkdtemp()


async def events(of: Client) -> None:
    """All that happens to it."""
    async for _event in of:
        pass


async def requests(to: Server) -> None:
    """All that happens at it."""
    async for _id, _event in to:
        pass


Waits = Callable[[], None]


def call(made: Callable[[], T], wait: Callable[[T], object]) -> Waits:
    """A wait of something that is made before."""

    def called() -> None:
        it = made()
        say_so_once_it_waits()
        wait(it)

    return called


def loop(made: Callable[[], T], wait: Callable[[T], Coroutine[object, object, object]]) -> Waits:
    """A wait in an event loop."""

    async def awaited(it: T) -> None:
        say_so_once_it_waits()
        await wait(it)

    return lambda: asyncio.run(awaited(made()))


CALLS: Dict[str, Waits] = {
    "Client.connected": call(connecting, lambda client: client.connected()),
    "Client.wait": call(connecting, lambda client: client.wait()),
    "Client.__next__": call(connecting, lambda client: list(client)),
    "Client.finish": call(sending, lambda client: client.finish(HOUR_S)),
    "Client.__exit__": call(sending, leave),
    "Client.connected_async": loop(connecting, lambda client: client.connected_async()),
    "Client.next_event": loop(connecting, lambda client: client.next_event()),
    "Client.__anext__": loop(connecting, events),
    "Client.finish_async": loop(sending, lambda client: client.finish_async(HOUR_S)),
    "Server.wait": call(server, lambda server: server.wait()),
    "Server.__next__": call(server, lambda server: list(server)),
    "Server.next_event": loop(server, lambda server: server.next_event()),
    "Server.__anext__": loop(server, requests),
    "fetch": call(files, lambda it: haulier.fetch(it[0], it[1])),
    "send": call(inbox_for_one, lambda it: haulier.send([it[1]], it[0], max_rate_bps=100_000)),
    "FileServer.wait": call(inbox, lambda inbox: inbox.wait()),
    "FileServer.__next__": call(inbox, lambda inbox: list(inbox)),
    "soak": call(lambda: 1 << 40, haulier.soak),
}

if __name__ == "__main__":
    CALLS[sys.argv[1]]()
    raise SystemExit("it came back by itself")
