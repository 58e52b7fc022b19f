"""The examples run as people run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import haulier
from conftest import LIMIT_S

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
            assert "the world has 5120000 bytes" in printed and "heard: welcome" in printed
            assert "alice is here" in server.stdout.readline()
            assert "left: closed by the peer: done" in server.stdout.readline()
        finally:
            server.kill()


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
