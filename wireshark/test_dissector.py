#!/usr/bin/env python3
"""What Wireshark shows of a capture is what `haulier inspect` says of it.

    wireshark/test_dissector.py HAULIER HAULIER-LAB DIRECTORY

HAULIER and HAULIER-LAB are the programs, DIRECTORY is where captures are left. Captures are those of
simulated joins, of the golden and hostile bytes of `vectors/`, and of other protocols, which must not be
claimed. Each is read by both, and each field of each datagram compared. `cargo xtask ci --only wireshark`
runs this; it needs tshark.
"""

import json
import pathlib
import random
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent / "vectors"
LUA = HERE / "haulier.lua"
GOLDEN_ID = "0x1122334455667788"
# The port of the captures that are made here: only with a preference or `--port` is all on it haulier's.
PORT = 4017

PARAMETERS = [
    "idle_ms",
    "largest_block",
    "largest_datagram",
    "max_ack_delay_ms",
    "credit",
    "receive_buffer",
    "channels",
    "channel_bytes",
    "repair_codes",
    "announced_blocks",
]
SLICES = {"slice", "last_slice", "repair_slice"}
LISTS = [("ack", "ranges", "range"), ("ack", "delay_us", "delay_us"), ("arrivals", "arrivals", "arrival")]


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


