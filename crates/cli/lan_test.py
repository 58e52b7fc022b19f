"""`--lan` between two hosts that have nothing but a cable between them: network namespaces with a veth pair.

    unshare --net --uts --pid --fork --kill-child --mount-proc python3 lan_test.py PROGRAM

`cargo xtask ci` runs it so. The namespaces have no names and no files: they are gone with the processes in
them, and those with this one, however it ends.
"""

import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
MOST_SECONDS = 60
WIRES = {"link-local IPv6": "fe80::{}/64", "IPv4": "192.0.2.{}/24"}


class Host:
    """A network and a name of its own, for as long as a process that does nothing holds it."""

    def __init__(self, name):
        hold = f"hostname {name} && ip link set lo up && echo && exec cat"
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "sh", "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = str(self.holder.pid)
        assert self.holder.stdout.readline(), f"{name}: no namespace"

    def inside(self, *command):
        return ["nsenter", "--target", self.pid, "--net", "--uts", *command]

    def close(self):
        self.holder.stdin.close()
        self.holder.wait(MOST_SECONDS)


@contextlib.contextmanager
def hosts(address):
    """Two hosts with such addresses and no others. None is tried out first, which would take seconds."""
    kitchen, attic = Host("kitchen"), Host("attic")
    try:
        plug = ["link", "add", "name", "cable", "netns", kitchen.pid, "type", "veth"]
        run("ip", *plug, "peer", "name", "cable", "netns", attic.pid)
        for number, host in enumerate([kitchen, attic], 1):
            run(*host.inside("ip", "link", "set", "cable", "addrgenmode", "none", "up"))
            add = ["address", "add", address.format(number), "dev", "cable"]
            run(*host.inside("ip", *add, *(["nodad"] if ":" in address else [])))
        yield kitchen, attic
    finally:
        kitchen.close()
        attic.close()


def run(*command):
    subprocess.run(command, check=True, timeout=MOST_SECONDS)


class Server:
    """`haulier serve` at a host, until the end of the block; then it says goodbye."""

    def __init__(self, host, path, *arguments):
        command = host.inside(PROGRAM, "serve", path, "--json", *arguments)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def event(self, name):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == name:
                return event
        raise AssertionError(f"the server ended before it said {name}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(MOST_SECONDS) == 0, "the server did not end well"
        self.process.stdout.close()


def fetch(host, *arguments, code=0, **environment):
    """The events of a `haulier fetch` that ends with this code."""
    done = subprocess.run(
        host.inside(PROGRAM, "fetch", "--json", *arguments),
        stdout=subprocess.PIPE, text=True, timeout=MOST_SECONDS, env={**os.environ, **environment},
    )
    assert done.returncode == code, f"fetch {arguments}: {done.returncode}\n{done.stdout}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def servers(host, *arguments):
    return {server["name"]: server for server in fetch(host, "--lan", *arguments)[-1]["servers"]}


def bytes_of(host, folder, *arguments, **environment):
    """What is fetched there."""
    path = os.path.join(folder, "got")
    events = fetch(host, "--wait", "30", "-o", path, *arguments, **environment)
    with open(path, "rb") as file:
        content = file.read()
    os.remove(path)
    [found] = [event for event in events if event["event"] == "found"]
    return content, found


def not_found(host, folder):
    """What is said of a name that nobody has."""
    path = os.path.join(folder, "got")
    [*_, last] = fetch(host, "--lan=kitchen", "--open", "--wait", "1", "-o", path, code=3)
    assert last["kind"] == "no-answer" and not os.path.exists(path), last
    return last


def file(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as out:
        out.write(content)
    return path


def found(folder, wire, address):
    """A server is listed by the name of its host, found with and without a ticket, and gone when it ends."""
    world = os.urandom(300_000)
    path = file(folder, "world", world)
    with hosts(address) as (kitchen, attic):
        with Server(kitchen, path, "--open", "--lan") as server:
            assert server.event("announced")["name"] == "kitchen"
            content, where = bytes_of(attic, folder, "--lan=kitchen", "--open")
            assert content == world
            at = address.split("{")[0]
            assert all(at in text for text in where["addresses"]) and where["addresses"], where
            assert servers(attic)["kitchen"]["lets_in"] == "open"
        last = not_found(attic, folder)
        assert "started with --lan" in last["message"], last
        with Server(kitchen, path, "--lan=the one with a ticket") as server:
            ticket = server.event("listening")["ticket"]
            name = "--lan=the one with a ticket"
            assert bytes_of(attic, folder, name, HAULIER_TICKET=ticket)[0] == world
    print(f"lan: found over {wire}, with a ticket and without; gone when it ended")


def same_name(folder):
    """Of two servers of one name the second takes another, and each gives its own file."""
    first, second = file(folder, "first", b"the first"), file(folder, "second", b"the second")
    with hosts(WIRES["link-local IPv6"]) as (kitchen, attic):
        with Server(kitchen, first, "--open", "--lan=world") as one:
            one.event("announced")
            assert "world" in servers(attic)
            with Server(attic, second, "--open", "--lan=world") as other:
                # mDNS has asked for the name meanwhile.
                assert [other.event("announced")["name"] for _ in range(2)] == ["world", "world (2)"]
                assert set(servers(kitchen)) == {"world", "world (2)"}
                assert bytes_of(attic, folder, "--lan=world", "--open")[0] == b"the first"
                assert bytes_of(kitchen, folder, "--lan=world (2)", "--open")[0] == b"the second"
    print("lan: two servers of one name are told apart")


def nobody(folder):
    """Silence is said, with what may be the cause: exit code 1 for a list, 3 for one server."""
    with hosts(WIRES["link-local IPv6"]) as (_, attic):
        assert fetch(attic, "--lan", "--wait", "1", code=1)[-1]["kind"] == "negative"
        last = not_found(attic, folder)
        assert "5353" in last["message"], last
    print("lan: nobody there is said, and is exit code 1 for a list and 3 for a name")


def in_a_folder(test, *arguments):
    """A test with a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        test(folder, *arguments)


# Whoever waits longer than that waits for nothing.
signal.alarm(5 * MOST_SECONDS)
# Each is on its own network, and waits most of the time.
with concurrent.futures.ThreadPoolExecutor() as pool:
    tests = [pool.submit(in_a_folder, found, *wire) for wire in WIRES.items()]
    tests += [pool.submit(in_a_folder, test) for test in (same_name, nobody)]
for test in tests:
    test.result()
