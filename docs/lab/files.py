#!/usr/bin/env python3
"""Files from disk to disk over the lab's links, by haulier and by others, each by its real program.

    files.py --lab DIR [--minutes 60] [-j 2]        what is missing in files.json: a run of each
    files.py --lab DIR --profiles ocean --sizes 1G --seeds 3 --peers haulier-ticket,scp-bbr
    files.py --lab DIR --breaks [--profiles mobile] outages and changes of address in the middle
    files.py --report                               the tables of docs/PERFORMANCE.md from files.json

DIR is a lab whose link emulator is built: `linkemu` in its release directory (or CARGO_TARGET_DIR's), and
`profiles.toml`. `haulier` is looked for on the PATH. Needs root, /dev/net/tun and iproute2; OpenSSH and rsync
are installed by apt and iroh by pip if they are not there, and what cannot be had is left out, and said.
(croc is in no registry of Debian 12, crates.io, PyPI or npm.)

A run is timed from just before the client's program is started to its end: with its start, its connection,
and whatever it does before it calls the file done (haulier and iroh verify it, haulier waits for the disk).
Afterwards the file is compared with the one that was served. The bytes are random: nothing is to be packed.
Bytes on the wire are the emulator's, with IP headers. The servers are started fresh and have never seen the
file; `haulier serve` has no tree of it.
"""
import argparse, filecmp, json, math, os, shutil, statistics, subprocess, sys, tempfile, threading, time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "files.json"
SERVER, CLIENT, MOVED, PORT = "10.77.0.1", "10.77.0.2", "10.77.0.3", 4016
PROFILES = ["fiber", "cable", "wifi", "mobile", "ocean", "bad", "awful", "bloat", "shallow", "burst"]
IROH = "iroh==0.35.0"  # The last with blobs in it for Python.
MIB, GIB = 1 << 20, 1 << 30
SLOWEST = 2  # Limits until another program is given up.
LONGEST_S = 600  # Links with a limit above this are left out at 1 GiB.
OUTAGE_S = 30
PACKET = 1440  # Bytes of a file in a packet of 1500, about.


def limit_s(link, size):
    """The lab's physical limit: a round trip, and the bytes in payloads of 1200 with losses replaced."""
    passed = link["rate_mbit"] * 1e6 * (1 - link.get("loss", 0))
    return link["rtt_ms"] / 1e3 + size * 8 * (1 + 28 / 1200) / passed


# The programs: each has what to start at the server, and at the client. They are called in the emulator's two
# network namespaces, with the run's directory, which has the file as `source/world.bin`.

def haulier_serve(run, *more):
    return ["haulier", "serve", f"{run}/source/world.bin", "--bind", f"{SERVER}:{PORT}", *more]


def haulier_fetch(run, ticket, *more):
    return ["haulier", "--json", "fetch", "--ticket-file", f"{run}/{ticket}", "-o", f"{run}/world.bin", *more]


def ticket_serve(run):
    return haulier_serve(run), "ticket"


def ticket_fetch(run):
    return haulier_fetch(run, "ticket")


def token_serve(run):
    key = f"{run}/key"
    subprocess.run(["haulier", "keygen", "--token", "-o", key], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["haulier", "token", "issue", "--token-key", key, "--client-id", "42", "--server",
                    f"{SERVER}:{PORT}", "--expires", "600", "--client-address", CLIENT, "-o", f"{run}/token"],
                   check=True, stdout=subprocess.DEVNULL)
    return haulier_serve(run, "--token-key", key, "--earlier-tokens"), PORT


def token_fetch(run):
    return haulier_fetch(run, "token")


