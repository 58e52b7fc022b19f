"""ChaCha20-Poly1305 (RFC 8439) and XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha): suite 0, and tokens.

All blocks of a message are computed side by side: each row of the state is one Python integer, whose lanes
of 64 bits hold one 32-bit word each, the four columns of block 0, of block 1 and so on, column by column.
"""

import hmac
import struct
from functools import lru_cache
from typing import List, Tuple

from wire import Refused

CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
P1305 = (1 << 130) - 5
CLAMP = 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF


@lru_cache(maxsize=64)
def _shape(blocks: int) -> Tuple[int, int]:
    """For so many blocks: a 1 in each lane of one column, and the numbers 0, 1, 2... in them."""
    lanes = struct.pack(f"<{blocks}Q", *range(blocks))
    return int.from_bytes(struct.pack("<Q", 1) * blocks, "little"), int.from_bytes(lanes, "little")


def _rounds(a: int, b: int, c: int, d: int, column: int, mask: int) -> Tuple[int, int, int, int]:
    """Twenty rounds over the four rows; `column` is the bits in one column of all blocks."""
    full = 4 * column
    everything = (1 << full) - 1
    for half in range(20):
        a = (a + b) & mask
        d ^= a
        d = (d << 16 | d >> 16) & mask
        c = (c + d) & mask
        b ^= c
        b = (b << 12 | b >> 20) & mask
        a = (a + b) & mask
        d ^= a
        d = (d << 8 | d >> 24) & mask
        c = (c + d) & mask
        b ^= c
        b = (b << 7 | b >> 25) & mask
        # To the diagonals: rows b, c, d turn by one, two, three columns; and back.
        one, three = (column, 3 * column) if half % 2 == 0 else (3 * column, column)
        b = (b >> one | b << full - one) & everything
        c = (c >> 2 * column | c << 2 * column) & everything
        d = (d >> three | d << full - three) & everything
    return a, b, c, d


def _row(words: "Tuple[int, ...]", ones: int, column: int) -> int:
    return sum(word * ones << i * column for i, word in enumerate(words))


def keystream(key: bytes, nonce: bytes, counter: int, blocks: int) -> bytes:
    """So many blocks of 64 bytes, from block `counter` on."""
    ones, numbers = _shape(blocks)
    column = 64 * blocks
    mask = _row((0xFFFFFFFF,) * 4, ones, column)
    k = struct.unpack("<8I", key)
    first = _row((counter, *struct.unpack("<3I", nonce)), ones, column) + numbers
    rows = _row(CONSTANTS, ones, column), _row(k[:4], ones, column), _row(k[4:], ones, column), first
    mixed = _rounds(*rows, column, mask)
    columns: List[Tuple[int, ...]] = []
    for before, after in zip(rows, mixed):
        lanes = struct.unpack(f"<{4 * blocks}Q", ((before + after) & mask).to_bytes(column // 2, "little"))
        columns += [lanes[i * blocks : (i + 1) * blocks] for i in range(4)]
    return struct.pack(f"<{16 * blocks}I", *[word for block in zip(*columns) for word in block])


def _xor(a: bytes, b: bytes) -> bytes:
    return (int.from_bytes(a, "little") ^ int.from_bytes(b[: len(a)], "little")).to_bytes(len(a), "little")


def poly1305(key: bytes, message: bytes) -> bytes:
    r = int.from_bytes(key[:16], "little") & CLAMP
    total = 0
    for at in range(0, len(message), 16):
        total = (total + int.from_bytes(message[at : at + 16] + b"\1", "little")) * r % P1305
    return ((total + int.from_bytes(key[16:], "little")) & (1 << 128) - 1).to_bytes(16, "little")


def _tag(key: bytes, associated: bytes, ciphertext: bytes) -> bytes:
    padded = associated + bytes(-len(associated) % 16) + ciphertext + bytes(-len(ciphertext) % 16)
    return poly1305(key, padded + struct.pack("<QQ", len(associated), len(ciphertext)))


def seal(key: bytes, nonce: bytes, associated: bytes, plaintext: bytes) -> bytes:
    """The ciphertext and, after it, the tag of 16 bytes."""
    stream = keystream(key, nonce, 0, 1 + (len(plaintext) + 63) // 64)
    ciphertext = _xor(plaintext, stream[64:])
    return ciphertext + _tag(stream[:32], associated, ciphertext)


def open_sealed(key: bytes, nonce: bytes, associated: bytes, sealed: bytes) -> bytes:
    """The plaintext, or `Refused` ("bad_seal")."""
    if len(sealed) < 16:
        raise Refused("truncated", "no tag")
    ciphertext, tag = sealed[:-16], sealed[-16:]
    stream = keystream(key, nonce, 0, 1 + (len(ciphertext) + 63) // 64)
    if not hmac.compare_digest(tag, _tag(stream[:32], associated, ciphertext)):
        raise Refused("bad_seal")
    return _xor(ciphertext, stream[64:])


def _hchacha(key: bytes, nonce: bytes) -> bytes:
    """HChaCha20: a key from a key and the first 16 bytes of the long nonce."""
    k = struct.unpack("<8I", key)
    ones = _shape(1)[0]
    rows = [_row(words, ones, 64) for words in (CONSTANTS, k[:4], k[4:], struct.unpack("<4I", nonce))]
    mixed = _rounds(*rows, 64, _row((0xFFFFFFFF,) * 4, ones, 64))
    return b"".join(
        struct.pack("<4I", *struct.unpack("<4Q", row.to_bytes(32, "little"))) for row in (mixed[0], mixed[3])
    )


def xseal(key: bytes, nonce: bytes, associated: bytes, plaintext: bytes) -> bytes:
    return seal(_hchacha(key, nonce[:16]), bytes(4) + nonce[16:], associated, plaintext)


def xopen(key: bytes, nonce: bytes, associated: bytes, sealed: bytes) -> bytes:
    return open_sealed(_hchacha(key, nonce[:16]), bytes(4) + nonce[16:], associated, sealed)
