"""Rows for section 8: requests, offers, tags of blocks, messages and recipes, and what is none."""

from typing import Any, Callable, Dict, List

import files
from draw import draw
from frames import wide
from wire import Refused, varint

Row = Dict[str, Any]

ROOT = draw("root of a file", 32)


def entry(path: str, kind: int = files.SIZED, size: int = 0, modified_ns: int = 0, mode: str = "0666") -> Row:
    row: Row = {"path": path, "kind": kind, "mode": mode, "modified_ns": modified_ns}
    if kind in (files.KNOWN, files.SIZED):
        row["size"] = size
    if kind == files.KNOWN:
        row["root"] = ROOT
    return row


OFFERS = {
    "nothing": [],
    "one file": [entry("world.bin", files.KNOWN, 1 << 30, 1_790_000_000_123_456_789)],
    "every kind": [
        entry("void", files.DIRECTORY),
        entry("bin/run", files.KNOWN, 3, -1, mode="0777"),
        entry("maps/.keep", files.SIZED, 0, -(2**63)),
        entry("maps/Straße.map", files.SIZED, 1 << 50, 2**63 - 1),
        entry("log", files.PIPE),
    ],
    "modes": [entry(f"m{m}", size=1, mode=m) for m in ("0400", "0444", "0600", "0640", "0664", "0700", "0755")],
    "names that are nearly others": [entry(p) for p in ("a", "a.b", "a-b", "b/a", "console", "comb", "dir/a")],
    "thirty-two parts": [entry("/".join("a" * 32))],
}
PATHS = ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", ".a", "-a", " a", "a ", "a.", "a/b.", "a/..b"]
PATHS += ["a:b", "a\\b", "a*", "a?", 'a"', "<a", ">a", "a|b", "a\0", "a\n", "\x7f", "\x85", "NUL", "nul.txt", "a/com1", "LPT9 .x"]
PATHS += ["COM¹", "CONIN$", "a\u202eb", "\ufeffa", "a\u00adb", "u\u0308", "a.haulier-part", "a/.b.HAULIER-TREE", "x" * 256]
PATHS += ["/".join("a" * 33), "/".join(["x" * 200] * 6)]
COLLISIONS = [("a", "a"), ("a", "A"), ("a/b", "A/c"), ("a", "a/b"), ("A", "a/b"), ("straße", "STRASSE"), ("é", "É"), ("σ", "ς")]

MESSAGES: Dict[str, Row] = {
    "offer": {"kind": "offer", "list": files.write_offer(OFFERS["one file"])},
    "go": {"kind": "go", "accepts_packed": False},
    "go, packed": {"kind": "go", "accepts_packed": True},
    "want any": {"kind": "want", "number": 1, "file": 0, "form": "any", "ranges": []},
    "want some": {"kind": "want", "number": 64, "file": 999_999, "form": "any", "ranges": [(0, 1), (7, 2**30)]},
    "want whole": {"kind": "want", "number": 2**32 - 1, "file": 3, "form": "whole", "ranges": []},
    "want recipe": {"kind": "want", "number": 2, "file": 3, "form": "recipe", "ranges": []},
    "want pieces": {"kind": "want", "number": 3, "file": 3, "form": "pieces", "ranges": [(3, 5), (90, 97)]},
    "end": {"kind": "end", "file": 3, "length": 1 << 50, "root": ROOT},
    "stored": {"kind": "stored", "file": 3},
    "refused": {"kind": "refused", "file": 3, "reason": 5, "text": ""},
    "failed": {"kind": "failed", "file": 3, "reason": 1, "text": "geändert"},
    "done": {"kind": "done"},
}
TAGS = [("offer", 0, 0, 0), ("whole", 5, 2, 0), ("whole", 0, 2**32 - 1, 0), ("part", 0, 0, 0), ("part", 7, 1025, 3 << 20)]
TAGS += [("packed", 999_999, 1023, (1 << 50) - (1 << 20)), ("recipe", 1, 9, 0), ("pieces", 1, 10, 0)]


def shown(values: Row) -> Row:
    """Bytes as hex, and numbers that may be above 2^32 as text."""
    made: Row = {}
    for name, value in values.items():
        if isinstance(value, bytes):
            made[name] = value.hex()
        elif name in ("size", "length", "offset", "reason"):
            made[name] = wide(value)
        elif name == "modified_ns":
            made[name] = str(value)
        else:
            made[name] = value
    return made


