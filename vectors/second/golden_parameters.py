"""Rows for section 3.4: hellos and welcomes, and what is neither."""

from typing import Any, Dict, List

import parameters
from draw import draw, formula
from frames import wide
from wire import Refused, varint

Row = Dict[str, Any]


def show(kind: str, values: parameters.Parameters) -> Row:
    """Numbers that can be above 2^32 as text, like in frames."""
    shown: Row = {}
    bounds = {name: most for _, name, _, most, _ in parameters.NUMBERS}
    for name, value in values.items():
        if name == "unknown":
            shown[name] = [{"id": wide(number), "value": data.hex()} for number, data in value]
        elif name == "roots":
            shown[name] = [root.hex() for root in value]
        elif isinstance(value, bytes):
            shown[name] = value.hex()
        else:
            shown[name] = wide(value) if bounds.get(name, 0) > 2**32 else value
    return shown


EXTREMES: parameters.Parameters = {
    "idle_ms": 2**62 - 1,
    "largest_block": 2**62 - 1,
    "largest_datagram": 65_507,
    "max_ack_delay_ms": 1000,
    "credit": 2**62 - 1,
    "receive_buffer": 2**62 - 1,
    "channels": 256,
    "channel_bytes": 2**62 - 1,
    "repair_codes": 2**62 - 1,
    "announced_blocks": 255,
}
TYPICAL: parameters.Parameters = {
    "idle_ms": 10_000,
    "largest_block": 1 << 30,
    "largest_datagram": 1472,
    "max_ack_delay_ms": 25,
    "credit": 64,
    "receive_buffer": 425_984,
    "channels": 4,
    "channel_bytes": 131_072,
    "repair_codes": 1,
    "announced_blocks": 64,
}
GREASE = [(27, b""), (27 + 31 * 1000, bytes(range(8)))]
HELLOS: Dict[str, parameters.Parameters] = {
    "least": {},
    "typical": {**TYPICAL, "suites": 3, "request": b"HLF1\x01world.dat"},
    "extremes": {**EXTREMES, "suites": 255, "versions": [1, *range(2, 8), 2**32 - 1], "request": formula(0, 0, 400)},
    "zeros": {"idle_ms": 0, "max_ack_delay_ms": 0, "credit": 0},
    "one root": {"roots": [draw("root", 32)]},
    "sixteen roots": {"roots": [draw(f"root {i}", 32) for i in range(16)]},
    "greased": {"versions": [1, 0x5A6A7A8A], "unknown": GREASE},
    "unknown parameter of 100 bytes": {"unknown": [(16, formula(0, 0, 100))]},
    "those of a welcome, ignored": {"unknown": [(13, bytes(8)), (14, bytes(4))]},
}
WELCOMES: Dict[str, parameters.Parameters] = {
    "least": {},
    "typical": {**TYPICAL, "suite": 1},
    "extremes": {**EXTREMES, "suite": 1, "versions": [1, *range(2, 8), 2**32 - 1]},
    "greased": {"unknown": GREASE},
    "those of a hello, ignored": {"unknown": [(0, b""), (11, b""), (12, bytes(500))]},
}


def rows(kind: str, cases: Dict[str, parameters.Parameters]) -> List[Row]:
    made = []
    for name, values in cases.items():
        if kind == parameters.WELCOME:
            values = {"server_id": draw(f"welcome {name}", 8), **values}
        whole = {**parameters.defaults(kind), **values}
        for everything in (False, True) if name in ("least", "typical") else (False,):
            data = parameters.write(kind, whole, everything)
            assert parameters.read(kind, data) == whole
            title = f"{name}, with the defaults written" if everything else name
            made.append({"name": title, "parameters": show(kind, whole), "hex": data.hex()})
    return made


def broken() -> List[Row]:
    def item(number: int, value: bytes) -> bytes:
        return varint(number) + varint(len(value)) + value

    versions, server_id = item(0, b"\1\0\0\0"), item(13, bytes(8))
    hello, welcome = parameters.HELLO, parameters.WELCOME
    cases = [
        ("empty", hello, b"", "missing"),
        ("empty", welcome, b"", "missing"),
        ("no versions", hello, item(2, varint(10_000)), "missing"),
        ("no server id", welcome, item(1, b"\0"), "missing"),
        ("idle timeout twice", hello, versions + item(2, varint(1)) * 2, "twice"),
        ("unknown twice", hello, versions + item(27, b"") + item(27, b"x"), "twice"),
        ("server id twice", welcome, server_id * 2, "twice"),
        ("id alone", hello, versions + b"\2", "truncated"),
        ("id cut off", hello, versions + b"\x40", "truncated"),
        ("length cut off", hello, versions + b"\2\x80", "truncated"),
        ("value cut off", hello, versions + item(12, b"abc")[:-1], "truncated"),
        ("number empty", hello, versions + item(2, b""), "truncated"),
        ("number cut off", hello, versions + item(2, b"\x40"), "truncated"),
        ("byte after number", hello, versions + item(2, b"\1\1"), "out_of_range"),
        ("no version in versions", hello, item(0, b""), "out_of_range"),
        ("nine versions", hello, item(0, b"\1\0\0\0" * 9), "out_of_range"),
        ("versions of 5 bytes", hello, item(0, b"\1\0\0\0\0"), "truncated"),
        ("not the version of the request", hello, item(0, b"\2\0\0\0"), "out_of_range"),
        ("suites without ChaCha20-Poly1305", hello, versions + item(1, b"\2"), "out_of_range"),
        ("suites of 2 bytes", hello, versions + item(1, b"\1\0"), "out_of_range"),
        ("suite 2", welcome, server_id + item(1, b"\2"), "out_of_range"),
        ("datagram of 1199", hello, versions + item(4, varint(1199)), "out_of_range"),
        ("datagram of 65508", hello, versions + item(4, varint(65_508)), "out_of_range"),
        ("ack delay of 1001 ms", welcome, server_id + item(5, varint(1001)), "out_of_range"),
        ("no channel", hello, versions + item(8, varint(0)), "out_of_range"),
        ("257 channels", hello, versions + item(8, varint(257)), "out_of_range"),
        ("channel of 65535 bytes", hello, versions + item(9, varint(65_535)), "out_of_range"),
        ("31 announced blocks", hello, versions + item(15, varint(31)), "out_of_range"),
        ("256 announced blocks", welcome, server_id + item(15, varint(256)), "out_of_range"),
        ("no root in roots", hello, versions + item(11, b""), "out_of_range"),
        ("root of 31 bytes", hello, versions + item(11, bytes(31)), "out_of_range"),
        ("root of 33 bytes", hello, versions + item(11, bytes(33)), "truncated"),
        ("seventeen roots", hello, versions + item(11, bytes(17 * 32)), "out_of_range"),
        ("request of 401 bytes", hello, versions + item(12, bytes(401)), "out_of_range"),
        ("server id of 7 bytes", welcome, item(13, bytes(7)), "truncated"),
        ("server id of 9 bytes", welcome, item(13, bytes(9)), "out_of_range"),
    ]
    rows = []
    for name, kind, data, reason in cases:
        try:
            parameters.read(kind, data)
            raise AssertionError(f"{name} was read")
        except Refused as refused:
            assert refused.reason == reason, (name, refused)
        rows.append({"name": f"{kind}: {name}", "in": kind, "hex": data.hex(), "reason": reason})
    return rows
