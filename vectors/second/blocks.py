"""Blocks (section 4.2): one to receive, one to send, and the credit between them."""

from collections import deque
from typing import Callable, Deque, Dict, List, NamedTuple, Optional, Set, Tuple

from frames import Frame, write
from recovery import ProtocolError
from repair import reconstruct, repair_count, repair_slices
from tree import CHUNK, Page, Tree, Verifier, chunk_count, chunk_size, pages_of
from wire import bit_map, read_map

MAX_SLICES = 256
LEAST_SLICE = CHUNK // MAX_SLICES
MAX_OPEN = 1024
MAX_BLOCKS = 64
EARLY_BYTES = CHUNK
EARLY_PAGES = 8
SLICES_HERE_EVERY = 0.05
NO_PROGRESS = 15.0
PROTOCOL, TOO_LARGE, DAMAGED, NO_PROGRESS_CODE, CREDIT_CODE = 1, 3, 4, 2, 10


def slice_count(size: int, slice_size: int) -> int:
    return -(-size // slice_size)


class Assembly:
    """A chunk that comes in: its slices by index, of one slice size."""

    def __init__(self, size: int) -> None:
        self.size, self.slice_size, self.k = size, 0, 0
        self.source: Dict[int, bytes] = {}
        self.repair: Dict[int, bytes] = {}
        self.started_over = self.source_only = False

    def add(self, frame: Frame) -> None:
        """H-4.2c and H-4.2d. A slice that does not agree with the chunk is a protocol error."""
        kind, index, data = frame["type"], frame["index"], frame["data"]
        slice_size = frame["slice_size"] if kind == "last_slice" else len(data)
        k = slice_count(self.size, slice_size)
        last = self.size - (k - 1) * slice_size
        fits = {
            "slice": index < k - 1,
            "last_slice": index == k - 1 and len(data) == last,
            "repair_slice": k >= 2 and index < repair_count(k),
        }
        if k > MAX_SLICES or not fits[kind]:
            raise ProtocolError(PROTOCOL, "a slice that does not fit its chunk")
        if self.slice_size and slice_size > self.slice_size:
            return
        if slice_size != self.slice_size:
            self.slice_size, self.k = slice_size, k
            self.source, self.repair = {}, {}
        if kind != "repair_slice":
            self.source[index] = data
        elif not self.source_only:
            self.repair[index] = data

    def whole(self) -> Optional[bytes]:
        """The chunk's bytes, once there are enough slices; a repair slice is used only if a source is missing."""
        if not self.k or len(self.source) + len(self.repair) < self.k:
            return None
        if len(self.source) == self.k:
            return b"".join(self.source[i] for i in range(self.k))
        return reconstruct(self.slice_size, self.k, self.size, self.source, self.repair)

    def start_over(self) -> bool:
        """After a wrong chunk: whether it may be tried again (H-4.2i)."""
        if len(self.source) == self.k:
            return False
        self.source_only, self.started_over = self.started_over, True
        self.source, self.repair = {}, {}
        return True


class Incoming:
    """A block that comes in. `store` is called with each chunk's number and bytes, once it is verified."""

    def __init__(self, frame: Frame, store: Callable[[int, bytes], None]) -> None:
        self.frame, self.number, self.length = frame, frame["number"], frame["length"]
        self.chunks = chunk_count(self.length)
        self.verifier = Verifier(frame["root"], self.length)
        self.store = store
        self.opened: Set[int] = set()
        self.done = [False] * self.chunks
        self.first = 0
        self.cancelled = False
        self.assemblies: Dict[int, Assembly] = {}

    def finished(self) -> bool:
        return self.first == self.chunks

    def cancel(self) -> None:
        """Finished, and nothing is held of it (H-4.2l)."""
        self.cancelled, self.first, self.assemblies = True, self.chunks, {}

    def on_slice(self, frame: Frame) -> bool:
        """Whether the slice opened a chunk."""
        chunk = frame["chunk"]
        if chunk >= self.chunks:
            raise ProtocolError(PROTOCOL, "a slice of a chunk that the block does not have")
        if self.done[chunk]:
            return False
        opened = chunk not in self.opened
        self.opened.add(chunk)
        self.assemblies.setdefault(chunk, Assembly(chunk_size(self.length, chunk))).add(frame)
        self._try(chunk)
        return opened

    def on_page(self, frame: Frame) -> bool:
        """Whether the page is kept (H-4.2j)."""
        result = self.verifier.add((frame["level"], frame["first"]), frame["values"])
        if result == "no such page":
            raise ProtocolError(PROTOCOL, "a page that the block does not have")
        if result == "wrong":
            raise ProtocolError(DAMAGED, "a wrong page")
        for chunk in list(self.assemblies):
            self._try(chunk)
        return result == "kept"

    def _try(self, chunk: int) -> None:
        """Verifies and stores the chunk, if it is whole and its value is known."""
        assembly = self.assemblies[chunk]
        if self.chunks > 1 and (0, chunk - chunk % 32) not in self.verifier.verified:
            return
        data = assembly.whole()
        if data is None:
            return
        if not self.verifier.check(chunk, data):
            if not assembly.start_over():
                raise ProtocolError(DAMAGED, f"chunk {chunk} is wrong")
            return
        self.store(chunk, data)
        self.done[chunk] = True
        del self.assemblies[chunk]
        while self.first < self.chunks and self.done[self.first]:
            self.first += 1

    def entry(self) -> List:
        """What a progress frame says of it."""
        after = self.done[self.first + 1 : self.first + 1 + MAX_OPEN]
        while after and not after[-1]:
            after.pop()
        return [self.number, self.first, bit_map(after)]

    def slices_here(self) -> List[Frame]:
        return [
            {
                "type": "slices_here",
                "block": self.number,
                "chunk": chunk,
                "slice_size": a.slice_size,
                "map": bit_map([i in a.source for i in range(a.k)]),
            }
            for chunk, a in self.assemblies.items()
            if a.k
        ]


class Receiver:
    """All blocks that come in, before and after their announcement; credit and progress."""

    def __init__(
        self,
        largest_block: int,
        credit: int,
        store: Callable[[int, int, bytes], None],
        on_block: Callable[[Frame], None],
        on_cancel: Callable[[Frame], None] = lambda _: None,
    ) -> None:
        self.largest_block, self.initial = largest_block, credit
        self.store, self.on_block, self.on_cancel = store, on_block, on_cancel
        self.blocks: Dict[int, Incoming] = {}
        self.floor = 0
        self.counted = self.taken = 0  # announcements and chunks: counted against the credit, and done with
        self.early: List[Frame] = []
        self.next_slices_here = 0.0
        self.here_turn = 0
        self.progressed = 0.0

    def credit(self) -> int:
        return self.initial + self.taken

    def on_frame(self, frame: Frame, now: float) -> bool:
        """A block, hashes, slice or cancel frame. False: not kept."""
        number = frame["number" if frame["type"] == "block" else "block"]
        if number < self.floor or (
            number in self.blocks and self.blocks[number].finished() and frame["type"] != "block"
        ):
            return True
        if frame["type"] == "block":
            self._on_block(frame, number, now)
        elif frame["type"] == "cancel":
            self._on_cancel(frame, number)
        elif number not in self.blocks:
            return self._keep_early(frame)
        elif frame["type"] == "hashes":
            return self.blocks[number].on_page(frame)
        else:
            self._count(self.blocks[number].on_slice(frame))
        self._settle(now)
        return True

    def _on_block(self, frame: Frame, number: int, now: float) -> None:
        if number in self.blocks:
            if self.blocks[number].frame != frame and not self.blocks[number].cancelled:
                raise ProtocolError(PROTOCOL, "a block with two contents")
            return
        if frame["length"] > self.largest_block:
            raise ProtocolError(TOO_LARGE, "a block above the limit")
        if sum(not block.finished() for block in self.blocks.values()) >= MAX_BLOCKS:
            raise ProtocolError(PROTOCOL, "too many blocks at a time")
        self._count(True)
        self.taken += 1
        self.on_block(frame)
        self.blocks[number] = Incoming(frame, lambda chunk, data: self._store(number, chunk, data))
        self.progressed = now
        early, self.early = self.early, []
        for kept in early:
            if kept["block"] == number:
                self.on_frame(kept, now)
            else:
                self.early.append(kept)

    def _on_cancel(self, frame: Frame, number: int) -> None:
        """Counts what was opened and announced, though nothing of it arrived (section 4.2.7)."""
        block = self.blocks.get(number)
        seen = len(block.opened) if block is not None else 0
        if frame["opened"] < seen:
            raise ProtocolError(PROTOCOL, "a cancel of fewer chunks than were opened")
        self.counted += frame["opened"] - seen + (block is None)
        self.taken += frame["opened"] - (sum(block.done) if block is not None else 0) + (block is None)
        self.early = [kept for kept in self.early if kept["block"] != number]
        self.blocks[number] = block or Incoming({"number": number, "length": 0, "root": b""}, lambda _, __: None)
        self.blocks[number].cancel()
        self.on_cancel(frame)

    def _keep_early(self, frame: Frame) -> bool:
        """H-4.2e: slices up to one chunk in all, and as many pages as may wait."""
        if frame in self.early:
            return True
        if frame["type"] == "hashes":
            room = sum(kept["type"] == "hashes" for kept in self.early) < EARLY_PAGES
        else:
            size = sum(len(kept["data"]) for kept in self.early if kept["type"] != "hashes")
            room = self.largest_block > 0 and size + len(frame["data"]) <= EARLY_BYTES
        if room:
            self.early.append(frame)
        return room

    def _count(self, one_more: bool) -> None:
        self.counted += one_more
        if self.counted > self.credit():
            raise ProtocolError(CREDIT_CODE, "more than there was credit for")

    def _store(self, number: int, chunk: int, data: bytes) -> None:
        self.store(number, chunk, data)
        self.taken += 1

    def _settle(self, now: float) -> None:
        self.progressed = now
        while self.floor in self.blocks and self.blocks[self.floor].finished():
            del self.blocks[self.floor]
            self.floor += 1

    def receiving(self) -> bool:
        return bool(self.early) or any(not block.finished() for block in self.blocks.values())

    def state_frames(self, now: float) -> List[Frame]:
        entries = [block.entry() for _, block in sorted(self.blocks.items())][:MAX_BLOCKS]
        frames: List[Frame] = [
            {"type": "progress", "credit": self.credit(), "lateness_ms": 0, "floor": self.floor, "entries": entries}
        ]
        if now >= self.next_slices_here:
            here = [frame for block in self.blocks.values() for frame in block.slices_here()]
            if here:
                self.next_slices_here = now + SLICES_HERE_EVERY / min(len(here), 4)
                self.here_turn += 1
                frames.append(here[self.here_turn % len(here)])
        return frames


class SliceItem(NamedTuple):
    """Which slice a datagram carries."""

    block: "Outgoing"
    chunk: int
    index: int
    repair: bool
    slice_size: int


class OpenChunk:
    """A chunk on its way out."""

    def __init__(self, data: bytes, slice_size: int) -> None:
        self.data, self.slice_size = data, slice_size
        self.k = slice_count(len(data), slice_size)
        self.waiting: Deque[Tuple[int, bool]] = deque((i, False) for i in range(self.k))
        self.repair: List[bytes] = []
        self.acked: Dict[int, float] = {}
        self.sent_at: Dict[int, float] = {}


class Outgoing:
    """A block that is sent: announcement, pages, slices; what is done is what the receiver says is."""

    def __init__(self, number: int, tag: int, data: bytes, repair_per_chunk: int = 0) -> None:
        self.number, self.data, self.tree = number, data, Tree(data)
        self.chunks = self.tree.chunks
        self.frame: Frame = {"type": "block", "number": number, "tag": tag, "length": len(data), "root": self.tree.root}
        self.repair_per_chunk = repair_per_chunk
        self.open: Dict[int, OpenChunk] = {}
        self.done = [False] * self.chunks
        self.counted: Set[int] = set()  # chunks that count against the credit: opened, and not here before
        self.first = self.next_chunk = 0
        self.pages_sent: Set[Page] = set()
        self.progress_number = -1
        self.finished = False
        self.progressed: Optional[float] = None
        self.out_of_credit = False

    def on_progress(self, frame: Frame, now: float) -> None:
        """The newest progress frame, recognised by its datagram's number (H-4.2g)."""
        if frame["floor"] > self.number:
            self._finish(now)
        for number, first, done in frame["entries"]:
            if number != self.number:
                raise ProtocolError(PROTOCOL, "progress of a block that was not announced")
            bits = read_map(done)
            if first > self.chunks or any(bits[self.chunks - first - 1 :] if first < self.chunks else bits):
                raise ProtocolError(PROTOCOL, "progress of chunks that the block does not have")
            for chunk in [*range(first), *(first + 1 + i for i, bit in enumerate(bits) if bit)]:
                self._chunk_done(chunk, now)
            if first == self.chunks:
                self._finish(now)

    def on_chunks_here(self, frame: Frame, now: float) -> None:
        for i, bit in enumerate(read_map(frame["map"])):
            if bit and frame["first"] + i >= self.chunks:
                raise ProtocolError(PROTOCOL, "a chunk that the block does not have")
            if bit:
                self._chunk_done(frame["first"] + i, now)
                self.counted.discard(frame["first"] + i)

    def on_decline(self, frame: Frame, now: float) -> Optional[Frame]:
        """Stops sending; the cancel that answers, unless the block is finished (section 4.2.7)."""
        if self.finished:
            return None
        self._finish(now)
        return {"type": "cancel", "block": self.number, "code": frame["code"], "opened": len(self.counted)}

    def on_slices_here(self, frame: Frame, now: float, rtt: float) -> None:
        """Slices that were acknowledged a while ago and are not there: the chunk was started over."""
        chunk = self.open.get(frame["chunk"])
        if chunk is None or chunk.slice_size != frame["slice_size"]:
            return
        bits = read_map(frame["map"])
        for index, at in list(chunk.acked.items()):
            if now - at > 3 * rtt + 0.1 and not (index < len(bits) and bits[index]):
                del chunk.acked[index]
                chunk.waiting.append((index, False))

    def _chunk_done(self, chunk: int, now: float) -> None:
        if not self.done[chunk]:
            self.done[chunk] = True
            self.open.pop(chunk, None)
            self.progressed = now
        while self.first < self.chunks and self.done[self.first]:
            self.first += 1

    def _finish(self, now: float) -> None:
        self.finished, self.progressed = True, now
        self.open = {}

    def next_slice(self, room: int, slice_size: int, credit: int) -> Optional[Tuple[Frame, SliceItem]]:
        """A slice that fits; of a new chunk, which is cut into slices of `slice_size`, if the block's credit allows."""
        if self.finished:
            return None
        for number, chunk in self.open.items():
            while chunk.waiting and not chunk.waiting[0][1] and chunk.waiting[0][0] in chunk.acked:
                chunk.waiting.popleft()
            if chunk.waiting:
                return self._slice(number, chunk, room, False)
        while self.next_chunk < self.chunks and self.done[self.next_chunk]:
            self.next_chunk += 1
        self.out_of_credit = self.next_chunk < self.chunks and len(self.counted) >= credit
        if self.next_chunk == self.chunks or self.out_of_credit or self.next_chunk >= self.first + MAX_OPEN:
            return None
        number = self.next_chunk
        chunk = OpenChunk(self.data[number * CHUNK : (number + 1) * CHUNK], slice_size)
        if self.repair_per_chunk and chunk.k > 1:
            chunk.repair = repair_slices(chunk.data, slice_size)
            chunk.waiting.extend((i, True) for i in range(min(self.repair_per_chunk, len(chunk.repair))))
        return self._slice(number, chunk, room, True)

    def _slice(self, number: int, chunk: OpenChunk, room: int, opens: bool) -> Optional[Tuple[Frame, SliceItem]]:
        index, repair = chunk.waiting[0]
        common = {"block": self.number, "chunk": number, "index": index}
        data = chunk.repair[index] if repair else chunk.data[index * chunk.slice_size : (index + 1) * chunk.slice_size]
        frame: Frame = {"type": "repair_slice" if repair else "slice", **common, "data": data}
        if not repair and index == chunk.k - 1:
            frame = {"type": "last_slice", **common, "slice_size": chunk.slice_size, "data": data}
        if len(write(frame)) > room:
            return None
        chunk.waiting.popleft()
        if opens:
            self.open[number] = chunk
            self.counted.add(number)
            self.next_chunk = number + 1
        return frame, SliceItem(self, number, index, repair, chunk.slice_size)

    def cut_anew(self, slice_size: int) -> None:
        """Open chunks in larger slices than the path carries now (H-4.2d)."""
        for number, chunk in self.open.items():
            if chunk.slice_size > slice_size >= LEAST_SLICE:
                self.open[number] = OpenChunk(chunk.data, slice_size)

    def pages_for_next(self) -> List[Frame]:
        """Pages that have to go before the next chunk's first slice and were not sent yet (H-4.2j)."""
        if self.next_chunk >= self.chunks or self.finished:
            return []
        pages = [page for page in pages_of(self.next_chunk, self.chunks) if page not in self.pages_sent]
        self.pages_sent.update(pages)
        return [
            {"type": "hashes", "block": self.number, "level": p[0], "first": p[1], "values": self.tree.page(p)}
            for p in pages
        ]

    def on_acked(self, item: SliceItem, now: float) -> None:
        chunk = self.open.get(item.chunk)
        if chunk is not None and not item.repair and chunk.slice_size == item.slice_size:
            chunk.acked[item.index] = now

    def on_lost(self, item: SliceItem) -> None:
        chunk = self.open.get(item.chunk)
        same = chunk is not None and chunk.slice_size == item.slice_size
        if chunk is not None and same and not item.repair and item.index not in chunk.acked:
            chunk.waiting.appendleft((item.index, False))
