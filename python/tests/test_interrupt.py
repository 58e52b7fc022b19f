"""Ctrl-C ends each call that waits, with KeyboardInterrupt, and the program with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import LIMIT_S
from waits import CALLS

PROGRAM = Path(__file__).parent / "waits.py"


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_a_wait(name: str) -> None:
    """Without a look at signals it would last an hour."""
    command = [sys.executable, "-B", str(PROGRAM), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    assert line == "waiting\n", errors
    # It is the end of the wait: no other error came of it first, and the wait did not end by itself.
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert "haulier.errors." not in errors, errors
    assert process.returncode == -signal.SIGINT
