"""What giver and taker of files say to each other (section 8): requests, offers, tags of blocks, messages."""

import unicodedata
from typing import Any, Dict, List, Tuple

from wire import Reader, Refused, u8, u32, varint

Row = Dict[str, Any]
Ranges = List[Tuple[int, int]]

MAGIC = b"HLF2"
VERBS = {"get": 1, "open": 2, "put": 3}
LONGEST_NAME = 394
MOST_FILES = 1_000_000
LARGEST_OFFER = 1 << 28
LONGEST_OFFER_MESSAGE = 60_000
LARGEST_FILE = 1 << 50
MOST_RANGES = 4096
LONGEST_TEXT = 200
MIB = 1 << 20

DIRECTORY, KNOWN, SIZED, PIPE = range(4)
# What the bits of the flags from the fourth on take away from a file of mode 0666.
TAKEN = (0o200, 0o040, 0o020, 0o004, 0o002)

SEPARATORS = '/\\:*?"<>|'
DEVICES = ("CON", "PRN", "AUX", "NUL", "COM", "LPT", "CONIN$", "CONOUT$")
INVISIBLE = ((0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F))
INVISIBLE += ((0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE007F))
OWN = (".haulier-part", ".haulier-journal", ".haulier-tree")


def write_request(verb: str, accepts_packed: bool, name: str) -> bytes:
    return MAGIC + u8(VERBS[verb]) + u8(accepts_packed) + name.encode()


def read_request(data: bytes) -> Tuple[str, bool, str]:
    reader = Reader(data)
    if reader.take(4) != MAGIC:
        raise Refused("out_of_range", "not a request for files")
    number, flags = reader.integer(1), reader.within(reader.integer(1), 0, 1)
    verb = {number: verb for verb, number in VERBS.items()}.get(number)
    if verb is None or len(reader) > LONGEST_NAME or (verb == "put" and (flags or len(reader))):
        raise Refused("out_of_range", "a verb, a name or a flag")
    return verb, bool(flags), text(reader.rest())


def text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused("out_of_range", "not UTF-8") from None


def is_plain(part: str) -> bool:
    """One component of a path, on every system (H-8.2a)."""
    stem = part.split(".")[0].rstrip(" ").rstrip("0123456789¹²³")
    return (
        1 <= len(part.encode()) <= 255
        and not any(c in SEPARATORS or unicodedata.category(c) == "Cc" for c in part)
        and not any(low <= ord(c) <= high for c in part for low, high in INVISIBLE)
        and part[0] not in ".- "
        and part[-1] not in ". "
        and stem.upper() not in DEVICES
    )


def is_safe(path: str) -> bool:
    parts = path.split("/")
    return (
        1 <= len(path.encode()) <= 1024
        and len(parts) <= 32
        and unicodedata.is_normalized("NFC", path)
        and not any(part.lower().endswith(OWN) for part in parts)
        and all(is_plain(p) or (i > 0 and p[:1] == "." and is_plain(p[1:])) for i, p in enumerate(parts))
    )


def folded(part: str) -> str:
    return unicodedata.normalize("NFC", part.lower().upper().lower())


def collide(paths: List[str]) -> bool:
    """Whether two paths are one on some system, or one of them is a file and a directory (H-8.2b)."""
    spelled: Dict[Tuple[str, ...], Tuple[str, ...]] = {}
    files, directories = set(), set()
    for path in paths:
        parts = tuple(path.split("/"))
        keys = tuple(folded(part) for part in parts)
        for end in range(1, len(parts) + 1):
            if spelled.setdefault(keys[:end], parts[:end]) != parts[:end]:
                return True
        if keys in files:
            return True
        files.add(keys)
        directories.update(keys[:end] for end in range(1, len(parts)))
    return bool(files & directories)


def mode_bits(mode: str) -> int:
    """The six bits of a mode as chmod has it (8.2): the owner may run it, and what it lacks of 0666."""
    bits = int(mode, 8)
    return bool(bits & 0o100) | sum(2 << place for place, bit in enumerate(TAKEN) if not bits & bit)


def mode_of(bits: int) -> str:
    """The mode at its giver: who may read it may run it, if its owner may."""
    mode = 0o666 & ~sum(bit for place, bit in enumerate(TAKEN) if bits & 2 << place)
    return f"{mode | (mode & 0o444) >> 2 if bits & 1 else mode:04o}"


def write_offer(entries: List[Row]) -> bytes:
    out = varint(len(entries))
    for entry in entries:
        path = entry["path"].encode()
        out += u8(entry["kind"] | mode_bits(entry["mode"]) << 2) + varint(len(path)) + path
        out += entry["modified_ns"].to_bytes(8, "little", signed=True)
        if entry["kind"] in (KNOWN, SIZED):
            out += varint(entry["size"])
        if entry["kind"] == KNOWN:
            out += entry["root"]
    return out


