"""What a client in Python costs beside one in Rust: the same work at the same server, in turns, in one run.

python python/bench/beside_rust.py [--rounds 15]

It needs the module as `pip install ./python` makes it, and cargo, which builds the client and the server in Rust
(`peer.rs`). Both clients are processes that are told to begin and say when they are done; between the two their
CPU time is read from outside, the same way for both. Linux, for that clock.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

from haulier import Client, Event

WORLD_BYTES = 64 << 20
MESSAGE = bytes([7]) * 64
MESSAGES = 20_000
AT_ONCE = 64
"""Messages that are sent before their answers are read."""

PYTHON = Path(__file__).parent.parent


def connect(address: str, request: bytes) -> Client:
    """A client, as the one in Rust."""
    return Client.connect(address, protocol_id=7, secret=bytes([7]) * 32, request=request)


def take_world(address: str) -> None:
    """Joins, and has the world."""
    client = connect(address, b"world")
    for event in client:
        if isinstance(event, Event.Block):
            assert len(event.data) == WORLD_BYTES
            return client.close()


def exchange_messages(address: str) -> None:
    """Sends messages and gets them back."""
    client = connect(address, b"")
    client.connected()
    received = 0
    for sent in range(1, MESSAGES + 1):
        client.send_message(MESSAGE)
        while (sent % AT_ONCE == 0 or sent == MESSAGES) and received < sent:
            event = client.wait(60)
            if isinstance(event, Event.Message):
                assert event.data == MESSAGE
                received += 1
    client.close()


def be_client(address: str) -> None:
    """For each line of the input that work."""
    print("ready", flush=True)
    for line in sys.stdin:
        {"world": take_world, "messages": exchange_messages}[line.strip()](address)
        print("done", flush=True)


class Took(NamedTuple):
    """What one piece of work took, in ms."""

    cpu_ms: float
    wall_ms: float


class Process:
    """A process that works when it is told to."""

    def __init__(self, command: List[str]) -> None:
        self._it = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        # What Linux calls the CPU clock of a process: `clock_getcpuclockid`.
        self._clock = (~self._it.pid << 3) | 2
        self.first_line = self.line()

    def line(self) -> str:
        """A line that it prints."""
        assert self._it.stdout is not None
        line = self._it.stdout.readline()
        assert line, "it ended: its error is above"
        return line.strip()

    def work(self, what: str) -> Took:
        """Has it do this."""
        assert self._it.stdin is not None
        cpu, wall = time.clock_gettime(self._clock), time.perf_counter()
        self._it.stdin.write(what + "\n")
        self._it.stdin.flush()
        assert self.line() == "done"
        wall = time.perf_counter() - wall
        return Took((time.clock_gettime(self._clock) - cpu) * 1e3, wall * 1e3)

    def end(self) -> None:
        """Ends it."""
        self._it.kill()
        self._it.wait()


def built_peer() -> str:
    """The program in Rust, in the profile of the wheel."""
    command = ["cargo", "build", "--release", "--locked", "--message-format", "json"]
    command += ["--manifest-path", str(PYTHON / "Cargo.toml"), "--example", "peer"]
    built = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    [line] = [line for line in built.splitlines() if '"executable":"' in line]
    return line.split('"executable":"')[1].split('"')[0]


def best_and_median(took: List[float]) -> Tuple[float, float]:
    """Of several runs."""
    took = sorted(took)
    return took[0], took[len(took) // 2]


def compare(clients: Dict[str, Process], what: str, rounds: int) -> None:
    """Has both do it in turns, and prints what it took."""
    took: Dict[str, List[Took]] = {name: [] for name in clients}
    for client in clients.values():
        client.work(what)  # what happens but once is not measured
    for _ in range(rounds):
        for name, client in clients.items():
            took[name].append(client.work(what))
    of = {"world": f"{WORLD_BYTES >> 20} MiB received", "messages": f"{MESSAGES} messages, and back"}
    print(f"{of[what]}, {rounds} times each:")
    for index, time_of in enumerate(("CPU of the client", "wall clock")):
        rust, python = (best_and_median([it[index] for it in took[name]]) for name in ("rust", "python"))
        for which, left, right in zip(("best", "median"), rust, python):
            row = f"  {time_of:<18}{which:<7} Rust {left:7.1f} ms  Python {right:7.1f} ms  {right / left:5.2f} times"
            each = f", {(right - left) * 1e3 / MESSAGES:.1f} us more each" if what == "messages" else ""
            print(row + each)


def main() -> None:
    """Compares, or is one of those that are compared."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--client", metavar="ADDRESS", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        return be_client(args.client)
    peer = built_peer()
    server = Process([peer, "serve"])
    address = server.first_line
    clients = {
        "rust": Process([peer, "client", address]),
        "python": Process([sys.executable, __file__, "--client", address]),
    }
    try:
        for what in ("world", "messages"):
            compare(clients, what, args.rounds)
    finally:
        for process in (server, *clients.values()):
            process.end()


if __name__ == "__main__":
    main()
