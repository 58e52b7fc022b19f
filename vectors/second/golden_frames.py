"""Rows for section 4: every type of frame, at its extremes, and what is no frame."""

from typing import Any, Dict, List, Tuple

from blake3 import blake3
from draw import draw, formula
from frames import Frame, ack_eliciting, read_all, show, write
from wire import Refused, bit_map, varint

Row = Dict[str, Any]

MOST = 2**62 - 1
LAST_BLOCK = 2**32 - 1
LAST_CHUNK = 2**32 - 1
FULL = 1166  # bytes of a slice that fills 1200 of a datagram, but for one, while the numbers are small


def ack(largest: int, delay_us: int, first: int, runs: List[List[int]], **more: Any) -> Frame:
    return {
        "type": "ack_ecn" if more else "ack",
        "largest": largest,
        "delay_us": delay_us,
        "first": first,
        "runs": runs,
        **more,
    }


def progress(credit: int, lateness_ms: int, floor: int, entries: List[List[Any]]) -> Frame:
    return {"type": "progress", "credit": credit, "lateness_ms": lateness_ms, "floor": floor, "entries": entries}


def slice_(kind: str, block: int, chunk: int, index: int, data: bytes, **more: Any) -> Frame:
    return {"type": kind, "block": block, "chunk": chunk, "index": index, **more, "data": data}


def message(
    number: int, data: bytes, channel: int = 0, unordered: bool = False, whole: Any = None, offset: int = 0
) -> Frame:
    return {
        "type": "message",
        "unordered": unordered,
        "channel": channel,
        "number": number,
        "whole": whole,
        "offset": offset,
        "data": data,
    }


def arrivals(number: int, us: int, more: List[List[int]]) -> Frame:
    return {"type": "arrivals", "number": number, "us": us, "more": more}