def ssh_serve(run):
    os.makedirs("/run/sshd", exist_ok=True)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{run}/{key}"], check=True)
    options = {"HostKey": f"{run}/host", "AuthorizedKeysFile": f"{run}/user.pub", "StrictModes": "no",
               "PermitRootLogin": "yes", "UsePAM": "no", "PidFile": "none", "Subsystem": "sftp internal-sftp"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return [shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-f", "/dev/null", "-p", str(PORT), *words], PORT


def ssh_words(run):
    return ["-i", f"{run}/user", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
            "-o", "LogLevel=ERROR"]


def scp_fetch(run):
    return ["scp", "-q", "-P", str(PORT), *ssh_words(run), f"root@{SERVER}:{run}/source/world.bin",
            f"{run}/world.bin"]


def rsync_fetch(run):
    ssh = " ".join(["ssh", "-p", str(PORT), *ssh_words(run)])
    return ["rsync", "-e", ssh, f"root@{SERVER}:{run}/source/world.bin", f"{run}/world.bin"]


def iroh_serve(run):
    peer = [sys.executable, str(HERE / "iroh_peer.py")]
    return [*peer, "serve", f"{run}/source/world.bin", f"{run}/store", f"{SERVER}:{PORT}"], "ticket"


def iroh_fetch(run):
    peer = [sys.executable, str(HERE / "iroh_peer.py")]
    return [*peer, "fetch", f"{run}/ticket", f"{run}/client-store", f"{run}/world.bin"]


PEERS = {
    "haulier-ticket": (ticket_serve, ticket_fetch, None, "haulier"),
    "haulier-token": (token_serve, token_fetch, None, "haulier"),
    "scp": (ssh_serve, scp_fetch, "cubic", "sshd"),
    "scp-bbr": (ssh_serve, scp_fetch, "bbr", "sshd"),
    "rsync": (ssh_serve, rsync_fetch, "cubic", "rsync"),
    "rsync-bbr": (ssh_serve, rsync_fetch, "bbr", "rsync"),
    "iroh": (iroh_serve, iroh_fetch, None, "iroh"),
}


def choose_congestion_control(name):
    if name:
        Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text(name)


def serve(peer, run):
    """In the server's namespace: starts the program, and prints a line once it can be asked."""
    start, _, control, _ = PEERS[peer]
    choose_congestion_control(control)
    command, ready = start(run)
    Path(f"{run}/server.pid").write_text(str(os.getpid()))
    with open(f"{run}/server.log", "w") as log:
        # What it prints, if that is a ticket, is for the client.
        out = subprocess.PIPE if ready == "ticket" else log
        program = subprocess.Popen(command, stdout=out, stderr=log, text=True)
        if ready == "ticket":
            descriptor = os.open(f"{run}/ticket", os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(descriptor, program.stdout.readline().encode())
        else:
            time.sleep(1.5)
        print("ready", flush=True)
        program.wait()


def fetch(peer, run, size, breaks):
    """In the client's namespace: times the program, and prints what became of it as one line of JSON."""
    _, start, control, _ = PEERS[peer]
    choose_congestion_control(control)
    target, row = Path(f"{run}/world.bin"), {"bytes": size}
    with open(f"{run}/client.log", "w+") as log:
        started = time.monotonic()
        program = subprocess.Popen(start(run), stdout=log, stderr=subprocess.STDOUT)
        if breaks:
            row |= break_path(run, program, breaks)
        code = program.wait()
        row["total_ms"] = round((time.monotonic() - started) * 1e3, 1)
        log.seek(0)
        lines = log.read().splitlines()
    same = target.exists() and filecmp.cmp(f"{run}/source/world.bin", target, shallow=False)
    error = None if code == 0 else f"exit {code}: {' '.join(lines[-1:])}"[:120]
    row |= {"ok": code == 0 and same, "error": error}
    if peer.startswith("haulier") and lines:
        row |= {name: json.loads(lines[-1]).get(name) for name in ("connect_ms", "wire_bytes_in")}
    print(json.dumps(row), flush=True)


# Breaks in the middle of a file.

def in_server(run, *command):
    pid = Path(f"{run}/server.pid").read_text()
    subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *command], check=True)


def received():
    """The packets that have come to the client's sockets: the device also counts what is for no socket."""
    lines = Path("/proc/net/snmp").read_text().splitlines()
    rows = [dict(zip(names.split(), values.split())) for names, values in zip(lines[::2], lines[1::2])]
    return sum(int(row.get("InDatagrams", 0)) for row in rows if row.get("Udp:")) + \
        sum(int(row.get("InSegs", 0)) for row in rows if row.get("Tcp:"))


def drop_all(run, verb):
    """From now on, or until now, both ends' systems discard what the link delivers, without a word."""
    rule = ["ip", "rule", verb, "iif", "link0", "pref", "0", "blackhole"]
    in_client = lambda *command: subprocess.run(command, check=True)
    for where in (in_client, lambda *command: in_server(run, *command)):
        if verb == "add":
            # The system's own rule is asked first, or what is for this host would still come through.
            where("ip", "rule", "add", "pref", "10", "lookup", "local")
            where("ip", "rule", "del", "pref", "0")
        where(*rule)


def break_path(run, program, kind):
    """After a third of the file: a link that is away for a while, or another address of the client."""
    goal = os.path.getsize(f"{run}/source/world.bin") // PACKET // 3
    while received() < goal and program.poll() is None:
        time.sleep(0.05)
    if kind == "outage":
        drop_all(run, "add")
        time.sleep(OUTAGE_S)
        before = received()
        drop_all(run, "del")
    else:
        # In this order: a second address of a network goes with the first.
        subprocess.run(["ip", "addr", "del", f"{CLIENT}/24", "dev", "link0"], check=True)
        before = received()
        subprocess.run(["ip", "addr", "add", f"{MOVED}/24", "dev", "link0"], check=True)
    at = time.monotonic()
    while received() < before + 65536 // PACKET and program.poll() is None:
        time.sleep(0.005)
    return {"back_ms": round((time.monotonic() - at) * 1e3, 1)}


# The runs.

class Lab:
    def __init__(self, folder, work):
        self.profile_file = Path(folder) / "profiles.toml"
        self.links = tomllib.loads(self.profile_file.read_text())
        self.linkemu = Path(os.environ.get("CARGO_TARGET_DIR", Path(folder) / "target")) / "release/linkemu"
        self.work, self.lock = Path(work), threading.Lock()
        if not self.linkemu.exists():
            sys.exit(f"no {self.linkemu}: cargo build --release in {folder}, or set CARGO_TARGET_DIR")

    def world(self, size):
        """The file that is served: made once for a size."""
        path = self.work / f"world-{size}"
        with self.lock:
            if not path.exists():
                with open(path, "wb") as file:
                    for _ in range(size >> 20):
                        file.write(os.urandom(MIB))
        return path

    def run(self, peer, profile, size, seed, breaks=None):
        link, limit = self.links[profile], limit_s(self.links[profile], size)
        run = Path(tempfile.mkdtemp(prefix="run-", dir=self.work))
        (run / "source").mkdir()
        # A name of its own, so that no run finds what another one's server kept beside the file.
        os.link(self.world(size), run / "source/world.bin")
        me = f"{sys.executable} {HERE / 'files.py'}"
        timeout = SLOWEST * limit + 30 + (OUTAGE_S if breaks else 0)
        command = [self.linkemu, "--profiles", self.profile_file, "--profile", profile, "--seed", str(seed),
                   "--timeout", str(timeout), "--ready-ms", "60000", "--server", f"{me} serve {peer} {run}",
                   "--client", f"{me} fetch {peer} {run} {size} {breaks or ''}"]
        done = subprocess.run(command, capture_output=True, text=True)
        lines = done.stdout.splitlines()
        failed = {"ok": False, "error": done.stderr[-120:]}
        out = json.loads(lines[-1]) if done.returncode == 0 and lines else failed
        row = {"peer": peer, "profile": profile, "bytes": size, "seed": seed}
        row["limit_ms"] = round(limit * 1e3, 1)
        row |= {"breaks": breaks} if breaks else {}
        for name in ("ok", "total_ms", "connect_ms", "wire_bytes_in", "back_ms", "error"):
            if out.get(name) is not None:
                row[name] = out[name]
        if emulated := out.get("link"):
            down = emulated["s2c"]
            row |= {"sent": down["in_bytes"], "back": emulated["c2s"]["in_bytes"],
                    "drop_queue": down["drop_queue"], "drop_loss": down["drop_loss"],
                    "late_us": emulated["late_us"]["p99"], "device_drops": emulated["device_drops"]}
        if row["ok"]:
            shutil.rmtree(run)
        else:
            row["kept"] = str(run)
        return row | {"load": round(os.getloadavg()[0], 1)}


def key(row):
    return row["peer"], row["profile"], row["bytes"], row["seed"], row.get("breaks")


def save(path, rows):
    order = lambda r: (r.get("breaks") or "", r["bytes"], PROFILES.index(r["profile"]),
                       list(PEERS).index(r["peer"]), r["seed"])
    kept = [{k: v for k, v in row.items() if k != "kept"} for row in sorted(rows.values(), key=order)]
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in kept) + "\n]\n")


