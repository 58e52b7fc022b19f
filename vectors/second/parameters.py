"""The parameters of hello and welcome (section 3.4).

A hello or welcome is a dict from the names below to values, with every default filled in. What is unknown
is kept under `unknown`, as pairs of id and value, so that it can be shown; nothing else looks at it.
"""

from typing import Any, Dict, Optional, Tuple

from wire import MAX_VARINT, Reader, Refused, u32, varint

VERSION = 1
HELLO, WELCOME = "hello", "welcome"
Parameters = Dict[str, Any]

# The numbers: id, name, least, most, default. Each is in both.
NUMBERS = (
    (2, "idle_ms", 0, MAX_VARINT, 15_000),
    (3, "largest_block", 0, MAX_VARINT, 0),
    (4, "largest_datagram", 1200, 65_507, 1200),
    (5, "max_ack_delay_ms", 0, 1000, 20),
    (6, "credit", 0, MAX_VARINT, 32),
    (7, "receive_buffer", 0, MAX_VARINT, 0),
    (8, "channels", 1, 256, 1),
    (9, "channel_bytes", 131_072, MAX_VARINT, 131_072),
    (10, "repair_codes", 0, MAX_VARINT, 0),
    (15, "announced_blocks", 32, 255, 32),
)
NUMBER_IDS = {row[0]: row for row in NUMBERS}


def defaults(kind: str) -> Parameters:
    """What an end means that sends only what is required."""
    values: Parameters = {name: default for _, name, _, _, default in NUMBERS}
    if kind == HELLO:
        values.update(versions=[VERSION], suites=1, roots=[], request=b"", unknown=[])
    else:
        values.update(suite=0, server_id=bytes(8), versions=[VERSION], unknown=[])
    return values


def write(kind: str, values: Parameters, everything: bool = False) -> bytes:
    """The list, in order of ids, without what has its default (unless `everything`)."""
    before = defaults(kind)
    values = {**before, **values}
    found: Dict[int, bytes] = {}

    def put(number: int, name: str, value: bytes, always: bool = False) -> None:
        if always or everything or values[name] != before[name]:
            found[number] = value

    for number, name, _, _, _ in NUMBERS:
        put(number, name, varint(values[name]))
    versions = b"".join(map(u32, values["versions"]))
    if kind == HELLO:
        put(0, "versions", versions, always=True)
        put(1, "suites", bytes([values["suites"]]))
        if values["roots"]:
            found[11] = b"".join(values["roots"])
        put(12, "request", values["request"])
    else:
        put(1, "suite", bytes([values["suite"]]))
        put(13, "server_id", values["server_id"], always=True)
        put(14, "versions", versions)
    items = [*sorted(found.items()), *values["unknown"]]
    return b"".join(varint(number) + varint(len(value)) + value for number, value in items)


def read(kind: str, data: bytes, version: int = VERSION) -> Parameters:
    """The values, defaults filled in; `Refused` says why the whole is invalid (H-3.4a).

    `version` is that of the request. The classes: `truncated`, `twice`, `out_of_range`, `missing`.
    """
    reader = Reader(data)
    values = defaults(kind)
    seen = set()
    while len(reader):
        number = reader.varint()
        value = reader.take(reader.varint())
        if number in seen:
            raise Refused("twice", f"parameter {number}")
        seen.add(number)
        known = _read_one(kind, number, value)
        if known is None:
            values["unknown"].append((number, value))
        else:
            values[known[0]] = known[1]
    always = 0 if kind == HELLO else 13
    if always not in seen:
        raise Refused("missing", f"parameter {always}")
    if kind == HELLO and version not in values["versions"]:
        raise Refused("out_of_range", "the version of the request is not among those listed")
    return values


def _read_one(kind: str, number: int, value: bytes) -> Optional[Tuple[str, Any]]:
    """Name and value, or None for one that this message does not know."""
    reader = Reader(value)
    result: Tuple[str, Any]
    if number in NUMBER_IDS:
        _, name, least, most, _ = NUMBER_IDS[number]
        result = name, reader.within(reader.varint(), least, most)
    elif number == 1 and kind == HELLO:
        result = "suites", reader.integer(1)
        if not result[1] & 1:
            raise Refused("out_of_range", "ChaCha20-Poly1305 is always offered")
    elif number == 1:
        result = "suite", reader.within(reader.integer(1), 0, 1)
    elif number == (0 if kind == HELLO else 14):
        reader.within(len(value), 4, 32)
        result = "versions", [reader.integer(4) for _ in range((len(value) + 3) // 4)]
    elif number == 11 and kind == HELLO:
        reader.within(len(value), 32, 16 * 32)
        result = "roots", [reader.take(32) for _ in range((len(value) + 31) // 32)]
    elif number == 12 and kind == HELLO:
        reader.within(len(value), 0, 400)
        result = "request", reader.rest()
    elif number == 13 and kind == WELCOME:
        result = "server_id", reader.take(8)
    else:
        return None
    if len(reader):
        raise Refused("out_of_range", f"parameter {number} is too long")
    return result
