"""The tree of a block: chunks, their values, pages and the root (section 4.2.5).

Level 0 is a value for each chunk; a value of level l + 1 joins 32 of level l; a page is up to 32 values of a
level. The topmost page, joined as a root, is the block's BLAKE3.
"""

from typing import Dict, List, Optional, Tuple

from blake3 import LEAF, blake3, chaining_value, join

CHUNK = 262_144
PAGE = 32
Page = Tuple[int, int]  # level, first


def chunk_count(length: int) -> int:
    return -(-length // CHUNK)


def chunk_size(length: int, chunk: int) -> int:
    return min(CHUNK, length - chunk * CHUNK)


def chunk_value(data: bytes, chunk: int) -> bytes:
    """The chaining value of chunk number `chunk` of a block of two or more."""
    return chaining_value(data, chunk * (CHUNK // LEAF))


def level_sizes(chunks: int) -> List[int]:
    """How many values each level with pages has; none for a block of one chunk or none."""
    sizes: List[int] = []
    while chunks > 1:
        sizes.append(chunks)
        if chunks <= PAGE:
            break
        chunks = -(-chunks // PAGE)
    return sizes


def pages_of(chunk: int, chunks: int) -> List[Page]:
    """The page that the chunk's value is in, and those above it, from the top down."""
    pages: List[Page] = []
    index = chunk
    for level in range(len(level_sizes(chunks))):
        index //= PAGE
        pages.append((level, index * PAGE))
    return pages[::-1]


def page_size(page: Page, chunks: int) -> Optional[int]:
    """How many values the page has; None if there is no such page."""
    level, first = page
    sizes = level_sizes(chunks)
    if level >= len(sizes) or first % PAGE or first >= sizes[level]:
        return None
    return min(PAGE, sizes[level] - first)


class Tree:
    """A sender's: all values of all levels, computed from the block."""

    def __init__(self, data: bytes) -> None:
        self.chunks = chunk_count(len(data))
        self.levels: List[List[bytes]] = []
        if self.chunks <= 1:
            self.root = blake3(data)
            return
        values = [chunk_value(data[i * CHUNK : (i + 1) * CHUNK], i) for i in range(self.chunks)]
        self.levels.append(values)
        while len(values) > PAGE:
            values = [join(values[at : at + PAGE]) for at in range(0, len(values), PAGE)]
            self.levels.append(values)
        self.root = join(values, root=True)

    def page(self, page: Page) -> List[bytes]:
        level, first = page
        return self.levels[level][first : first + PAGE]

    def pages(self) -> List[Page]:
        return [(level, first) for level, values in enumerate(self.levels) for first in range(0, len(values), PAGE)]


class Verifier:
    """A receiver's: takes pages in any order, and says of each value whether it is known yet (H-4.2j)."""

    MAX_WAITING = 8

    def __init__(self, root: bytes, length: int) -> None:
        self.root, self.length, self.chunks = root, length, chunk_count(length)
        self.top = len(level_sizes(self.chunks)) - 1
        self.verified: Dict[Page, List[bytes]] = {}
        self.waiting: Dict[Page, List[bytes]] = {}

    def expected(self, page: Page) -> Optional[bytes]:
        """The value that this page must join to; None while it is not known."""
        level, first = page
        if level == self.top:
            return self.root
        index = first // PAGE
        above = self.verified.get((level + 1, index - index % PAGE))
        return None if above is None else above[index % PAGE]

    def add(self, page: Page, values: List[bytes]) -> str:
        """`kept`, `no room` (the datagram is then not acknowledged), `wrong`, or `no such page`."""
        if page_size(page, self.chunks) != len(values):
            return "no such page"
        if page in self.verified:
            return "kept" if self.verified[page] == values else "wrong"
        if self.expected(page) is None:
            if page not in self.waiting and len(self.waiting) >= self.MAX_WAITING:
                return "no room"
            self.waiting[page] = values
            return "kept"
        if join(values, root=page[0] == self.top) != self.expected(page):
            return "wrong"
        self.verified[page] = values
        below = [p for p in self.waiting if p[0] < page[0] and self.expected(p) is not None]
        results = [self.add(p, self.waiting.pop(p)) for p in below]
        return "wrong" if "wrong" in results else "kept"

    def check(self, chunk: int, data: bytes) -> Optional[bool]:
        """Whether the chunk's bytes are right; None while its value is not known."""
        if self.chunks == 1:
            return blake3(data) == self.root
        page = self.verified.get((0, chunk - chunk % PAGE))
        return None if page is None else page[chunk % PAGE] == chunk_value(data, chunk)
