"""Files that are sent, to Python and to the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import List

import pytest

import haulier
from conftest import LIMIT_S, maps, program, same, started
from haulier import AnyReceived, FileServer, Progress, Received

__all__ = ["maps", "program"]


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Where files go."""
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def until_done(server: FileServer) -> List[AnyReceived]:
    """What came of all that one client has sent."""
    seen: List[AnyReceived] = []
    while not seen or not isinstance(seen[-1], Received.Done):
        event = server.wait(LIMIT_S)
        assert event is not None, "nothing came in time"
        seen.append(event)
    return seen


def test_a_directory_is_sent(maps: Path, inbox: Path) -> None:
    with haulier.recv(inbox) as server:
        done = haulier.send([maps], server.ticket)
        assert (done.files_done, done.files, done.wanted_bytes) == (3, 3, 1_503_005)
        *files, last = until_done(server)
        assert isinstance(last, Received.Done) and last.failed == 0
        names = {file.name: file for file in files if isinstance(file, Received.File)}
        assert sorted(names) == ["maps/a/notes.txt", "maps/a/two.map", "maps/one.map"]
        one = names["maps/one.map"]
        assert (one.path, one.size_bytes, one.was_here) == (inbox / "maps/one.map", 1_500_000, False)
        assert one.client == last.client and one.digest == haulier.Block(0, one.path.read_bytes()).digest
        same(maps, inbox / "maps")
        # A second time nothing crosses the wire, and it is said.
        haulier.send([maps], str(server.ticket))
        *files, last = until_done(server)
        assert len(files) == 3 and all(isinstance(file, Received.File) and file.was_here for file in files)
        assert isinstance(last, Received.Done) and last.progress.here_bytes == 1_503_005
    assert list(server) == [], "it is closed"


def test_a_file_that_is_there_is_kept_unless_it_is_to_be_replaced(tmp_path: Path, inbox: Path) -> None:
    world = tmp_path / "world.bin"
    world.write_bytes(b"new" * 1000)
    (inbox / "world.bin").write_bytes(b"old")
    with haulier.recv(inbox) as server:
        with pytest.raises(haulier.IoError, match="world.bin: the name is taken"):
            haulier.send([world], server.ticket)
        failed, done = until_done(server)
        assert isinstance(failed, Received.Failed) and failed.name == "world.bin"
        assert isinstance(done, Received.Done) and done.failed == 1
    assert (inbox / "world.bin").read_bytes() == b"old"
    with haulier.recv(inbox, replace=True) as server:
        haulier.send([world], server.ticket)
    assert (inbox / "world.bin").read_bytes() == world.read_bytes()


def test_no_more_than_it_takes(tmp_path: Path, inbox: Path) -> None:
    (tmp_path / "large").write_bytes(os.urandom(3_000_000))
    with haulier.recv(inbox, max_bytes=2_000_000) as server:
        with pytest.raises(haulier.ClosedError) as error:
            haulier.send([tmp_path / "large"], server.ticket)
        assert error.value.code == 261
    assert list(inbox.iterdir()) == []


def test_one_server_gives_and_takes(maps: Path, tmp_path: Path, inbox: Path) -> None:
    (tmp_path / "log.txt").write_text("log")
    with haulier.serve([maps], inbox=inbox) as server:
        haulier.send([tmp_path / "log.txt"], server.ticket)
        assert (inbox / "log.txt").read_text() == "log"
        assert haulier.fetch(server.ticket, tmp_path / "one", name="maps/one.map").files == 1
    with haulier.serve([maps]) as server:
        with pytest.raises(haulier.ClosedError) as error:
            haulier.send([tmp_path / "log.txt"], server.ticket)
        assert error.value.code == 257
    with haulier.recv(inbox) as server:
        with pytest.raises(haulier.ClosedError) as error:
            haulier.fetch(server.ticket, tmp_path / "two")
        assert error.value.code == 256


def test_what_cannot_be_sent_or_taken(tmp_path: Path, inbox: Path) -> None:
    with haulier.recv(inbox) as server:
        with pytest.raises(haulier.IoError, match="nowhere"):
            haulier.send([tmp_path / "nowhere"], server.ticket)
        with pytest.raises(haulier.UsageError):
            haulier.send([], server.ticket)
        assert server.wait(0) is None
    with pytest.raises(haulier.IoError, match="there is no directory"):
        haulier.recv(tmp_path / "nowhere")
    with pytest.raises(haulier.UsageError, match="nothing to serve"):
        haulier.serve([])


def test_ctrl_c_ends_it_and_what_came_is_kept(tmp_path: Path, inbox: Path) -> None:
    world = tmp_path / "world.bin"
    world.write_bytes(os.urandom(8_000_000))

    def interrupt(progress: Progress) -> None:
        if progress.verified_bytes > 1_000_000:
            os.kill(os.getpid(), signal.SIGINT)

    with haulier.recv(inbox) as server:
        with pytest.raises(KeyboardInterrupt):
            haulier.send([world], server.ticket, max_rate_bps=40_000_000, on_progress=interrupt)
        assert not (inbox / "world.bin").exists()
        haulier.send([world], server.ticket)
        *_, done = until_done(server)
        assert isinstance(done, Received.Done) and done.progress.resumed_bytes > 0, "it went on from there"
    assert (inbox / "world.bin").read_bytes() == world.read_bytes()


def test_what_progress_raises_ends_it(maps: Path, inbox: Path) -> None:
    def enough(_progress: Progress) -> None:
        raise LookupError("enough")

    with haulier.recv(inbox) as server:
        with pytest.raises(LookupError, match="enough"):
            haulier.send([maps], server.ticket, max_rate_bps=5_000_000, on_progress=enough)


def test_python_sends_to_the_program(program: str, maps: Path, inbox: Path) -> None:
    with started(program, "recv", "-o", str(inbox)) as (process, ticket):
        assert haulier.send([maps], ticket).files_done == 3
        assert process.wait(LIMIT_S) == 0
    same(maps, inbox / "maps")


def test_the_program_sends_to_python(program: str, maps: Path, inbox: Path) -> None:
    with haulier.recv(inbox) as server:
        command = [program, "send", str(maps), str(server.ticket), "--json"]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
        assert process.returncode == 0, process.stdout
        assert json.loads(process.stdout.splitlines()[-1])["files"] == 3
        assert len(until_done(server)) == 4
    same(maps, inbox / "maps")