def frames() -> List[Tuple[str, Frame]]:
    root, values = draw("frames: root", 32), [draw(f"frames: value {i}", 32) for i in range(32)]
    return [
        ("one byte", {"type": "padding", "count": 1}),
        ("many", {"type": "padding", "count": 100}),
        ("", {"type": "ping"}),
        ("first", ack(0, 0, 0, [])),
        ("one run", ack(100, 2500, 3, [[1, 1]])),
        ("31 runs", ack(2**32 - 1, 2**24, 0, [[1 + i % 3, 1 + i * 7] for i in range(31)])),
        ("all of the newest 131072", ack(200_000, 1, 131_071, [])),
        ("as far back as it may", ack(200_000, MOST, 0, [[131_070, 1]])),
        ("first", ack(0, 0, 0, [], ecn=[0, 0, 0])),
        ("counts", ack(70_000, 1000, 69_000, [[2, 5]], ecn=[69_006, 0, 17])),
        ("extremes", ack(2**32 - 1, MOST, 16_384, [[64, 16_383]], ecn=[MOST, MOST, MOST])),
        ("newest alone", arrivals(0, 0, [])),
        ("three", arrivals(1000, 4_294_967_295, [[1, 0], [1, 850], [3, 16_384]])),
        ("all 31", arrivals(2**32 - 1, 1, [[1 + i, 100 * i] for i in range(31)])),
        ("extremes", arrivals(5, 0, [[2**32 - 1, 2**32 - 1]])),
        ("nothing announced", progress(32, 0, 0, [])),
        ("half of a block", progress(70, 16, 3, [[3, 2, bit_map([True, False, True])]])),
        ("finished", progress(70, 0, 3, [[3, 37, b""], [5, 0, bytes(2)]])),
        ("widest map", progress(2000, 1, 0, [[0, 0, b"\x55" * 128]])),
        ("64 entries", progress(64, 0, 7, [[8 + i, i, bytes([i])] for i in range(64)])),
        ("extremes", progress(MOST, MOST, 2**32 - 1, [[LAST_BLOCK, 2**32 - 1, b""]])),
        ("least", slice_("slice", 0, 0, 0, formula(0, 0, 2))),
        ("full", slice_("slice", 3, 5, 100, formula(5, 100 * FULL, FULL))),
        ("extremes", slice_("slice", LAST_BLOCK, LAST_CHUNK, 255, formula(0, 0, 16))),
        ("least", slice_("last_slice", 0, 0, 0, formula(0, 0, 1), slice_size=2)),
        ("a chunk of one slice", slice_("last_slice", 1, 0, 0, formula(0, 0, 300), slice_size=FULL)),
        ("as large as the others", slice_("last_slice", 1, 7, 255, formula(7, 255 * 1024, 1024), slice_size=1024)),
        ("extremes", slice_("last_slice", LAST_BLOCK, LAST_CHUNK, 255, formula(0, 0, 5), slice_size=65_472)),
        ("least", slice_("repair_slice", 0, 0, 0, formula(0, 0, 2))),
        ("full", slice_("repair_slice", 3, 5, 127, formula(5, 0, FULL))),
        ("extremes", slice_("repair_slice", LAST_BLOCK, LAST_CHUNK, 255, formula(0, 0, 66))),
        ("one", {"type": "slices_here", "block": 0, "chunk": 0, "slice_size": 2, "map": b"\1"}),
        ("256", {"type": "slices_here", "block": 2, "chunk": 9, "slice_size": 1024, "map": b"\xaa" * 32}),
        (
            "extremes",
            {"type": "slices_here", "block": LAST_BLOCK, "chunk": LAST_CHUNK, "slice_size": 65_472, "map": b"\xff"},
        ),
        ("empty", {"type": "block", "number": 0, "tag": 0, "length": 0, "root": blake3(b"")}),
        ("a file", {"type": "block", "number": 1, "tag": 0xFEEDFACE, "length": 9 << 20, "root": root}),
        (
            "extremes",
            {"type": "block", "number": LAST_BLOCK, "tag": MOST, "length": 2**50 - 2**18, "root": b"\xff" * 32},
        ),
        ("one value", {"type": "hashes", "block": 0, "level": 0, "first": 32, "values": values[:1]}),
        ("a whole page", {"type": "hashes", "block": 1, "level": 1, "first": 64, "values": values}),
        ("extremes", {"type": "hashes", "block": LAST_BLOCK, "level": 6, "first": 2**32 - 32, "values": values[:2]}),
        ("one", {"type": "chunks_here", "block": 0, "first": 0, "map": b"\1"}),
        ("all of 8192", {"type": "chunks_here", "block": 4, "first": 8192, "map": b"\xff" * 1024}),
        ("extremes", {"type": "chunks_here", "block": LAST_BLOCK, "first": LAST_CHUNK, "map": b"\1"}),
        ("without a reason", {"type": "cancel", "block": 0, "code": 0, "opened": 0}),
        ("extremes", {"type": "cancel", "block": LAST_BLOCK, "code": 2**32 - 1, "opened": 2**32 - 1}),
        ("without a reason", {"type": "decline", "block": 64, "code": 0}),
        ("extremes", {"type": "decline", "block": LAST_BLOCK, "code": 2**32 - 1}),
        ("", {"type": "root_here", "root": root}),
        ("empty", {"type": "packet", "sequence": 0, "data": b""}),
        ("small", {"type": "packet", "sequence": 258, "data": formula(258, 0, 40)}),
        ("largest", {"type": "packet", "sequence": 65_535, "data": formula(65_535, 0, 1024)}),
        ("least", {"type": "fragment", "sequence": 7, "count_less_one": 1, "index": 1, "data": formula(7, 1024, 1)}),
        (
            "first of two",
            {"type": "fragment", "sequence": 7, "count_less_one": 1, "index": 0, "data": formula(7, 0, 1024)},
        ),
        (
            "last of 256",
            {
                "type": "fragment",
                "sequence": 65_535,
                "count_less_one": 255,
                "index": 255,
                "data": formula(65_535, 255 * 1024, 1024),
            },
        ),
        ("empty", message(0, b"")),
        ("ordered", message(1, b"hello")),
        ("unordered", message(300, b"hello", channel=255, unordered=True)),
        ("first part", message(2, formula(2, 0, 1000), channel=1, whole=65_536)),
        (
            "last part, unordered",
            message(2, formula(2, 65_436, 100), channel=1, unordered=True, whole=65_536, offset=65_436),
        ),
        ("extremes", message(MOST, b"\xff", channel=255, unordered=True, whole=65_536, offset=65_535)),
        ("a part that is the whole", message(5, b"abc", whole=3)),
        ("first", {"type": "channel_limit", "channel": 0, "messages": 384, "bytes": 98_304}),
        ("extremes", {"type": "channel_limit", "channel": 255, "messages": MOST, "bytes": MOST}),
        ("least", {"type": "ack_frequency", "datagrams": 1, "delay_us": 1000}),
        ("usual", {"type": "ack_frequency", "datagrams": 16, "delay_us": 10_000}),
        ("most", {"type": "ack_frequency", "datagrams": 64, "delay_us": 1_000_000}),
        ("", {"type": "path_challenge", "bytes": draw("frames: challenge", 8)}),
        ("", {"type": "path_response", "bytes": draw("frames: challenge", 8)}),
        ("", {"type": "reset_token", "token": draw("frames: reset token", 16)}),
        ("done", {"type": "close", "code": 0, "reason": b""}),
        ("the application's", {"type": "close", "code": 256, "reason": "kein Ort, größer".encode()}),
        ("extremes", {"type": "close", "code": 2**32 - 1, "reason": b"x" * 255}),
        ("least, not ack-eliciting", {"type": "unknown", "number": 64, "data": b""}),
        ("ack-eliciting", {"type": "unknown", "number": 95, "data": b"abc"}),
        ("greasing", {"type": "unknown", "number": 96, "data": draw("frames: grease", 16)}),
        ("of 300 bytes", {"type": "unknown", "number": 127, "data": formula(0, 0, 300)}),
    ]


