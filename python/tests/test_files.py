"""Files from disk to disk, and the program at the other end."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import haulier
from conftest import LIMIT_S, maps, program, same, started
from haulier import Progress

__all__ = ["maps", "program"]


def test_a_directory_is_served_and_fetched(maps: Path, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    told: list[Progress] = []
    with haulier.serve([maps]) as server:
        done = haulier.fetch(server.ticket, into, on_progress=told.append)
        assert (done.files_done, done.files) == (3, 3)
        assert done.verified_bytes == done.wanted_bytes == 1_503_005
        again = haulier.fetch(str(server.ticket), into)
        assert again.here_bytes == 1_503_005, "what is here is not fetched again"
    same(maps, into / "maps")


def test_only_what_is_asked_for(maps: Path, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    with haulier.serve([maps]) as server:
        done = haulier.fetch(server.ticket, into, name="maps/a", only=["**/*.map"])
        assert done.files == 1
        with pytest.raises(haulier.UsageError):
            haulier.fetch(server.ticket, into, only=["["])


def test_another_file_is_kept_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    world = tmp_path / "world.bin"
    world.write_bytes(b"new" * 1000)
    mine = tmp_path / "mine.bin"
    mine.write_bytes(b"old")
    with haulier.serve([world]) as server:
        with pytest.raises(haulier.IoError):
            haulier.fetch(server.ticket, mine)
        assert mine.read_bytes() == b"old"
        haulier.fetch(server.ticket, mine, replace=True)
    assert mine.read_bytes() == world.read_bytes()


def test_one_path_is_served_without_a_list(maps: Path, tmp_path: Path) -> None:
    for path in (maps, str(maps)):
        with haulier.serve(path) as server:
            assert haulier.fetch(server.ticket, tmp_path / "into").files == 3
    (tmp_path / "inbox").mkdir()
    with haulier.recv(tmp_path / "inbox") as inbox:
        assert haulier.send(str(maps), inbox.ticket).files_done == 3
    with pytest.raises(TypeError, match="a path is needed, or a list of paths, not int"):
        haulier.serve(7)  # type: ignore[arg-type]


def test_what_cannot_be_served(tmp_path: Path) -> None:
    with pytest.raises(haulier.IoError, match="nowhere"):
        haulier.serve([tmp_path / "nowhere"])
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for folder in "ab":
        (tmp_path / folder / "x").write_bytes(b"x")
    with pytest.raises(haulier.UsageError, match="called x"):
        haulier.serve([tmp_path / "a" / "x", tmp_path / "b" / "x"])


def test_ctrl_c_ends_a_fetch_and_what_came_is_kept(tmp_path: Path) -> None:
    world = tmp_path / "world.bin"
    world.write_bytes(os.urandom(8_000_000))
    into = tmp_path / "into"
    into.mkdir()

    def interrupt(progress: Progress) -> None:
        if progress.verified_bytes > 1_000_000:
            os.kill(os.getpid(), signal.SIGINT)

    with haulier.serve([world], max_rate_bps=40_000_000) as server:
        with pytest.raises(KeyboardInterrupt):
            haulier.fetch(server.ticket, into, on_progress=interrupt)
        assert not (into / "world.bin").exists()
    with haulier.serve([world]) as server:
        done = haulier.fetch(server.ticket, into)
        assert done.resumed_bytes > 0, "it went on from there"
    same_world = (into / "world.bin").read_bytes() == world.read_bytes()
    assert same_world


def test_what_progress_raises_ends_a_fetch(maps: Path, tmp_path: Path) -> None:
    def enough(_progress: Progress) -> None:
        raise LookupError("enough")

    with haulier.serve([maps], max_rate_bps=5_000_000) as server:
        with pytest.raises(LookupError, match="enough"):
            haulier.fetch(server.ticket, tmp_path / "x", name="maps/one.map", on_progress=enough)


def test_python_fetches_from_the_program(program: str, maps: Path, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    with started(program, "serve", str(maps), "--once") as (process, ticket):
        done = haulier.fetch(ticket, into)
        assert done.files == 3
        assert process.wait(LIMIT_S) == 0
    same(maps, into / "maps")


def test_the_program_fetches_from_python(program: str, maps: Path, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    with haulier.serve([maps]) as server:
        command = [program, "fetch", str(server.ticket), "-o", str(into), "--json"]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    assert process.returncode == 0, process.stdout
    same(maps, into / "maps")


def test_a_program_that_serves_files_speaks_to_a_client_of_python(program: str, maps: Path) -> None:
    """A plain client, with a request that is none for files: the program says why it ends."""
    with started(program, "serve", str(maps)) as (process, ticket):
        client = haulier.Client.connect(ticket, request=b"let me play")
        client.connected(LIMIT_S)
        closed = [event for event in client if isinstance(event, haulier.Event.Closed)]
        assert [event.kind for event in closed] == ["closed"]
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 0


def test_what_is_said_to_be_sent_has_arrived(tmp_path: Path) -> None:
    """Of a small file at a low rate all was said to be there at once."""
    (tmp_path / "inbox").mkdir()
    (tmp_path / "small").write_bytes(os.urandom(200_000))
    told: list[int] = []
    with haulier.recv(tmp_path / "inbox") as inbox:
        done = haulier.send(
            tmp_path / "small",
            inbox.ticket,
            max_rate_bps=2_000_000,
            on_progress=lambda progress: told.append(progress.verified_bytes),
        )
    assert done.verified_bytes == 200_000
    assert any(0 < it < 200_000 for it in told), told