def read_offer(data: bytes) -> List[Row]:
    if len(data) > LARGEST_OFFER:
        raise Refused("out_of_range", "the offer is too long")
    reader = Reader(data)
    entries = []
    for _ in range(reader.within(reader.varint(), 0, MOST_FILES)):
        flags = reader.integer(1)
        if flags & 3 == DIRECTORY and flags != DIRECTORY:
            raise Refused("out_of_range", "a directory with a mode")
        path = text(reader.take(reader.within(reader.varint(), 0, 1024)))
        entry = {"path": path, "kind": flags & 3, "mode": mode_of(flags >> 2)}
        entry["modified_ns"] = int.from_bytes(reader.take(8), "little", signed=True)
        if entry["kind"] in (KNOWN, SIZED):
            entry["size"] = reader.within(reader.varint(), 0, LARGEST_FILE)
        if entry["kind"] == KNOWN:
            entry["root"] = reader.take(32)
        if not is_safe(path):
            raise Refused("path", path)
        entries.append(entry)
    end(reader)
    if collide([entry["path"] for entry in entries]):
        raise Refused("collision")
    return entries


def end(reader: Reader) -> None:
    if len(reader):
        raise Refused("out_of_range", "bytes after the end")


TAGS = {"offer": 1, "whole": 2, "part": 3, "packed": 4, "recipe": 5, "pieces": 6}


def write_tag(kind: str, file: int = 0, want: int = 0, offset: int = 0) -> int:
    low = want % 512 << 30 | offset // MIB if kind in ("part", "packed") else want
    return TAGS[kind] << 59 | file << 39 | low


def read_tag(tag: int) -> Row:
    kind = {number: kind for kind, number in TAGS.items()}.get(tag >> 59)
    file, low = tag >> 39 & 0xFFFFF, tag & 0x7F_FFFF_FFFF
    if kind is None or file >= MOST_FILES or (kind == "offer" and (file or low)):
        raise Refused("out_of_range", "a tag of nothing")
    if kind in ("part", "packed"):
        return {"kind": kind, "file": file, "want": low >> 30, "offset": (low & 0x3FFF_FFFF) * MIB}
    if low >> 32:
        raise Refused("out_of_range", "the number of a want")
    return {"kind": kind, "file": file, "want": low, "offset": 0}


KINDS = ("offer", "go", "want", "end", "stored", "refused", "failed", "done")
FORMS = ("any", "whole", "recipe", "pieces")


def write_ranges(ranges: Ranges) -> bytes:
    out, last = varint(len(ranges)), 0
    for start, stop in ranges:
        out += varint(start - last) + varint(stop - start)
        last = stop
    return out


def read_ranges(reader: Reader, most: int) -> Ranges:
    ranges: Ranges = []
    last = 0
    for index in range(reader.within(reader.varint(), 0, MOST_RANGES)):
        start = last + reader.within(reader.varint(), 1 if index else 0, most)
        last = reader.within(start + reader.within(reader.varint(), 1, most), 1, most)
        ranges.append((start, last))
    return ranges


def write_message(message: Row) -> bytes:
    kind = message["kind"]
    out = u8(KINDS.index(kind) + 1)
    if kind == "offer":
        return out + message["list"]
    if kind == "go":
        return out + u8(message["accepts_packed"])
    if kind == "want":
        out += varint(message["number"])
    if kind != "done":
        out += varint(message["file"])
    if kind == "want":
        out += u8(FORMS.index(message["form"]) + 1)
        out += write_ranges(message["ranges"]) if message["form"] in ("any", "pieces") else b""
    elif kind == "end":
        out += varint(message["length"]) + message["root"]
    elif kind in ("refused", "failed"):
        words = message["text"].encode()
        out += varint(message["reason"]) + varint(len(words)) + words
    return out


def read_message(data: bytes) -> Row:
    reader = Reader(data)
    kind = KINDS[reader.within(reader.integer(1), 1, len(KINDS)) - 1]
    message: Row = {"kind": kind}
    if kind == "offer":
        return {**message, "list": reader.rest()}
    if kind == "go":
        message["accepts_packed"] = bool(reader.within(reader.integer(1), 0, 1))
    if kind == "want":
        message["number"] = reader.within(reader.varint(), 0, 2**32 - 1)
    if kind not in ("go", "done"):
        message["file"] = reader.within(reader.varint(), 0, MOST_FILES - 1)
    if kind == "want":
        form = message["form"] = FORMS[reader.within(reader.integer(1), 1, 4) - 1]
        most = LARGEST_FILE // MIB if form == "any" else 2**32 - 1
        message["ranges"] = read_ranges(reader, most) if form in ("any", "pieces") else []
    elif kind == "end":
        message["length"] = reader.within(reader.varint(), 0, LARGEST_FILE)
        message["root"] = reader.take(32)
    elif kind in ("refused", "failed"):
        message["reason"] = reader.varint()
        message["text"] = text(reader.take(reader.within(reader.varint(), 0, LONGEST_TEXT)))
    end(reader)
    return message


def write_recipe(pieces: List[Tuple[int, bytes]]) -> bytes:
    return b"".join(u32(length) + digest for length, digest in pieces)


def read_recipe(data: bytes, size: int) -> List[Tuple[int, bytes]]:
    reader = Reader(data)
    pieces = []
    while len(reader):
        length, digest = reader.integer(4), reader.take(16)
        pieces.append((reader.within(length, 1 if not len(reader) else 16_384, 262_144), digest))
    if len(data) > 1 << 24 or sum(length for length, _ in pieces) != size:
        raise Refused("out_of_range", "pieces of another size")
    return pieces
