"""What was received and what was sent (sections 2.2, 4.1 and 4.5): the window, acks, loss and the rate."""

import random
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from datagrams import expand
from frames import Frame
from path import Probe

WINDOW = 131_072
MAX_RUNS = 31
INITIAL_RTT = 0.333
MAX_PTO = 2.0
REORDERING = 3
FIRST_FLIGHT = 32
FLOOR_BPS = 200_000


class Received:
    """The numbers that came in: refuses what came before, and says in an ack what did (H-2.2b)."""

    def __init__(self) -> None:
        self.largest = -1
        self.seen = set()  # in the window, whether acknowledged or not
        self.ranges: List[List[int]] = []  # [first, last], to be acknowledged, newest first

    def is_new(self, number: int) -> bool:
        return number > self.largest - WINDOW and number not in self.seen

    def remember(self, number: int) -> None:
        self.seen.add(number)
        self.largest = max(self.largest, number)
        if len(self.seen) > 2 * WINDOW:
            self.seen = {n for n in self.seen if n > self.largest - WINDOW}

    def acknowledge(self, number: int) -> bool:
        """Takes the number into the acks; whether it leaves a new gap below it."""
        at = 0
        while at < len(self.ranges) and self.ranges[at][0] > number + 1:
            at += 1
        gap = at == 0 and bool(self.ranges) and self.ranges[0][1] + 1 < number
        if at < len(self.ranges) and self.ranges[at][0] == number + 1:
            self.ranges[at][0] = number
            if at + 1 < len(self.ranges) and self.ranges[at + 1][1] + 1 == number:
                self.ranges[at][0] = self.ranges.pop(at + 1)[0]
        elif at < len(self.ranges) and self.ranges[at][1] + 1 == number:
            self.ranges[at][1] = number
        else:
            self.ranges.insert(at, [number, number])
        del self.ranges[MAX_RUNS + 1 :]
        return gap

    def ack(self, delay_us: int) -> Frame:
        """Section 4.1; at least one number was acknowledged."""
        first, largest = self.ranges[0]
        lowest = first
        runs: List[List[int]] = []
        for low, high in self.ranges[1:]:
            if largest - low >= WINDOW:
                break
            runs.append([lowest - high - 1, high - low + 1])
            lowest = low
        before = min(largest - first, WINDOW - 1)
        return {"type": "ack", "largest": largest & 0xFFFFFFFF, "delay_us": delay_us, "first": before, "runs": runs}


def acked_ranges(frame: Frame, next_number: int) -> Iterator[Tuple[int, int]]:
    """First and last number of each run of an ack, newest first; they may be below 0."""
    last = expand(frame["largest"], next_number)
    low = last - frame["first"]
    yield low, last
    for gap, run in frame["runs"]:
        last = low - gap - 1
        low = last - run + 1
        yield low, last


class Sent(NamedTuple):
    time: float
    size: int
    eliciting: bool
    reliable: List[Frame]  # to be sent again if this is lost
    item: Any  # the slice, if there is one


