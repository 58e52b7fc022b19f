"""Rows for section 4.2: trees, and repair slices."""

from typing import Any, Dict, List

from blake3 import blake3, join
from draw import formula
from repair import reconstruct, repair_count, repair_slices
from tree import CHUNK, PAGE, Tree, chunk_count

Row = Dict[str, Any]


def tree_rows() -> List[Row]:
    """Blocks of formula data with i = 0, o over the whole block. Pages of large trees as digests."""
    rows = []
    lengths = [0, 1, 1023, 1024, 1025, 65_536, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1025, 3 * CHUNK]
    lengths += [31 * CHUNK + 1, 32 * CHUNK, 32 * CHUNK + 1, 33 * CHUNK, 9 << 20]
    data = formula(0, 0, max(lengths))
    for length in lengths:
        tree = Tree(data[:length])
        assert tree.root == blake3(data[:length])
        pages = [
            {"level": level, "first": first, "values": [v.hex() for v in tree.page((level, first))]}
            for level, first in tree.pages()
        ]
        rows.append({"length": length, "chunks": chunk_count(length), "root": tree.root.hex(), "pages": pages})
    return rows


def tall_trees() -> List[Row]:
    """Trees above values that no data has: that of chunk i is 32 bytes of the data formula with this i."""
    rows = []
    for chunks in (2, 32, 33, 1000, 1024, 1025, 32_769):
        level = [formula(i, 0, 32) for i in range(chunks)]
        levels = []
        while True:
            levels.append({"values": len(level), "blake3": blake3(b"".join(level)).hex(), "last": level[-1].hex()})
            if len(level) <= PAGE:
                break
            level = [join(level[at : at + PAGE]) for at in range(0, len(level), PAGE)]
        rows.append({"chunks": chunks, "levels": levels, "root": join(level, root=True).hex()})
    return rows


def repair_rows() -> List[Row]:
    """Chunks of formula data with i = 0; all repair slices joined, as a digest, and the start of some."""
    rows = []
    shapes = [
        (3, 2),
        (4, 2),
        (66, 64),
        (100, 50),
        (128, 64),
        (129, 64),
        (192, 96),
        (1000, 300),
        (1000, 334),
        (3000, 1024),
        (5000, 1172),
        (10_000, 130),
        (65_535, 1172),
        (CHUNK, 1024),
        (CHUNK, 1136),
        (CHUNK, 1434),
        (CHUNK - 1, 1024),
        (CHUNK, 2048),
        (CHUNK, 8944),
        (CHUNK, 65_472),
        (512, 2),
        (511, 2),
        (260, 2),
        (32 * 1172 + 1, 1172),
        (33 * 1172, 1172),
        (128 * 1172 + 2, 1172),
    ]
    for length, size in shapes:
        chunk = formula(0, 0, length)
        slices = repair_slices(chunk, size)
        k = -(-length // size)
        some = sorted({0, 1, len(slices) // 2, len(slices) - 1})
        first = (
            {i: chunk[i * size : (i + 1) * size] for i in range(0, k, 2)}
            if k <= 64
            else {i: chunk[i * size : (i + 1) * size] for i in range(6, k)}
        )
        assert reconstruct(size, k, length, first, dict(enumerate(slices))) == chunk
        rows.append(
            {
                "length": length,
                "slice_size": size,
                "k": k,
                "repair": repair_count(k),
                "blake3": blake3(b"".join(slices)).hex(),
                "slices": [
                    {
                        "index": i,
                        "first32_hex": slices[i][:32].hex(),
                        "last8_hex": slices[i][-8:].hex(),
                        "blake3": blake3(slices[i]).hex(),
                    }
                    for i in some
                ],
            }
        )
    return rows
