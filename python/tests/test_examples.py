"""The examples run as people run them."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import haulier
from conftest import LIMIT_S, PROTOCOL_ID, until
from haulier import Block, Client, CloseCode, ConnectionConfig, Event, Server

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(example: str, *arguments: str) -> str:
    """What an example prints."""
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_bot_joins_and_plays() -> None:
    command = [sys.executable, str(EXAMPLES / "join.py"), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ticket = server.stdout.readline().strip()
            printed = run("join.py", ticket, "alice")
            assert "the world: 100 %, 5120000 bytes" in printed and "heard: welcome" in printed
            percents = [int(it) for it in re.findall(r"the world: (\d+) %", printed)]
            assert percents == sorted(set(percents)), "each is printed once"
            assert "alice is here" in server.stdout.readline()
            assert server.stdout.readline() == "a player has left\n"
        finally:
            server.kill()


def is_turned_away(ticket: str, why: str) -> None:
    """A client that takes no world: it is closed, with the reason."""
    client = Client.connect(ticket, config=ConnectionConfig(max_block_bytes=1000))
    closed = until(client, lambda event: isinstance(event, Event.Closed))
    assert isinstance(closed, Event.Closed) and closed.code == CloseCode.NOT_ACCEPTED
    assert why in closed.reason


def test_one_player_who_takes_no_world_does_not_end_the_game_of_others() -> None:
    command = [sys.executable, str(EXAMPLES / "join.py"), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ticket = server.stdout.readline().strip()
            is_turned_away(ticket, "larger than your max_block_bytes")
            assert "a player is gone: closed here: not accepted" in server.stdout.readline()
            assert "heard: welcome" in run("join.py", ticket, "bob")
        finally:
            server.kill()


def test_one_client_who_takes_no_world_does_not_end_a_load_test() -> None:
    spec = importlib.util.spec_from_file_location("load", EXAMPLES / "load.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    async def joins(server: Server) -> float:
        serving = asyncio.ensure_future(example.serve(server, Block(1, bytes(100_000))))
        ticket = str(server.ticket())
        why = "larger than the 1000 bytes"
        await asyncio.get_running_loop().run_in_executor(None, is_turned_away, ticket, why)
        took: float = await asyncio.wait_for(example.join(ticket), LIMIT_S)
        serving.cancel()
        return took

    with Server.bind("127.0.0.1:0", PROTOCOL_ID) as server:
        assert asyncio.run(joins(server)) > 0


def test_a_hundred_clients_join() -> None:
    printed = run("load.py", "--clients", "100")
    assert re.match(r"100 clients have joined: half within [\d.]+ s", printed), printed


def test_a_tool_fetches(tmp_path: Path) -> None:
    (tmp_path / "world.bin").write_bytes(os.urandom(500_000))
    with haulier.serve([tmp_path / "world.bin"]) as server:
        printed = run("fetch.py", str(server.ticket), str(tmp_path / "into"))
    assert "1 files: 500000 bytes came, 0 were here" in printed
    assert (tmp_path / "into" / "world.bin").stat().st_size == 500_000


def test_a_tool_sends(tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "log.txt").write_text("log")
    command = [sys.executable, str(EXAMPLES / "send.py"), "--into", str(tmp_path / "inbox")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as taker:
        try:
            assert taker.stdout is not None
            ticket = taker.stdout.readline().strip()
            printed = run("send.py", str(tmp_path / "log.txt"), ticket)
            assert printed == "1 files are stored there: 3 bytes\n"
            assert taker.stdout.readline() == "log.txt: 3 bytes\n"
        finally:
            taker.kill()
    assert (tmp_path / "inbox" / "log.txt").read_text() == "log"


def test_a_soak() -> None:
    printed = run("soak.py", "20", "3")
    assert printed.endswith("0 hangs, 0 mismatches\n"), printed