def requests() -> List[Row]:
    rows = []
    for verb, packed, name in (("get", False, ""), ("get", True, "world.bin"), ("open", True, "maps/ä"), ("open", False, "x" * 394), ("put", False, "")):
        data = files.write_request(verb, packed, name)
        assert files.read_request(data) == (verb, packed, name)
        rows.append({"verb": verb, "accepts_packed": packed, "name": name, "hex": data.hex()})
    return rows


def offers() -> List[Row]:
    rows = []
    for name, entries in OFFERS.items():
        data = files.write_offer(entries)
        assert files.read_offer(data) == entries, name
        rows.append({"name": name, "entries": [shown(entry) for entry in entries], "hex": data.hex()})
    return rows


def tags() -> List[Row]:
    rows = []
    for kind, file, want, offset in TAGS:
        tag = files.write_tag(kind, file, want, offset)
        read = files.read_tag(tag)
        assert read["kind"] == kind and read["offset"] == offset
        rows.append({**shown(read), "tag": wide(tag)})
    return rows


def messages() -> List[Row]:
    rows = []
    for name, message in MESSAGES.items():
        data = files.write_message(message)
        assert files.read_message(data) == message, name
        rows.append({"name": name, "message": shown(message), "hex": data.hex()})
    return rows


def refusal(name: str, data: bytes, read: Callable[[bytes], Any], reason: str) -> Row:
    try:
        read(data)
    except Refused as refused:
        assert refused.reason == reason, (name, refused)
        return {"name": name, "hex": data.hex(), "reason": reason}
    raise AssertionError(f"{name} was read")


def broken() -> List[Row]:
    """Of everything, with what it would be in `in`."""
    rows: List[Row] = []

    def add(of: str, name: str, data: bytes, reason: str) -> None:
        read = {"request": files.read_request, "offer": files.read_offer, "message": files.read_message}[of]
        rows.append({"in": of, **refusal(name, data, read, reason)})

    for name, data in (("of version 1", b"HLF1\1a"), ("no verb", b"HLF2\0\0"), ("verb 4", b"HLF2\4\0"), ("flags", b"HLF2\1\2")):
        add("request", name, data, "out_of_range")
    for name, data in (("put with a name", b"HLF2\3\0a"), ("not UTF-8", b"HLF2\1\0\xff"), ("long", b"HLF2\1\0" + b"x" * 395)):
        add("request", name, data, "out_of_range")
    add("request", "cut off", b"HLF2\1", "truncated")
    for path in PATHS:
        add("offer", f"path {ascii(path)[:40]}", files.write_offer([entry(path)]), "path" if len(path.encode()) <= 1024 else "out_of_range")
    for pair in COLLISIONS:
        add("offer", f"paths {ascii(pair)}", files.write_offer([entry(path) for path in pair]), "collision")
    good = files.write_offer(OFFERS["one file"])
    add("offer", "cut off", good[:-1], "truncated")
    add("offer", "a byte after it", good + b"\0", "out_of_range")
    add("offer", "flags", good[:1] + b"\x08" + good[2:], "out_of_range")
    add("offer", "too many files", varint(1_000_001), "out_of_range")
    add("offer", "too large a file", files.write_offer([entry("a", files.SIZED, (1 << 50) + 1)]), "out_of_range")
    for name, data in (
        ("nothing", b""),
        ("stored, cut off", b"\5"),
        ("end, cut off", b"\4\0\0"),
        ("want, cut off", b"\3\1\0\1\1\0"),
    ):
        add("message", name, data, "truncated")
    for name, data in (
        ("kind 0", b"\0"),
        ("kind 9", b"\x09"),
        ("go with flags", b"\2\2"),
        ("done and more", b"\x08\0"),
        ("file 1,000,000", b"\5" + varint(1_000_000)),
        ("form 0", b"\3\1\0\0"),
        ("form 5", b"\3\1\0\5"),
        ("want 2^32", b"\3" + varint(2**32) + b"\0\2"),
        ("an empty range", b"\3\1\0\1\1\0\0"),
        ("ranges that touch", b"\3\1\0\1\2\0\1\0\1"),
        ("a range beyond the end", b"\3\1\0\1\1\0" + varint(2**30 + 1)),
        ("4097 ranges", b"\3\1\0\1" + varint(4097)),
        ("a text of 201 bytes", b"\7\0\1" + varint(201) + b"x" * 201),
        ("a text that is not UTF-8", b"\7\0\1\1\xff"),
        ("a file of 2^50 + 1 bytes", b"\4\0" + varint((1 << 50) + 1) + bytes(32)),
    ):
        add("message", name, data, "out_of_range")
    return rows