def allow_congestion_controls():
    """A namespace may choose only what the system allows everybody."""
    settings = Path("/proc/sys/net/ipv4")
    names = (settings / "tcp_allowed_congestion_control").read_text().split()
    there = (settings / "tcp_available_congestion_control").read_text().split()
    missing = [name for name in ("cubic", "bbr") if name not in there]
    if missing:
        print(f"this system has no {' nor '.join(missing)} for TCP: those peers will fail", file=sys.stderr)
    names += [name for name in ("cubic", "bbr") if name in there and name not in names]
    (settings / "tcp_allowed_congestion_control").write_text(" ".join(names))


def available():
    """The peers that can be run here; installs what a registry has, and says what is not to be had."""
    def install(what, command):
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            print(f"{what} cannot be installed here", file=sys.stderr)
    if not (shutil.which("sshd") or os.path.exists("/usr/sbin/sshd")) or not shutil.which("rsync"):
        get = "apt-get update && apt-get install -y --no-install-recommends openssh-server rsync"
        install("OpenSSH and rsync", ["sh", "-c", get])
    has_iroh = lambda: subprocess.run([sys.executable, "-c", "import iroh; iroh.BlobTicket"],
                                      stderr=subprocess.DEVNULL).returncode == 0
    if not has_iroh():
        install(IROH, [sys.executable, "-m", "pip", "install", "--break-system-packages", IROH])
    there = {"haulier": shutil.which("haulier"), "rsync": shutil.which("rsync"), "iroh": has_iroh(),
             "sshd": shutil.which("sshd") or os.path.exists("/usr/sbin/sshd")}
    for program in (name for name, is_there in there.items() if not is_there):
        print(f"left out: {program} is not there", file=sys.stderr)
    return [peer for peer, (*_, program) in PEERS.items() if there[program]]


