"""Repair slices (section 4.2.4): Reed-Solomon over GF(2^16), in Leopard's low-rate layout.

A word w of 16 bits stands for the field element that is the sum of the basis elements of its bits. Column
by column over the slices, the source words are the values of a polynomial of degree below R at the points
0 to R - 1 (those of slices k to R - 1 are 0), and repair word i is its value at the point R + i. Points are
words too. R slices in all, source, repair or known to be zero, determine the polynomial.

With Cantor's basis (b0 = 1, b(i + 1) squared plus b(i + 1) = b(i)) the polynomial that vanishes on the
first 2^j words maps the word w to the word w >> j, so the twiddle factors of the transforms are shifts.
"""

from functools import lru_cache
from typing import Dict, List, Tuple

POLYNOMIAL = 0x1002D
# fmt: off
BASIS = (
    0x0001, 0xACCA, 0x3C0E, 0x163E, 0xC582, 0xED2E, 0x914C, 0x4012,
    0x6C98, 0x10D8, 0x6A72, 0xB900, 0xFDB8, 0xFB34, 0xFF38, 0x991E,
)
# fmt: on
ORDER = 65_535
PIECE = 64


def _tables() -> Tuple[List[int], List[int]]:
    """Logarithms of words, and their inverse (twice over, so that a sum of two needs no reduction)."""
    power_log = [0] * (ORDER + 1)
    state = 1
    for exponent in range(ORDER):
        power_log[state] = exponent
        state <<= 1
        if state > ORDER:
            state ^= POLYNOMIAL
    element = [0]
    for basis in BASIS:
        element += [value ^ basis for value in element]
    log = [power_log[value] for value in element]
    exp = [0] * (2 * ORDER)
    for word in range(1, ORDER + 1):
        exp[log[word]] = exp[log[word] + ORDER] = word
    return log, exp


LOG, EXP = _tables()


def times(a: int, b: int) -> int:
    return EXP[LOG[a] + LOG[b]] if a and b else 0


class Shard:
    """A slice as words: all low bytes, and all high bytes, each as one integer."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def __xor__(self, other: "Shard") -> "Shard":
        return Shard(self.low ^ other.low, self.high ^ other.high)

    def times(self, factor: int, words: int) -> "Shard":
        """Each word times the factor, by tables of the products of all low and all high bytes."""
        if factor == 0:
            return Shard(0, 0)
        low, high = self.low.to_bytes(words, "little"), self.high.to_bytes(words, "little")
        a, b, c, d = _product_tables(factor)
        return Shard(
            int.from_bytes(low.translate(a), "little") ^ int.from_bytes(high.translate(c), "little"),
            int.from_bytes(low.translate(b), "little") ^ int.from_bytes(high.translate(d), "little"),
        )


@lru_cache(maxsize=8192)
def _product_tables(factor: int) -> Tuple[bytes, bytes, bytes, bytes]:
    """For the bytes x: low and high byte of factor * x, then low and high byte of factor * (x << 8)."""
    tables: List[bytes] = []
    for shift in (0, 8):
        products = [0]
        for bit in range(8):
            step = times(factor, 1 << shift + bit)
            products += [value ^ step for value in products]
        tables += [bytes(p & 0xFF for p in products), bytes(p >> 8 for p in products)]
    return tables[0], tables[1], tables[2], tables[3]


def to_shard(data: bytes) -> Shard:
    """In pieces of 64 bytes, the first half the low bytes of their words, the other the high ones."""
    low, high = bytearray(), bytearray()
    for at in range(0, len(data), PIECE):
        piece = data[at : at + PIECE]
        low += piece[: len(piece) // 2]
        high += piece[len(piece) // 2 :]
    return Shard(int.from_bytes(low, "little"), int.from_bytes(high, "little"))


def from_shard(shard: Shard, size: int) -> bytes:
    low, high = shard.low.to_bytes(size // 2, "little"), shard.high.to_bytes(size // 2, "little")
    half = PIECE // 2
    return b"".join(low[at : at + half] + high[at : at + half] for at in range(0, size // 2, half))


def repair_count(k: int) -> int:
    """R, the smallest power of two that is at least k."""
    return 1 << (k - 1).bit_length()


def repair_slices(chunk: bytes, size: int) -> List[bytes]:
    """All R repair slices of a chunk cut into slices of `size` bytes; k is 2 or more."""
    sources = [chunk[at : at + size].ljust(size, b"\0") for at in range(0, len(chunk), size)]
    r = repair_count(len(sources))
    words = size // 2
    column = [to_shard(data) for data in sources] + [Shard(0, 0)] * (r - len(sources))
    _to_coefficients(column, words)
    _to_values(column, r, words)
    return [from_shard(shard, size) for shard in column]


def _to_coefficients(column: List[Shard], words: int) -> None:
    """From values at the points 0, 1, 2... to coefficients, in place."""
    half = 1
    while half < len(column):
        for start in range(0, len(column), 2 * half):
            factor = start // half
            for i in range(start, start + half):
                column[i + half] ^= column[i]
                column[i] ^= column[i + half].times(factor, words)
        half *= 2


def _to_values(column: List[Shard], point: int, words: int) -> None:
    """From coefficients to the values at `point`, `point` + 1..., in place."""
    half = len(column) // 2
    while half:
        for start in range(0, len(column), 2 * half):
            factor = (point + start) // half
            for i in range(start, start + half):
                column[i] ^= column[i + half].times(factor, words)
                column[i + half] ^= column[i]
        half //= 2


def reconstruct(size: int, k: int, length: int, source: Dict[int, bytes], repair: Dict[int, bytes]) -> bytes:
    """The chunk of `length` bytes, from k different slices of `source` and `repair` together.

    Lagrange's interpolation, at each missing point, of the polynomial through R known ones.
    """
    r = repair_count(k)
    words = size // 2
    known = {i: to_shard(data.ljust(size, b"\0")) for i, data in source.items()}
    known.update((r + i, to_shard(data)) for i, data in list(repair.items())[: k - len(source)])
    if len(known) < k:
        raise ValueError("too few slices")
    points = list(known) + list(range(k, r))
    # log of the product over all other known points p of (point - p), for each known point
    weight = {i: sum(LOG[i ^ p] for p in points if p != i) for i in known}
    whole = dict(source)
    for missing in range(k):
        if missing in source:
            continue
        all_of_them = sum(LOG[missing ^ p] for p in points)
        total = Shard(0, 0)
        for i, shard in known.items():
            total ^= shard.times(EXP[(all_of_them - LOG[missing ^ i] - weight[i]) % ORDER], words)
        whole[missing] = from_shard(total, size)
    return b"".join(whole[i].ljust(size, b"\0") for i in range(k))[:length]
