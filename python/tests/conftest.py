"""What the tests share. Each wait has a limit: what hangs fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator, Optional

import pytest

import haulier
from haulier import AnyEvent, AnyServerEvent, Client, ConnectionId, Event, Server

# What runs in the background of a shell ignores Ctrl-C, and so would what the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

LIMIT_S = 20.0
"""Longer than anything takes on a busy machine."""

PROTOCOL_ID = 7


def until(client: Client, wanted: Callable[[AnyEvent], bool]) -> AnyEvent:
    """The first event of this sort."""
    while True:
        event = client.wait(LIMIT_S)
        assert event is not None, "nothing came in time"
        if wanted(event):
            return event


class Host:
    """A server in a thread: it sends a world to each that joins, and returns messages and blocks."""

    def __init__(self, server: Server, world: Optional[haulier.Block] = None) -> None:
        self.server = server
        self.world = world
        self.requests: list[bytes] = []
        self.claims: list[Optional[haulier.TokenClaims]] = []
        self.closed: list[Event.Closed] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for id, event in self.server:
            try:
                self._answer(id, event)
            except haulier.NotOpenError:
                pass  # it has left already

    def _answer(self, id: ConnectionId, event: AnyServerEvent) -> None:
        if isinstance(event, haulier.ServerEvent.Connecting):
            self.requests.append(event.request)
            self.claims.append(event.token)
            if event.request == b"no":
                self.server.close(id, 300, "not today")
            elif self.world is not None:
                self.server.send_block(id, self.world)
        elif isinstance(event, Event.Message):
            self.server.send_message(id, event.data, channel=event.channel)
        elif isinstance(event, Event.Block):
            self.server.send_block(id, haulier.Block(event.tag + 1, event.data))
        elif isinstance(event, Event.Packet):
            self.server.send_packet(id, event.data)
        elif isinstance(event, Event.Closed):
            self.closed.append(event)

    @property
    def ticket(self) -> haulier.Ticket:
        """Its ticket."""
        return self.server.ticket()

    def close(self) -> None:
        """Ends it."""
        self.server.shut_down()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()


@pytest.fixture
def host() -> Iterator[Host]:
    """A server with a world of 300,000 bytes under tag 1."""
    host = Host(
        haulier.Server.bind("127.0.0.1:0", PROTOCOL_ID), haulier.Block(1, os.urandom(300_000))
    )
    yield host
    host.close()


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    """A directory with three files."""
    maps = tmp_path / "maps"
    (maps / "a").mkdir(parents=True)
    (maps / "one.map").write_bytes(os.urandom(1_500_000))
    (maps / "a" / "two.map").write_bytes(b"two" * 1000)
    (maps / "a" / "notes.txt").write_text("notes")
    return maps


def same(left: Path, right: Path) -> None:
    """Both have the same files."""
    files = [path.relative_to(left) for path in left.rglob("*") if path.is_file()]
    assert files
    for file in files:
        assert (left / file).read_bytes() == (right / file).read_bytes(), file


@pytest.fixture
def program() -> str:
    """The program `haulier`, which `cargo test` has built."""
    program = os.environ.get("HAULIER_PROGRAM")
    if program is None:
        pytest.skip("HAULIER_PROGRAM does not say where the program `haulier` is")
    return program


@contextmanager
def started(program: str, *arguments: str) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """The program as it serves or receives, and its ticket."""
    command = [program, *arguments, "--bind", "127.0.0.1:0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, next(it for line in process.stdout if (it := json.loads(line).get("ticket")))
        finally:
            process.kill()