def frame_rows() -> List[Row]:
    rows = []
    for name, frame in frames():
        data = write(frame)
        assert read_all(data) == [frame], (name, frame)
        rows.append(
            {
                "name": f"{frame['type']}: {name}".rstrip(": "),
                "frame": show(frame),
                "ack_eliciting": ack_eliciting(frame),
                "shortest": True,
                "hex": data.hex(),
            }
        )
    for name, frame, data in longer():
        assert read_all(data) == [frame], name
        rows.append(
            {
                "name": name,
                "frame": show(frame),
                "ack_eliciting": ack_eliciting(frame),
                "shortest": False,
                "hex": data.hex(),
            }
        )
    return rows


def longer() -> List[Tuple[str, Frame, bytes]]:
    """Frames whose varints are longer than they have to be: read all the same, never written."""
    return [
        (
            "cancel: varints of 8 bytes",
            {"type": "cancel", "block": 1, "code": 2, "opened": 3},
            b"\x0d" + varint(1, 8) + varint(2, 8) + varint(3, 8),
        ),
        (
            "ack: varints of 2, 4, 8 bytes",
            ack(9, 5, 2, [[1, 3]]),
            b"\2\x09\0\0\0" + varint(5, 2) + varint(2, 4) + b"\1" + varint(1, 8) + varint(3, 2),
        ),
        ("slice: varints of 4 bytes", slice_("slice", 0, 1, 2, b"ab"), b"\6" + varint(0, 4) + varint(1, 4) + b"\2ab"),
        ("unknown: length of 8 bytes", {"type": "unknown", "number": 96, "data": b"x"}, b"\x60" + varint(1, 8) + b"x"),
    ]


def large_frame_rows() -> List[Row]:
    """Slices larger than 1200 bytes; the data is the formula's with i = 0."""
    rows = []
    for kind, size, more in (
        ("slice", 1444, {}),
        ("slice", 8944, {}),
        ("slice", 65_472, {}),
        ("last_slice", 8943, {"slice_size": 8944}),
        ("last_slice", 65_472, {"slice_size": 65_472}),
        ("repair_slice", 8944, {}),
        ("repair_slice", 65_472, {}),
    ):
        frame = slice_(kind, 1, 2, 3, formula(0, 0, size), **more)
        data = write(frame)
        assert read_all(data) == [frame]
        shown = show(frame)
        shown["data"] = {"formula": 0, "first": 0, "bytes": size}
        rows.append({"frame": shown, "length": len(data), "first32_hex": data[:32].hex(), "blake3": blake3(data).hex()})
    return rows


def broken_frame_rows() -> List[Row]:
    """Plaintexts that H-4a drops whole, each with the class of what is wrong."""
    rows: List[Tuple[str, bytes, str]] = [("nothing", b"", "empty")]
    rows += [(f"type {number}", bytes([number]) + bytes(20), "bad_type") for number in (25, 31, 32, 63, 128, 255)]
    rows += [
        ("good ping, then type 25", b"\1\x19", "bad_type"),
        ("good padding, then type 200", b"\0\0\xc8", "bad_type"),
    ]
    seen = set()
    for name, frame in frames():
        if frame["type"] in seen or frame["type"] in ("padding", "ping"):
            continue
        seen.add(frame["type"])
        data = write(frame)
        open_ended = frame["type"] in ("slice", "last_slice", "repair_slice")
        cut = len(data) - len(frame["data"]) if open_ended else len(data) - 1
        rows.append((f"{frame['type']}: its type alone", data[:1], "truncated"))
        if cut > 1:
            rows.append((f"{frame['type']}: {name}, cut off", data[:cut], "truncated"))
    rows += _out_of_range() + _repeated()
    for name, data, reason in rows:
        try:
            read_all(data)
            raise AssertionError(f"{name} was read")
        except Refused as refused:
            assert refused.reason == reason, (name, refused)
    return [{"name": name, "hex": data.hex(), "reason": reason} for name, data, reason in rows]