def measure(a):
    sizes = [int(size[:-1]) * {"K": 1 << 10, "M": MIB, "G": GIB}[size[-1]] for size in a.sizes.split(",")]
    rows = {key(row): row for row in json.loads(a.out.read_text())} if a.out.exists() else {}
    with tempfile.TemporaryDirectory(prefix="haulier-files-", dir=a.work) as work:
        lab, there = Lab(a.lab, work), available()
        allow_congestion_controls()
        peers = [peer for peer in (a.peers.split(",") if a.peers else PEERS) if peer in there]
        kinds = ["outage", "move"] if a.breaks else [None]
        todo = [(peer, profile, size, seed, kind) for seed in range(1, a.seeds + 1) for size in sizes
                for profile in a.profiles.split(",") for peer in peers for kind in kinds
                if size < GIB or limit_s(lab.links[profile], size) <= LONGEST_S]
        todo = [run for run in todo if a.again or run not in rows]
        todo.sort(key=lambda run: (run[3], limit_s(lab.links[run[1]], run[2])))
        started, lock, count = time.monotonic(), threading.Lock(), len(todo)

        def worker():
            while True:
                left = a.minutes * 60 - (time.monotonic() - started)
                with lock:
                    # What may not end in time is not begun; ours take little more than a limit.
                    fits = lambda run: limit_s(lab.links[run[1]], run[2]) * 1.2 + 10 < left
                    run = next((run for run in todo if fits(run)), None)
                    if run is None:
                        return
                    todo.remove(run)
                row = lab.run(*run)
                with lock:
                    rows[key(row)] = row
                    save(a.out, rows)
                    failed = f"FAIL {row.get('error')}"
                    took = f"{row['total_ms'] / row['limit_ms']:6.3f} L" if row["ok"] else failed
                    wire = f"{row.get('sent', 0) / row['bytes']:.3f} of the file sent"
                    back = f", on after {row['back_ms']:.0f} ms" if "back_ms" in row else ""
                    what = f"{row['bytes'] >> 20} MiB {row['profile']:8} {row['peer']:15} seed {row['seed']}"
                    print(f"[{count - len(todo)}/{count} {time.monotonic() - started:5.0f}s] {what} "
                          f"{row.get('breaks') or ''} {took}, {wire}{back}, load {row['load']}", flush=True)

        threads = [threading.Thread(target=worker) for _ in range(a.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def report(path):
    rows = json.loads(path.read_text())
    for size in sorted({row["bytes"] for row in rows}):
        plain = [row for row in rows if row["bytes"] == size and not row.get("breaks")]
        profiles = [p for p in PROFILES if any(row["profile"] == p for row in plain)]
        if not plain:
            continue
        print(f"\n| {size // MIB} MiB, in L | " + " | ".join(profiles) + " |\n|---|" + "--:|" * len(profiles))
        limits = {row["profile"]: row["limit_ms"] / 1e3 for row in plain}
        print("| *L, s* | " + " | ".join(f"{limits[p]:.1f}" for p in profiles) + " |")
        for peer in (peer for peer in PEERS if any(row["peer"] == peer for row in plain)):
            cells, wire = [], []
            for profile in profiles:
                runs = [row for row in plain if (row["peer"], row["profile"]) == (peer, profile)]
                times = [row["total_ms"] / row["limit_ms"] if row["ok"] else math.inf for row in runs]
                middle = statistics.median_low(times) if times else None
                name = "-" if middle is None else f"over {SLOWEST}"
                cells.append(name if middle in (None, math.inf) else f"{middle:.3f}")
                sent = [row["sent"] / row["bytes"] for row in runs if row["ok"] and "sent" in row]
                wire.append(f"{statistics.median(sent):.3f}" if sent else "-")
            print(f"| {peer} | " + " | ".join(cells) + " |")
            print("| bytes sent / file | " + " | ".join(wire) + " |") if peer.startswith("haulier") else None
    broken = [row for row in rows if row.get("breaks")]
    if broken:
        print("\n| break | link | peer | on after ms | of the file sent | in all, s (L) |")
        print("|---|---|---|--:|--:|--:|")
    for row in broken:
        end = f"{row['total_ms'] / 1e3:.1f} ({row['limit_ms'] / 1e3:.1f})" if row["ok"] else "never"
        print(f"| {row['breaks']} | {row['profile']} | {row['peer']} | {row.get('back_ms', 0):.0f} | "
              f"{row.get('sent', 0) / row['bytes']:.3f} | {end} |")


def main():
    if sys.argv[1:2] == ["serve"]:
        return serve(*sys.argv[2:4])
    if sys.argv[1:2] == ["fetch"]:
        return fetch(*sys.argv[2:4], int(sys.argv[4]), (sys.argv[5:] or [None])[0])
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--lab")
    parser.add_argument("--profiles", default=",".join(PROFILES))
    parser.add_argument("--sizes", default="64M,1G")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--peers")
    parser.add_argument("--breaks", action="store_true")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begins nothing that would end later")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="runs at a time; 1 for the best timing")
    parser.add_argument("--again", action="store_true", help="also what is in the results already")
    parser.add_argument("--work", default="/var/tmp", help="where the files go: 2 GiB for each job")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true")
    a = parser.parse_args()
    report(a.out) if a.report else measure(a) if a.lab else parser.error("--lab DIR is needed")


main()
