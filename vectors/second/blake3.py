"""BLAKE3: hash, keyed hash, derive_key, and the chaining values of subtrees (section 4.2.5).

The reference algorithm, except that whole leaves are hashed side by side: one Python integer holds one
32-bit word of each leaf, 64 bits apart, so that an addition of two integers is one of all leaves at once.
"""

import struct
import sys
from array import array
from typing import List, Sequence

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED, DERIVE_CONTEXT, DERIVE_KEY = 1, 2, 4, 8, 16, 32, 64
LEAF = 1024
SIDE_BY_SIDE = 256

Words = Sequence[int]


def _schedule() -> List[List[int]]:
    """Which message word goes where, in each of the seven rounds."""
    rounds = [list(range(16))]
    for _ in range(6):
        rounds.append([rounds[-1][i] for i in PERMUTATION])
    return rounds


SCHEDULE = _schedule()
# fmt: off
COLUMNS_AND_DIAGONALS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)
# fmt: on


def _compress(
    cv: Words, block: Words, counter_low: int, counter_high: int, length: int, flags: int, ones: int
) -> List[int]:
    """The compression function's first 8 words, in as many lanes as `ones` has bits."""
    mask = 0xFFFFFFFF * ones
    v = list(cv) + [word * ones for word in IV[:4]] + [counter_low, counter_high, length * ones, flags * ones]
    for order in SCHEDULE:
        for step, (a, b, c, d) in enumerate(COLUMNS_AND_DIAGONALS):
            va, vb, vc, vd = v[a], v[b], v[c], v[d]
            va = (va + vb + block[order[2 * step]]) & mask
            vd ^= va
            vd = (vd << 16 | vd >> 16) & mask
            vc = (vc + vd) & mask
            vb ^= vc
            vb = (vb << 20 | vb >> 12) & mask
            va = (va + vb + block[order[2 * step + 1]]) & mask
            vd ^= va
            vd = (vd << 24 | vd >> 8) & mask
            vc = (vc + vd) & mask
            vb ^= vc
            v[a], v[b], v[c], v[d] = va, (vb << 25 | vb >> 7) & mask, vc, vd
    return [v[i] ^ v[i + 8] for i in range(8)]


def _words(data: bytes) -> "tuple[int, ...]":
    return struct.unpack(f"<{len(data) // 4}I", data)


def _lanes(values: Sequence[int]) -> int:
    """Words, 64 bits apart."""
    return int.from_bytes(struct.pack(f"<{len(values)}Q", *values), "little")


def _from_lanes(words: Words, count: int) -> List[bytes]:
    """The 32 bytes of each lane."""
    columns = [struct.unpack(f"<{count}Q", word.to_bytes(8 * count, "little")) for word in words]
    return [struct.pack("<8I", *values) for values in zip(*columns)]


def _little(data: bytes) -> "array[int]":
    words = array("I", data)
    if sys.byteorder == "big":
        words.byteswap()
    return words


def _ones(count: int) -> int:
    return int.from_bytes(b"\1\0\0\0\0\0\0\0" * count, "little")


def _whole_leaves(key: Words, data: bytes, first: int, flags: int) -> List[bytes]:
    """Chaining values of leaves of 1024 bytes each, side by side."""
    count = len(data) // LEAF
    ones, words = _ones(count), _little(data)
    low = _lanes([(first + lane) & 0xFFFFFFFF for lane in range(count)])
    high = _lanes([(first + lane) >> 32 for lane in range(count)])
    cv: List[int] = [word * ones for word in key]
    for number in range(16):
        block = [_lanes(words[16 * number + word :: 256]) for word in range(16)]
        flag = flags | (CHUNK_START if number == 0 else 0) | (CHUNK_END if number == 15 else 0)
        cv = _compress(cv, block, low, high, 64, flag, ones)
    return _from_lanes(cv, count)


def _parents(key: Words, values: Sequence[bytes], flags: int) -> List[bytes]:
    """Chaining values of pairs, side by side."""
    count = len(values) // 2
    ones, words = _ones(count), _little(b"".join(values))
    block = [_lanes(words[word::16]) for word in range(16)]
    return _from_lanes(_compress([word * ones for word in key], block, 0, 0, 64, flags | PARENT, ones), count)


def _leaf(key: Words, data: bytes, counter: int, flags: int) -> bytes:
    """The chaining value of one leaf of up to 1024 bytes; with ROOT in `flags`, the hash."""
    cv: Words = key
    blocks = [data[at : at + 64] for at in range(0, len(data), 64)] or [b""]
    for number, block in enumerate(blocks):
        last = number + 1 == len(blocks)
        flag = flags & ~ROOT | (CHUNK_START if number == 0 else 0)
        if last:
            flag |= CHUNK_END | flags & ROOT
        cv = _compress(cv, _words(block.ljust(64, b"\0")), counter & 0xFFFFFFFF, counter >> 32, len(block), flag, 1)
    return struct.pack("<8I", *cv)


def join(values: Sequence[bytes], root: bool = False, key: Words = IV, flags: int = 0) -> bytes:
    """Joins the chaining values of equal subtrees, of which only the last may be smaller.

    The left part is the largest power of two that leaves something for the right one. A single value is
    returned as it is, and cannot be a root.
    """
    if len(values) == 1:
        if root:
            raise ValueError("a single chaining value is no root")
        return values[0]
    while len(values) > 2:  # pair by pair, which comes to the same; one that is left over goes up as it is
        even = len(values) & ~1
        values = _parents(key, values[:even], flags) + list(values[even:])
    return _parents(key, values, flags | (ROOT if root else 0))[0]


def _tree(key: Words, data: bytes, first: int, flags: int, root: bool) -> bytes:
    if len(data) <= LEAF:
        return _leaf(key, data, first, flags | (ROOT if root else 0))
    whole = len(data) // LEAF
    values: List[bytes] = []
    for at in range(0, whole, SIDE_BY_SIDE):
        values += _whole_leaves(key, data[at * LEAF : min(whole, at + SIDE_BY_SIDE) * LEAF], first + at, flags)
    if len(data) % LEAF:
        values.append(_leaf(key, data[whole * LEAF :], first + whole, flags))
    return join(values, root, key, flags)


def blake3(data: bytes) -> bytes:
    """The hash, 32 bytes."""
    return _tree(IV, data, 0, 0, True)


def keyed(key: bytes, data: bytes) -> bytes:
    """The keyed hash, 32 bytes, under a key of 32."""
    return _tree(_words(key), data, 0, KEYED, True)


def derive_key(context: str, material: bytes) -> bytes:
    """The page's `KDF(context, material)`."""
    key = _tree(IV, context.encode(), 0, DERIVE_CONTEXT, True)
    return _tree(_words(key), material, 0, DERIVE_KEY, True)


def chaining_value(data: bytes, first_leaf: int) -> bytes:
    """The chaining value of a subtree whose first leaf has this number; the data is not the whole input."""
    return _tree(IV, data, first_leaf, 0, False)
