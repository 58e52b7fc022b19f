"""Where the vectors' bytes come from: a fixed seed, and the data formula of `vectors/README.md`."""

from hashlib import blake2s


def draw(label: str, count: int) -> bytes:
    """So many bytes that look random and depend on the label alone: a new row changes no other."""
    blocks = range(-(-count // 32))
    return b"".join(blake2s(f"haulier/1 vectors, {label}, {i}".encode()).digest() for i in blocks)[:count]


def formula(i: int, start: int, count: int) -> bytes:
    """Bytes `start` on of the data with id `i`."""
    return bytes((o * 167 + (o >> 8) * 13 + i * 29 + 7) & 0xFF for o in range(start, start + count))