def _out_of_range() -> List[Tuple[str, bytes, str]]:
    def block(number: bytes) -> bytes:
        return b"\x0a" + number + b"\0\0" + bytes(32)

    values, two, over = bytes(32 * 33), b"ab", varint(2**32)
    cases = [
        ("ack: 32 runs", b"\2" + bytes(6) + b"\x20" + b"\1\1" * 32),
        ("ack: gap of 0", write(ack(9, 0, 0, [[0, 1]]))),
        ("ack: run of 0", write(ack(9, 0, 0, [[1, 0]]))),
        ("ack: first of 131072", write(ack(200_000, 0, 131_072, []))),
        ("ack: one too far back", write(ack(200_000, 0, 0, [[131_071, 1]]))),
        ("ack_ecn: one too far back", write(ack(200_000, 0, 1, [[131_070, 1]], ecn=[0, 0, 0]))),
        ("arrivals: 32 entries", b"\4" + bytes(8) + b"\x20" + b"\1\1" * 32),
        ("arrivals: back of 0", write(arrivals(9, 9, [[0, 1]]))),
        ("progress: 65 entries", b"\5\0\0\0\x41" + b"\0\0\0" * 65),
        ("progress: map of 129 bytes", write(progress(0, 0, 0, [[0, 0, bytes(129)]]))),
        ("progress: block 2^32", write(progress(0, 0, 0, [[2**32, 0, b""]]))),
        ("progress: floor of 2^32", write(progress(0, 0, 2**32, []))),
        ("slice: odd", write(slice_("slice", 0, 0, 0, b"abc"))),
        ("slice: block 2^32", write(slice_("slice", 2**32, 0, 0, two))),
        ("slice: chunk 2^32", write(slice_("slice", 0, 2**32, 0, two))),
        ("last_slice: slice size 0", write(slice_("last_slice", 0, 0, 0, b"a", slice_size=0))),
        ("last_slice: slice size 3", write(slice_("last_slice", 0, 0, 0, b"a", slice_size=3))),
        ("last_slice: slice size 65474", write(slice_("last_slice", 0, 0, 0, b"a", slice_size=65_474))),
        ("last_slice: longer than the slice size", write(slice_("last_slice", 0, 0, 0, b"abc", slice_size=2))),
        ("last_slice: block 2^32", write(slice_("last_slice", 2**32, 0, 0, b"a", slice_size=2))),
        ("repair_slice: odd", write(slice_("repair_slice", 0, 0, 0, b"a"))),
        ("repair_slice: chunk 2^32", write(slice_("repair_slice", 0, 2**32, 0, two))),
        (
            "slices_here: slice size 1",
            write({"type": "slices_here", "block": 0, "chunk": 0, "slice_size": 1, "map": b"\1"}),
        ),
        ("slices_here: no map", write({"type": "slices_here", "block": 0, "chunk": 0, "slice_size": 2, "map": b""})),
        (
            "slices_here: map of 33 bytes",
            write({"type": "slices_here", "block": 0, "chunk": 0, "slice_size": 2, "map": bytes(33)}),
        ),
        ("block: number 2^32", block(over)),
        ("block: length 2^50", b"\x0a\0\0" + varint(2**50) + bytes(32)),
        ("hashes: level 7", b"\x0b\0\x07\0\1" + values[:32]),
        ("hashes: first of 31", b"\x0b\0\0\x1f\1" + values[:32]),
        ("hashes: no value", b"\x0b\0\0\0\0"),
        ("hashes: 33 values", b"\x0b\0\0\0\x21" + values),
        ("chunks_here: no map", write({"type": "chunks_here", "block": 0, "first": 0, "map": b""})),
        ("chunks_here: map of 1025 bytes", write({"type": "chunks_here", "block": 0, "first": 0, "map": bytes(1025)})),
        ("cancel: block 2^32", b"\x0d" + over + b"\0\0"),
        ("cancel: code 2^32", b"\x0d\0" + over + b"\0"),
        ("decline: code 2^32", b"\x0e\0" + over),
        ("packet: 1025 bytes", write({"type": "packet", "sequence": 0, "data": bytes(1025)})),
        (
            "fragment: of one",
            write({"type": "fragment", "sequence": 0, "count_less_one": 0, "index": 0, "data": bytes(1024)}),
        ),
        (
            "fragment: index is the count",
            write({"type": "fragment", "sequence": 0, "count_less_one": 1, "index": 2, "data": b"a"}),
        ),
        (
            "fragment: first of two with 1023 bytes",
            write({"type": "fragment", "sequence": 0, "count_less_one": 1, "index": 0, "data": bytes(1023)}),
        ),
        ("fragment: empty", write({"type": "fragment", "sequence": 0, "count_less_one": 1, "index": 1, "data": b""})),
        (
            "fragment: 1025 bytes",
            write({"type": "fragment", "sequence": 0, "count_less_one": 1, "index": 1, "data": bytes(1025)}),
        ),
        ("message: flag 4", b"\x12\4\0\0\0"),
        ("message: whole of 65537 bytes", write(message(0, b"a", whole=65_537))),
        ("message: 65537 bytes", b"\x12\0\0\0" + varint(65_537)),
        ("message: part beyond the whole", write(message(0, b"ab", whole=10, offset=9))),
        ("ack_frequency: 0 datagrams", b"\x14\0" + varint(1000)),
        ("ack_frequency: 65 datagrams", b"\x14" + varint(65) + varint(1000)),
        ("ack_frequency: 999 us", b"\x14\1" + varint(999)),
        ("ack_frequency: 1000001 us", b"\x14\1" + varint(1_000_001)),
        ("close: code 2^32", b"\x18" + over + b"\0"),
    ]
    return [(name, data, "out_of_range") for name, data in cases]