class ProtocolError(Exception):
    """The peer violated a rule of the page: the connection is closed with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class Recovery:
    """Numbers datagrams, takes acks, finds what is lost, estimates the round trip, limits what is in flight."""

    def __init__(self) -> None:
        self.next_number = 0
        self.skip_at = random.randrange(1, 256)
        self.skipped: List[int] = []
        self.sent: Dict[int, Sent] = {}
        self.largest_acked = -1
        self.smoothed: Optional[float] = None
        self.variation = INITIAL_RTT / 2
        self.latest = INITIAL_RTT
        self.in_flight = 0
        self.window = FIRST_FLIGHT * 1200.0
        self.threshold = float("inf")
        self.reduced_at = -1
        self.probes = 0
        self.last_eliciting = 0.0

    def take_number(self) -> int:
        """The next number; one in every 256 is skipped, unpredictably (H-2.2c)."""
        if self.next_number == self.skip_at:
            self.skipped = [*self.skipped[-1023:], self.next_number]
            self.next_number += 1
            start = self.next_number + -self.next_number % 256
            self.skip_at = random.randrange(start, start + 256)
        self.next_number += 1
        return self.next_number - 1

    def on_sent(self, number: int, sent: Sent) -> None:
        self.sent[number] = sent
        if sent.eliciting:
            self.in_flight += sent.size
            self.last_eliciting = sent.time

    def on_ack(
        self, frame: Frame, now: float, max_delay: float
    ) -> Tuple[List[Tuple[int, Sent]], List[Tuple[int, Sent]]]:
        """What is newly acknowledged, and what is now lost."""
        ranges = list(acked_ranges(frame, self.next_number))
        if ranges[0][1] >= self.next_number or ranges[-1][0] < 0:
            raise ProtocolError(1, "an ack of a number that was never sent")
        if any(low <= number <= last for low, last in ranges for number in self.skipped):
            raise ProtocolError(1, "an ack of a number that was skipped")
        largest = ranges[0][1]
        acked = [(n, self.sent.pop(n)) for n in sorted(self.sent) if any(low <= n <= last for low, last in ranges)]
        if not acked:
            return [], []
        self.probes = 0
        newest = acked[-1]
        if newest[0] == largest and newest[1].eliciting and frame["delay_us"] < 1 << 24:
            self.sample(now - newest[1].time, min(frame["delay_us"] / 1e6, max_delay))
        self.largest_acked = max(self.largest_acked, largest)
        for number, sent in acked:
            if sent.eliciting:
                self.in_flight -= sent.size
                self.window += sent.size if self.window < self.threshold else 1200 * sent.size / self.window
        return acked, self.find_lost(now)

    def sample(self, latest: float, delay: float) -> None:
        """RFC 9002, section 5."""
        self.latest = max(latest, 1e-4)
        if self.smoothed is None:
            self.smoothed, self.variation, self.minimum = self.latest, self.latest / 2, self.latest
            return
        self.minimum = min(self.minimum, self.latest)
        adjusted = self.latest - delay if self.latest >= self.minimum + delay else self.latest
        self.variation += (abs(self.smoothed - adjusted) - self.variation) / 4
        self.smoothed += (adjusted - self.smoothed) / 8

    def rtt(self) -> float:
        return INITIAL_RTT if self.smoothed is None else self.smoothed

    def find_lost(self, now: float) -> List[Tuple[int, Sent]]:
        """Three later ones, or 9/8 of a round trip (RFC 9002, 6.1)."""
        patience = max(9 / 8 * max(self.rtt(), self.latest), 0.001)
        lost = []
        for number, sent in self.sent.items():
            if number >= self.largest_acked:
                continue
            later = self.largest_acked - number - sum(number < n < self.largest_acked for n in self.skipped[-8:])
            if later >= REORDERING or sent.time + patience <= now:
                lost.append((number, sent))
        for number, sent in lost:
            del self.sent[number]
            if sent.eliciting:
                self.in_flight -= sent.size
            if sent.eliciting and not isinstance(sent.item, Probe):
                self._on_congestion(number)
        return lost

    def _on_congestion(self, number: int) -> None:
        """Half the window, once for each flight, and not below the floor (H-4.5c)."""
        if number > self.reduced_at:
            self.reduced_at = self.next_number - 1
            self.window = max(self.window * 0.7, 16 * 1200, FLOOR_BPS / 8 * self.rtt())
            self.threshold = self.window

    def loss_time(self) -> Optional[float]:
        """When the next is lost by time alone."""
        patience = max(9 / 8 * max(self.rtt(), self.latest), 0.001)
        times = [
            sent.time + patience for number, sent in self.sent.items() if number < self.largest_acked and sent.eliciting
        ]
        return min(times, default=None)

    def pto(self, max_ack_delay: float) -> float:
        """One probe timeout, without backoff."""
        if self.smoothed is None:
            return 2 * INITIAL_RTT
        return self.smoothed + max(4 * self.variation, 0.001) + max_ack_delay

    def probe_time(self, max_ack_delay: float) -> Optional[float]:
        if not any(sent.eliciting for sent in self.sent.values()):
            return None
        return self.last_eliciting + min(self.pto(max_ack_delay) * 2 ** min(self.probes, 8), MAX_PTO)

    def may_send(self, size: int) -> bool:
        return self.in_flight + size <= self.window
