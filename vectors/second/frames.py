"""Frames (section 4): one table of what each type contains, and a reader and a writer that follow it.

A frame is a dict: `type`, a name of the table, and its fields. `padding` stands for `count` zero bytes in a
row. A frame that may be ignored is `unknown`, with its `number` and `data`.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from wire import MAX_VARINT, Reader, Refused, u8, varint

Frame = Dict[str, Any]

MAX_SLICE = 65_472
MAX_PACKET = 1024
MAX_MESSAGE = 65_536
MAX_BLOCK = 2**50 - 2**18
ACK_REACH = 131_072
U32_MAX = 2**32 - 1


class Field(NamedTuple):
    """How one field is written and read, and shown in a row of the vectors."""

    write: Callable[[Any], bytes]
    read: Callable[[Reader], Any]
    show: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def wide(value: int) -> str:
    """64 bits in JSON are text, so that no reader can round them."""
    return f"0x{value:016x}"


def integer(size: int, least: int = 0, most: int = U32_MAX) -> Field:
    return Field(lambda value: value.to_bytes(size, "little"), lambda r: r.within(r.integer(size), least, most), _same)


def v(least: int = 0, most: int = MAX_VARINT) -> Field:
    return Field(varint, lambda r: r.within(r.varint(), least, most), wide if most > 2**32 else _same)


def fixed(size: int) -> Field:
    return Field(bytes, lambda r: r.take(size), bytes.hex)


def sized(length: Field) -> Field:
    """Bytes after their length."""
    return Field(lambda value: length.write(len(value)) + value, lambda r: r.take(length.read(r)), bytes.hex)


def many(count: Field, item: Field) -> Field:
    """A list after its length."""
    return Field(
        lambda values: count.write(len(values)) + b"".join(map(item.write, values)),
        lambda r: [item.read(r) for _ in range(count.read(r))],
        lambda values: [item.show(value) for value in values],
    )


def tuple_of(*fields: Field) -> Field:
    return Field(
        lambda values: b"".join(field.write(value) for field, value in zip(fields, values)),
        lambda r: [field.read(r) for field in fields],
        lambda values: [field.show(value) for field, value in zip(fields, values)],
    )


def _read_slice_data(r: Reader) -> bytes:
    data = r.rest()
    if not data:
        raise Refused("truncated", "a slice without data")
    r.within(len(data), 1, MAX_SLICE)
    return data


DATA = Field(bytes, _read_slice_data, bytes.hex)
BLOCK = v(0, U32_MAX)
CHUNK = v(0, 2**32 - 1)
SLICE_SIZE = integer(2, 2, MAX_SLICE)
ACK = (
    ("largest", integer(4)),
    ("delay_us", v()),
    ("first", v(0, ACK_REACH - 1)),
    ("runs", many(integer(1, 0, 31), tuple_of(v(1, ACK_REACH), v(1, ACK_REACH)))),
)
PROGRESS_ENTRY = tuple_of(BLOCK, v(0, 2**32 - 1), sized(integer(1, 0, 128)))

# fmt: off
# Number: name, whether it is ack-eliciting, fields. Padding (0), message (18) and unknown types are apart.
TABLE: Dict[int, Tuple[str, bool, Tuple[Tuple[str, Field], ...]]] = {
    1: ("ping", True, ()),
    2: ("ack", False, ACK),
    3: ("ack_ecn", False, ACK + (("ecn", tuple_of(v(), v(), v())),)),
    4: ("arrivals", False, (("number", integer(4)), ("us", integer(4)), ("more", many(integer(1, 0, 31), tuple_of(v(1, U32_MAX), v(0, U32_MAX)))))),
    5: ("progress", False, (("credit", v()), ("lateness_ms", v()), ("floor", v(0, 2**32 - 1)), ("entries", many(integer(1, 0, 64), PROGRESS_ENTRY)))),
    6: ("slice", True, (("block", BLOCK), ("chunk", CHUNK), ("index", integer(1)), ("data", DATA))),
    7: ("last_slice", True, (("block", BLOCK), ("chunk", CHUNK), ("index", integer(1)), ("slice_size", SLICE_SIZE), ("data", DATA))),
    8: ("repair_slice", True, (("block", BLOCK), ("chunk", CHUNK), ("index", integer(1)), ("data", DATA))),
    9: ("slices_here", False, (("block", BLOCK), ("chunk", CHUNK), ("slice_size", SLICE_SIZE), ("map", sized(integer(1, 1, 32))))),
    10: ("block", True, (("number", BLOCK), ("tag", v()), ("length", v(0, MAX_BLOCK)), ("root", fixed(32)))),
    11: ("hashes", True, (("block", BLOCK), ("level", integer(1, 0, 6)), ("first", v(0, 2**32 - 1)), ("values", many(integer(1, 1, 32), fixed(32))))),
    12: ("chunks_here", True, (("block", BLOCK), ("first", CHUNK), ("map", sized(integer(2, 1, 1024))))),
    13: ("cancel", True, (("block", BLOCK), ("code", v(0, U32_MAX)), ("opened", v(0, U32_MAX)))),
    14: ("decline", True, (("block", BLOCK), ("code", v(0, U32_MAX)))),
    15: ("root_here", True, (("root", fixed(32)),)),
    16: ("packet", True, (("sequence", integer(2)), ("data", sized(integer(2, 0, MAX_PACKET))))),
    17: ("fragment", True, (("sequence", integer(2)), ("count_less_one", integer(1, 1, 255)), ("index", integer(1)), ("data", sized(integer(2, 1, MAX_PACKET))))),
    19: ("channel_limit", True, (("channel", integer(1)), ("messages", v()), ("bytes", v()))),
    20: ("ack_frequency", True, (("datagrams", v(1, 64)), ("delay_us", v(1000, 1_000_000)))),
    21: ("path_challenge", True, (("bytes", fixed(8)),)),
    22: ("path_response", False, (("bytes", fixed(8)),)),
    23: ("reset_token", True, (("token", fixed(16)),)),
    24: ("close", False, (("code", v(0, U32_MAX)), ("reason", sized(integer(1))))),
}
# fmt: on
MESSAGE = 18
NUMBERS = {name: number for number, (name, _, _) in TABLE.items()}
ONCE = ({2, 3}, {4}, {5}, {9}, {12}, {6, 7, 8})  # H-4b
NAMES = {"padding": 0, "message": MESSAGE, **NUMBERS}


def type_number(frame: Frame) -> int:
    return int(frame["number"]) if frame["type"] == "unknown" else NAMES[frame["type"]]


def ack_eliciting(frame: Frame) -> bool:
    if frame["type"] == "unknown":
        return frame["number"] % 2 == 1
    number = type_number(frame)
    return number == MESSAGE or (number in TABLE and TABLE[number][1])


def write(frame: Frame) -> bytes:
    number = type_number(frame)
    if frame["type"] == "padding":
        return bytes(frame["count"])
    if frame["type"] == "unknown":
        return u8(number) + varint(len(frame["data"])) + frame["data"]
    if number == MESSAGE:
        return u8(number) + _write_message(frame)
    return u8(number) + b"".join(field.write(frame[name]) for name, field in TABLE[number][2])


def write_all(frames: "List[Frame]") -> bytes:
    return b"".join(map(write, frames))


def show(frame: Frame) -> Frame:
    """As a row of the vectors has it: bytes in hex, what can be above 2^32 as `0x` and 16 digits."""
    number = type_number(frame)
    shown = {key: value.hex() if isinstance(value, bytes) else value for key, value in frame.items()}
    if number == MESSAGE:
        shown["number"] = wide(frame["number"])
    for key, field in TABLE[number][2] if number in TABLE else ():
        shown[key] = field.show(frame[key])
    return shown


def read_all(plaintext: bytes) -> "List[Frame]":
    """All frames of a datagram, or `Refused`: `bad_type`, `truncated`, `out_of_range`, `repeated`, `empty`."""
    reader = Reader(plaintext)
    frames: List[Frame] = []
    while len(reader):
        frame = _read(reader)
        if frame["type"] == "padding" and frames and frames[-1]["type"] == "padding":
            frames[-1]["count"] += 1
        else:
            frames.append(frame)
    if not frames:
        raise Refused("empty")
    present = [type_number(frame) for frame in frames if frame["type"] != "padding"]
    for kinds in ONCE:
        if sum(number in kinds for number in present) > 1:
            raise Refused("repeated", f"types {sorted(kinds)}")
    return frames


def _read(reader: Reader) -> Frame:
    number = reader.integer(1)
    if number == 0:
        return {"type": "padding", "count": 1}
    if number == MESSAGE:
        return _read_message(reader)
    if number not in TABLE:
        if not 64 <= number <= 127:
            raise Refused("bad_type", str(number))
        return {"type": "unknown", "number": number, "data": reader.take(reader.varint())}
    name, _, fields = TABLE[number]
    frame: Frame = {"type": name}
    for key, field in fields:
        frame[key] = field.read(reader)
    if name in CHECKS and not CHECKS[name](frame):
        raise Refused("out_of_range", name)
    return frame


def _even(frame: Frame) -> bool:
    return len(frame["data"]) % 2 == 0


def _ack_reach(frame: Frame) -> bool:
    """H-4.1a: the number acknowledged last and all before it, down to the end of the last run."""
    return 1 + frame["first"] + sum(gap + run for gap, run in frame["runs"]) <= ACK_REACH


def _last_slice(frame: Frame) -> bool:
    return frame["slice_size"] % 2 == 0 and len(frame["data"]) <= frame["slice_size"]


def _fragment(frame: Frame) -> bool:
    index, last = frame["index"], frame["count_less_one"]
    return index <= last and (index == last or len(frame["data"]) == MAX_PACKET)


CHECKS: Dict[str, Callable[[Frame], bool]] = {
    "ack": _ack_reach,
    "ack_ecn": _ack_reach,
    "slice": _even,
    "last_slice": _last_slice,
    "repair_slice": _even,
    "slices_here": lambda frame: frame["slice_size"] % 2 == 0,
    "hashes": lambda frame: frame["first"] % 32 == 0,
    "fragment": _fragment,
}


def _write_message(frame: Frame) -> bytes:
    """Section 4.4. `whole` is None in a message that is not in parts."""
    part = frame["whole"] is not None
    start = u8(frame["unordered"] | part << 1) + u8(frame["channel"]) + varint(frame["number"])
    middle = varint(frame["whole"]) + varint(frame["offset"]) if part else b""
    return start + middle + varint(len(frame["data"])) + frame["data"]


def _read_message(reader: Reader) -> Frame:
    flags = reader.within(reader.integer(1), 0, 3)
    frame: Frame = {
        "type": "message",
        "unordered": bool(flags & 1),
        "channel": reader.integer(1),
        "number": reader.varint(),
        "whole": None,
        "offset": 0,
    }
    if flags & 2:
        frame["whole"] = reader.within(reader.varint(), 0, MAX_MESSAGE)
        frame["offset"] = reader.within(reader.varint(), 0, MAX_MESSAGE)
    length = reader.within(reader.varint(), 0, MAX_MESSAGE)
    if flags & 2:
        reader.within(frame["offset"] + length, 0, frame["whole"])
    frame["data"] = reader.take(length)
    return frame