def _repeated() -> List[Tuple[str, bytes, str]]:
    one_ack, with_ecn = write(ack(0, 0, 0, [])), write(ack(0, 0, 0, [], ecn=[0, 0, 0]))
    here = write({"type": "slices_here", "block": 0, "chunk": 0, "slice_size": 2, "map": b"\1"})
    chunks = write({"type": "chunks_here", "block": 0, "first": 0, "map": b"\1"})
    cases = [
        ("two acks", one_ack * 2),
        ("an ack and one with ECN", one_ack + with_ecn),
        ("two arrivals", write(arrivals(0, 0, [])) * 2),
        ("two progress frames", write(progress(0, 0, 0, [])) * 2),
        ("two slices here", here * 2),
        ("two chunks here, with a ping between", chunks + b"\1" + chunks),
    ]
    return [(name, data, "repeated") for name, data in cases]


def mixtures() -> List[Tuple[str, str, List[Frame]]]:
    """What real datagrams contain: name, sender, frames."""
    by_name = {f"{frame['type']}: {name}": frame for name, frame in frames()}
    values = [draw(f"frames: value {i}", 32) for i in range(3)]
    return [
        (
            "an upload's start",
            "client",
            [
                {"type": "block", "number": 0, "tag": 1, "length": 3 * 262_144, "root": draw("frames: root", 32)},
                {"type": "hashes", "block": 0, "level": 0, "first": 0, "values": values},
                slice_("slice", 0, 0, 0, formula(0, 0, 1000)),
            ],
        ),
        (
            "a receiver's state",
            "client",
            [
                ack(60, 1200, 50, [[1, 5]], ecn=[58, 0, 2]),
                arrivals(60, 123_456_789, [[1, 90], [2, 250]]),
                progress(70, 0, 0, [[0, 1, b"\1"]]),
                {"type": "slices_here", "block": 0, "chunk": 1, "slice_size": FULL, "map": b"\xff" * 28},
            ],
        ),
        ("full slice", "server", [slice_("slice", 0, 1, 7, formula(1, 7 * FULL, FULL))]),
        (
            "game and bulk",
            "server",
            [
                by_name["packet: small"],
                by_name["message: ordered"],
                by_name["channel_limit: first"],
                by_name["ack_frequency: usual"],
                by_name["unknown: greasing"],
                slice_("repair_slice", 0, 0, 3, formula(3, 0, 512)),
            ],
        ),
        (
            "what is here",
            "client",
            [
                by_name["root_here: "],
                by_name["chunks_here: one"],
                by_name["decline: extremes"],
                {"type": "padding", "count": 3},
            ],
        ),
        (
            "challenge and response",
            "client",
            [{"type": "path_response", "bytes": bytes(8)}, {"type": "path_challenge", "bytes": b"\xff" * 8}],
        ),
        ("close", "server", [by_name["close: the application's"]]),
        ("to be ignored", "server", [by_name["unknown: least, not ack-eliciting"], by_name["unknown: of 300 bytes"]]),
    ]