def capture(path, payloads, ports=(PORT, 40000)):
    """A pcap of raw IP; each payload is of a connection of its own, by the client's address."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101))
        for number, payload in enumerate(payloads):
            addresses = bytes([10, 1, number >> 8 & 255, number & 255, 10, 2, 0, 1])
            head = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0) + addresses
            head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
            packet = head + struct.pack(">HHHH", ports[1], ports[0], 8 + len(payload), 0) + payload
            file.write(struct.pack("<IIII", number, 0, len(packet), len(packet)) + packet)


def run(command):
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode != 0:
        shown = " ".join(map(str, command))
        sys.exit(f"{shown}\nexited with {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
    return done.stdout


def inspected(program, path, *options):
    """What the program says: by the number of the packet, its datagrams."""
    lines = run([program, "inspect", "--json", "--pcap", path, *options]).splitlines()
    events = [json.loads(line) for line in lines]
    assert events[-1]["event"] == "done", events[-1]
    packets = {}
    for event in events[:-1]:
        packets.setdefault(event["packet"], []).append(event["datagram"])
    return packets, events[-1]


class Wireshark:
    """tshark with the dissector."""

    def __init__(self):
        tshark = ["tshark", "-X", f"lua_script:{LUA}"]
        known = [
            line.split("\t")
            for line in run(["tshark", "-G", "fields", *tshark[1:]]).splitlines()
            if line.startswith("F\t")
        ]
        ours = ("haulier.", "haulier_article.")
        self.fields = [field[2] for field in known if field[2].startswith(ours) and field[3] != "FT_NONE"]
        assert len(self.fields) > 100, self.fields
        self.tshark = tshark

    def read(self, path, *options):
        """What it shows: by the number of the packet, its fields, each a list."""
        command = self.tshark + [
            "-r",
            path,
            "-T",
            "fields",
            "-E",
            "occurrence=a",
            "-E",
            "separator=/t",
            "-E",
            "aggregator=;",
        ]
        for name in ["frame.number", "_ws.lua.text", "_ws.expert.message"] + self.fields:
            command += ["-e", name]
        for option in options:
            command += ["-o", option]
        packets = {}
        for line in run(command).removesuffix("\n").split("\n"):
            number, lua, expert, *values = line.split("\t")
            assert not lua and "Lua Error" not in expert, f"{path}, packet {number}: {lua} {expert}"
            shown = {name: value.split(";") for name, value in zip(self.fields, values) if value}
            packets[int(number)] = shown
        return packets


def text(value):
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)


def is_plain(reason):
    """Of other reasons tshark shows escapes and replacements, inspect the part that is UTF-8."""
    return 0 < len(reason) < 200 and reason.isascii() and reason.isprintable() and ";" not in reason


def frame_fields(frame):
    kind = frame["frame"]
    prefix = "haulier.frame." + ("slice" if kind in SLICES else kind) + "."
    if kind == "ack":
        yield prefix + "largest", text(frame["largest"])
        if frame["delay_us"] is not None:
            yield prefix + "delay_us", text(frame["delay_us"])
        for low, high in frame["ranges"]:
            yield prefix + "range", f"{low}-{high}"
        for name, count in frame.get("ecn", {}).items():
            yield prefix + name, text(count)
        return
    if kind == "arrivals":
        for number, micros in frame["arrivals"]:
            yield prefix + "arrival", f"{number} at {micros} us"
        return
    for name, value in frame.items():
        if name == "frame" or value is None:
            continue
        if kind == "progress" and name == "blocks":
            for entry in value:
                for part, number in entry.items():
                    yield prefix + part, text(number)
        elif kind == "hashes" and name == "values":
            for digest in value:
                yield prefix + "value", digest
        elif kind == "block" and name == "tag":
            yield prefix + name, f"0x{value:016x}"
        elif kind == "close" and name == "reason" and not is_plain(value):
            continue
        elif name == "bytes" and value == "":
            continue
        else:
            yield prefix + name, text(value)


def haulier_fields(said):
    """The fields that Wireshark should show of a datagram of haulier/1."""
    if not said["ok"]:
        yield "haulier.drop", said["drop"]
        return
    kind = said["packet"]
    yield "haulier.kind", kind
    names = {
        "request": ["mode", "identity", "cookie", "token_key", "sealed_bytes"],
        "retry": ["to", "cookie"],
        "refusal": ["to", "reason"],
        "in_line": ["to", "place", "again_ms"],
        "response": ["to", "number", "sealed_bytes", "sender"],
        "reset": [],
        "data": ["to", "phase", "number", "sealed_bytes", "sender"],
    }[kind]
    for name in names:
        if said.get(name) is not None:
            yield "haulier." + name, text(said[name])
    if kind == "request":
        yield "haulier.client_id", said["from"]
    if kind == "data":
        yield "haulier.direction", said["from"]
    if kind == "response" and "from" in said:
        yield "haulier.server_id", said["from"]
    if kind == "reset":
        yield "haulier.reset_token", said["token"]
    if kind == "in_line":
        yield "haulier.estimate_ms", text(
            0xFFFFFFFF if said["estimate_ms"] is None else said["estimate_ms"]
        )
    if "check" in said:
        yield "haulier.check_is", said["check"]
    for version in said.get("versions", []):
        yield "haulier.versions", text(version)
    for name in PARAMETERS:
        if name in said:
            value = f"0x{said[name]:016x}" if name == "repair_codes" else text(said[name])
            yield "haulier." + name, value
    for root in said.get("roots_here", []):
        yield "haulier.roots_here", root
    for frame in said.get("frames", []):
        yield "haulier.frame", frame["frame"]
        yield from frame_fields(frame)


def article_fields(said):
    if not said["ok"]:
        yield "haulier_article.drop", said["drop"]
        return
    for name, value in said.items():
        if name in ("ok", "wire") or value is None:
            continue
        if name in ("acks", "acked"):
            for number in value:
                yield "haulier_article.acked", text(number)
        elif name == "ack_bits":
            yield "haulier_article.ack_bits", f"0x{value:08x}"
        else:
            yield "haulier_article." + name, text(value)


# Fields that say the same in another way, or lie within others.
BESIDE = {"haulier.frame.type", "haulier.frame.data"}


def compare(name, said, shown, same_reasons=True):
    """Each field that the program says is shown, in its order, and no other field of a frame. What is
    wrong in several ways may be dropped for another of them, unless it has to have the same reasons."""
    fields = 0
    for number in sorted(set(said) | {number for number, packet in shown.items() if packet}):
        datagrams = said.get(number, [])
        expected = {}
        for datagram in datagrams:
            of = (
                article_fields
                if datagram.get("wire") == "article" or "layer" in datagram
                else haulier_fields
            )
            for field, value in of(datagram):
                expected.setdefault(field, []).append(value)
        found = shown.get(number, {})
        where = f"{name}, packet {number}"
        if not datagrams:
            sys.exit(f"{where}: Wireshark shows what inspect takes for nothing: {found}")
        for field, values in expected.items():
            got = found.get(field, [])
            got = [{"True": "1", "False": "0"}.get(value, value) for value in got]
            if field.endswith(".drop") and not same_reasons and len(got) == len(values):
                continue
            if got != values:
                sys.exit(f"{where}: {field} is {values} by inspect, {got} by Wireshark\n{datagrams}")
            fields += len(values)
        # Numbers below 0 are of a connection that has sent 2^32, or of none: inspect shows none of them.
        frames = [frame for datagram in datagrams for frame in datagram.get("frames", [])]
        unsaid = {"haulier.frame.close.reason"} | {
            f"haulier.frame.{kind}.{one}"
            for kind, many, one in LISTS
            for frame in frames
            if frame.get(many, 0) in ([], None)
        }
        if all(datagram["ok"] for datagram in datagrams):
            more = [
                field for field in found if field.startswith("haulier.frame") and field not in expected
            ]
            more = [field for field in more if field not in BESIDE | unsaid]
            if "haulier.drop" in found or "haulier_article.drop" in found or more:
                sys.exit(f"{where}: Wireshark shows more: {more} {found}\n{datagrams}")
    print(f"{name}: {len(said)} packets, {fields} fields are the same")
    return fields


def golden():
    """Each datagram of the vectors of haulier/1, and broken and unknown frames in right datagrams."""
    rows = json.loads((VECTORS / "haulier1.json").read_text())
    kinds = [
        "requests",
        "broken_requests",
        "responses",
        "data",
        "retries",
        "refusals",
        "in_lines",
        "version_answers",
        "resets",
    ]
    datagrams = [bytes.fromhex(row["hex"]) for kind in kinds for row in rows[kind]]
    for row in rows["frames"] + rows["broken_frames"]:
        datagrams.append(in_mode_open(bytes.fromhex(row["hex"])))
    for row in rows["hellos"] + rows["broken_parameters"]:
        datagrams.append(request_of(bytes.fromhex(row["hex"])))
    return datagrams


def all_hex(value):
    """The bytes of every "hex" in the vectors, which have it in lists of several forms."""
    if isinstance(value, dict):
        if isinstance(value.get("hex"), str):
            yield bytes.fromhex(value["hex"])
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from all_hex(inner)


def crc(data):
    import zlib

    return struct.pack("<I", zlib.crc32(struct.pack("<Q", int(GOLDEN_ID, 16)) + data))


def in_mode_open(frames):
    head = b"\x0e" + bytes(range(8)) + struct.pack("<I", 77) + frames + b"ABCDEFGH"
    return head + crc(head)


def request_of(hello):
    head = (
        b"\x04" + struct.pack("<I", 1) + b"abcdefgh" + struct.pack("<BBHH", 0, 0, 0, len(hello)) + hello
    )
    head += b"\x55" * (1184 - len(head))
    return head + crc(head) + bytes(12)


def mutated(datagrams, count):
    """The same with damage: most are of no wire any more, and none is an error of the script."""
    draw = random.Random(7)
    for _ in range(count):
        datagram = bytearray(draw.choice(datagrams))
        for _ in range(draw.randint(1, 3)):
            if datagram:
                datagram[draw.randrange(len(datagram))] = draw.randrange(256)
        cut = draw.randint(0, len(datagram)) if draw.random() < 0.5 else len(datagram)
        yield bytes(datagram[:cut])


def damaged_frames(count):
    """Random frames behind right tags: what a reader of frames has to survive."""
    draw = random.Random(8)
    for _ in range(count):
        kind = draw.choice(list(range(25)) + [64, 96, 127, 128, 255])
        body = bytes(
            draw.choice([0, 1, 2, 3, 8, 31, 64, 128, draw.randrange(256)])
            for _ in range(draw.randint(0, 48))
        )
        yield in_mode_open(draw.choice([b"", b"\0\0\1"]) + bytes([kind]) + body)


def foreign():
    """Other protocols, with first bytes like ours too."""
    draw = random.Random(9)
    dns = [
        struct.pack(">HHHHHH", id, 0x0100, 1, 0, 0, 0) + b"\x07example\x03org\0\0\1\0\1"
        for id in range(0x0400, 0x0F01, 37)
    ]
    quic = [bytes([0xC0 | low]) + struct.pack(">IB", 1, 8) + draw.randbytes(1194) for low in range(4)]
    rtp = [struct.pack(">BBHII", 0x80, 96, n, n * 160, 7) + draw.randbytes(160) for n in range(8)]
    stun = [struct.pack(">HHI", 1, 8, 0x2112A442) + draw.randbytes(20)]
    noise = [
        bytes([first]) + draw.randbytes(size - 1) for first in range(256) for size in (17, 29, 64, 1200)
    ]
    return dns + quic + rtp + stun + noise + [b""]


def main():
    program, lab, directory = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    directory.mkdir(parents=True, exist_ok=True)
    wireshark = Wireshark()

    scene = "senders=haulier,article&bytes=96k&loss=4&seed=3"
    joins = {"open": [], "sealed": ["--sealed"]}
    for name, options in joins.items():
        path = directory / f"{name}.pcap"
        run([lab, "playground", "--scene", scene, "--pcap", path, *options])
        said, done = inspected(program, path)
        shown = wireshark.read(path)
        assert compare(name, said, shown) > 1000
        responses = [packet for packet in shown.values() if packet.get("haulier.kind") == ["response"]]
        assert responses and all(
            packet["haulier.response_to"] == ["1"] for packet in responses
        ), responses
        assert done["kinds"]["slice"]["datagrams"] > 90, done

    sealed, keys, path = [directory / name for name in ("keyed.pcap", "keys", "opened.pcap")]
    sealing = ["--pcap", sealed, "--sealed", "--keylog", keys]
    run([lab, "playground", "--scene", scene, *sealing])
    _, done = inspected(program, sealed, "--keylog", keys, "--write", path)
    assert done["opened"] > 100 and done["no_key"] + done["wrong_key"] == 0, done
    shown = wireshark.read(path)
    assert compare("opened", inspected(program, path)[0], shown) > 3000
    assert any("repair_slice" in packet.get("haulier.frame", []) for packet in shown.values())

    path = directory / "golden.pcap"
    datagrams = golden()
    capture(path, datagrams)
    options = ["--wire", "haulier1", "--protocol-id", GOLDEN_ID, "--port", str(PORT)]
    preferences = [f"haulier.protocol_ids:{GOLDEN_ID}", f"haulier.ports:{PORT}"]
    assert (
        compare("golden", inspected(program, path, *options)[0], wireshark.read(path, *preferences))
        > 2500
    )

    path = directory / "hostile.pcap"
    capture(path, [*mutated(datagrams, 3000), *damaged_frames(3000)])
    compare(
        "hostile",
        inspected(program, path, *options)[0],
        wireshark.read(path, *preferences),
        same_reasons=False,
    )

    path = directory / "article.pcap"
    files = ["slices", "acks", "fragments", "reliable_acks", "packets", "malformed"]
    datagrams = [
        datagram
        for file in files
        for datagram in all_hex(json.loads((VECTORS / f"{file}.json").read_text()))
    ]
    capture(path, [datagram for datagram in datagrams if 5 <= len(datagram) <= 1200])
    said = inspected(program, path, "--wire", "article")[0]
    assert compare("article", said, wireshark.read(path), same_reasons=False) > 1000

    path = directory / "foreign.pcap"
    capture(path, foreign())
    said, done = inspected(program, path)
    assert not said and done["neither"]["datagrams"] == len(foreign()), done
    assert not any(wireshark.read(path).values())
    print(f"foreign: {done['neither']['datagrams']} datagrams are not claimed")


if __name__ == "__main__":
    main()
