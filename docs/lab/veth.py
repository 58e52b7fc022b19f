#!/usr/bin/env python3
"""Disk to disk beside memory to memory, over one veth pair between two network namespaces.

    cargo build --release -p haulier-cli && cargo build --release -p haulier --example synthetic
    sudo docs/lab/veth.py --gigabytes 10 --runs 3 [--json]

`memory` is a block of zeros from a source that provides it and a sink that drops it; `disk` is a sparse file
served by `haulier serve`, whose tree is known, and stored by `haulier fetch`; `first` is the same of a file
that was never served, whose tree is found out while it is sent. All are encrypted. They take turns; the last
lines have the best run of each, and its rate over that of the best of memory: only these say something on a
machine that does other work too.

Of each transfer: seconds from the start of the fetching program to its end, GB/s, CPU seconds and peak memory
of both programs, and bytes on the wire with all headers. CPU before the transfer (hashing, starting) does not
count. Nothing stays: namespaces, interfaces and files are removed at the end.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")
SERVER, CLIENT, PORT = "10.77.0.1", "10.77.0.2", 4016


def main():
    options = parse()
    if os.geteuid() != 0:
        sys.exit("veth.py makes network namespaces, which only root may: run it with sudo")
    if shutil.which("ip") is None:
        sys.exit("veth.py needs `ip`, of the package iproute2")
    for program in (options.haulier, options.synthetic):
        if not program.is_file():
            sys.exit(f"there is no {program}: the head of this file says how to build it")
    # So that what is below is cleaned up then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="haulier-veth-", dir=options.folder))
    try:
        with Wire(options.mtu) as wire:
            measure(options, wire, folder)
    finally:
        shutil.rmtree(folder)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release"
    parser.add_argument("--gigabytes", type=float, default=10, help="of 10^9 bytes (10)")
    parser.add_argument("--runs", type=int, default=3, help="of each kind (3)")
    parser.add_argument("--kinds", default="memory,disk,first", help="which of them")
    parser.add_argument("--data", type=float, default=0, help="share of the file that is no hole (0)")
    parser.add_argument("--mtu", type=int, default=1500, help="of the pair (1500)")
    parser.add_argument("--folder", default=".", help="where the files are for a while (.)")
    parser.add_argument("--haulier", type=pathlib.Path, default=target / "haulier")
    parser.add_argument("--synthetic", type=pathlib.Path, default=target / "examples/synthetic")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each transfer")
    return parser.parse_args()


class Wire:
    """Two namespaces with a cable between them."""

    def __init__(self, mtu):
        self.mtu = mtu
        self.spaces = [f"haulier-{end}-{os.getpid()}" for end in ("server", "client")]
        self.ends = [f"hl{end}{os.getpid()}" for end in ("s", "c")]

    def __enter__(self):
        try:
            for space in self.spaces:
                run("ip", "netns", "add", space)
            here, there = self.ends
            run("ip", "link", "add", here, "type", "veth", "peer", "name", there)
            for space, end, address in zip(self.spaces, self.ends, (SERVER, CLIENT)):
                run("ip", "link", "set", end, "netns", space)
                run("ip", "-n", space, "link", "set", end, "mtu", str(self.mtu))
                run("ip", "-n", space, "address", "add", f"{address}/24", "dev", end)
                run("ip", "-n", space, "link", "set", end, "up")
                run("ip", "-n", space, "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "delete", space], stderr=subprocess.DEVNULL)
        # If it got no further than that.
        subprocess.run(["ip", "link", "delete", self.ends[0]], stderr=subprocess.DEVNULL)

    def start(self, end, *command):
        """`ip netns exec` becomes the program: what is counted of it is the program's."""
        command = ["ip", "netns", "exec", self.spaces[end], *map(str, command)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def bytes(self):
        """What both ends have sent."""
        total = 0
        for space, end in zip(self.spaces, self.ends):
            shown = subprocess.run(
                ["ip", "-n", space, "-s", "-j", "link", "show", end],
                check=True,
                capture_output=True,
            )
            total += json.loads(shown.stdout)[0]["stats64"]["tx"]["bytes"]
        return total


def run(*command):
    subprocess.run(command, check=True)


def measure(options, wire, folder):
    size = int(options.gigabytes * 1e9)
    source = folder / "sparse"
    make(source, size, options.data)
    tree = folder / ".sparse.haulier-tree"
    kinds = options.kinds.split(",")
    if "disk" in kinds:
        learn(options, wire, source, tree)
        shutil.move(tree, folder / "tree")
    best = {}
    for _ in range(options.runs):
        for kind in kinds:
            tree.unlink(missing_ok=True)
            if kind == "disk":
                shutil.copy2(folder / "tree", tree)
            if kind == "memory":
                serve = wire.start(0, options.synthetic, "serve", f"{SERVER}:{PORT}", size)
            else:
                serve = start_serve(options, wire, source)
            try:
                ticket = ticket_of(serve)
                to = folder / "fetched"
                to.unlink(missing_ok=True)
                fetch = (options.synthetic, "fetch", ticket)
                if kind != "memory":
                    fetch = (options.haulier, "fetch", ticket, "-o", to, "--json")
                result = transfer(wire, serve, fetch, size)
            finally:
                stop(serve)
            result["kind"] = kind
            if kind != "memory":
                about = to.stat()
                result["stored_on_disk_bytes"] = about.st_blocks * 512
                assert about.st_size == size
            report(options, result)
            if kind not in best or best[kind]["seconds"] > result["seconds"]:
                best[kind] = result
    conclude(options, best)


def make(path, size, data):
    """A file of holes, and in each 16 MiB some data that zstd cannot pack."""
    some = os.urandom(1 << 20)
    with path.open("wb") as file:
        file.truncate(size)
        for place in range(0, size if data else 0, 16 << 20):
            file.seek(place)
            wanted = min(int(data * (16 << 20)), size - place)
            while wanted > 0:
                wanted -= file.write(some[:wanted])
        os.fsync(file.fileno())


def start_serve(options, wire, source):
    bind = f"{SERVER}:{PORT}"
    return wire.start(0, options.haulier, "serve", source, "--bind", bind, "--json")


def ticket_of(serve):
    """Waits for the line that has the ticket."""
    for line in serve.stdout:
        if line.startswith("{"):
            ticket = json.loads(line).get("ticket")
            if ticket:
                return ticket
        elif line.startswith("haulier1:"):
            return line.strip()
    sys.exit("the server has ended without a ticket")


def learn(options, wire, source, tree):
    """Has the file hashed, and its tree kept."""
    serve = start_serve(options, wire, source)
    try:
        while not tree.exists():
            if serve.poll() is not None:
                sys.exit("the server has ended before it has hashed the file")
            time.sleep(0.1)
    finally:
        stop(serve)


def stop(program):
    program.send_signal(signal.SIGINT)
    program.stdout.close()
    program.wait()


def transfer(wire, serve, fetch, size):
    wire_before, cpu_before = wire.bytes(), cpu_seconds(serve.pid)
    begun = time.monotonic()
    client = wire.start(1, *fetch)
    try:
        client.stdout.read()
    except BaseException:
        stop(client)
        raise
    _, status, usage = os.wait4(client.pid, 0)
    seconds = time.monotonic() - begun
    client.returncode = os.waitstatus_to_exitcode(status)
    if client.returncode != 0:
        sys.exit(f"{fetch[0]} failed")
    return {
        "seconds": seconds,
        "gigabytes_per_second": size / seconds / 1e9,
        "wire_bytes": wire.bytes() - wire_before,
        "server_cpu_seconds": cpu_seconds(serve.pid) - cpu_before,
        "client_cpu_seconds": usage.ru_utime + usage.ru_stime,
        "server_peak_bytes": peak_bytes(serve.pid),
        "client_peak_bytes": usage.ru_maxrss * 1024,
    }


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def report(options, result):
    if options.json:
        print(json.dumps(result), flush=True)
        return
    mib = 1 << 20
    stored = result.get("stored_on_disk_bytes")
    print(
        f"{result['kind']:>7} {result['seconds']:7.2f} s {result['gigabytes_per_second']:6.3f} GB/s"
        f"   CPU {result['server_cpu_seconds']:6.2f} + {result['client_cpu_seconds']:6.2f} s"
        f"   peak {result['server_peak_bytes'] / mib:5.1f} + {result['client_peak_bytes'] / mib:5.1f} MiB"
        f"   wire {result['wire_bytes'] / 1e9:.3f} GB"
        + ("" if stored is None else f"   stored in {stored / 1e6:.1f} MB"),
        flush=True,
    )


def conclude(options, best):
    if "memory" not in best:
        return
    memory = best["memory"]["seconds"]
    ratios = {kind: memory / result["seconds"] for kind, result in best.items()}
    if options.json:
        print(json.dumps({"of_memory": ratios}))
    else:
        for kind, ratio in ratios.items():
            print(f"{kind:>7}, the best of {options.runs}: {ratio:.2f} of memory's rate")


if __name__ == "__main__":
    main()
