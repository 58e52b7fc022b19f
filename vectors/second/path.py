"""How large a datagram the path carries (section 5.6)."""

from typing import List, NamedTuple, Optional

SAFE = 1200
SIZES = (1472, 1452, 1392)
JUMBO = 8972
TRIES = 3
BLACK_HOLE = 6
AGAIN = 60.0


class Probe(NamedTuple):
    """What a datagram carries that only asks whether its size passes."""

    size: int


class PathSize:
    """One probe at a time; off until `allowed` says that nothing that is sent can be fragmented."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self.allowed = False
        self.on_new_path()

    def on_new_path(self) -> None:
        """A path that was changed starts again with 1200 (section 5.2)."""
        self.size = SAFE
        self.plan = [size for size in SIZES if size <= self.largest]
        self.outstanding = False
        self.lost = self.large_lost = 0
        self.not_before = 0.0

    def next_probe(self, now: float) -> Optional[int]:
        if not self.allowed or self.outstanding or not self.plan or now < self.not_before:
            return None
        return self.plan[0]

    def on_acked(self, probe: Probe) -> None:
        self.outstanding, self.lost = False, 0
        if probe.size > self.size:
            self.size = probe.size
            self.plan = [JUMBO] if probe.size == SIZES[0] and self.largest >= JUMBO else []

    def on_lost(self, probe: Probe, now: float) -> None:
        """The loss of a probe says nothing about congestion; three mean that the size does not pass."""
        self.outstanding, self.lost = False, self.lost + 1
        self.not_before = now + 0.1
        if self.lost == TRIES:
            self.lost, self.plan = 0, self.plan[1:]

    def on_feedback(self, acked: List[int], lost: List[int], now: float) -> None:
        """H-5.6b: six large ones lost in a row are a black hole."""
        if any(size > SAFE for size in acked):
            self.large_lost = 0
        self.large_lost += sum(size > SAFE for size in lost)
        if self.large_lost >= BLACK_HOLE and self.size > SAFE:
            self.on_new_path()
            self.not_before = now + AGAIN
