"""The whole window on floats: `Window` of `windowed/window.rs`, `Losses` of `windowed/losses.rs`, and of
`windowed/passed.rs` what the searches need.

Line by line the same state and the same order of operations, so that the golden trace agrees to the last
digits. What a round did is left in `did`, so that the trace can be asked whether it covers every rule.
"""

import math

import rules
from rules import FLOATS

MAX_EXCESS = 0.02
SIGMAS = 3.0
PRIOR = 50.0
RECENT = 256.0
BELIEVED = 0.9
MAX_OWN = 0.5
TRIPS = 8
MIN_TRIP = 0.025
MAX_FORGOTTEN = TRIPS // 2


class Seen:
    """`Seen`: what became of the datagrams of a round."""

    __slots__ = ("acked", "lost", "runs", "queue", "spread")

    def __init__(self, acked, lost=0, runs=0, queue=math.inf, spread=0.0):
        self.acked, self.lost, self.runs = acked, lost, runs
        self.queue, self.spread = queue, spread


def lately(lost, total):
    return (lost / 2.0, total / 2.0) if total > RECENT else (lost, total)


class Losses:
    """`Losses`: which losses are the path's own."""

    def __init__(self, lost=0.0):
        self.own_of, self.recent, self.runs = (lost, PRIOR), (0.0, 0.0), (1.0, 1.0)

    def begin(self):
        self.recent = (0.0, 0.0)

    def own(self):
        return min(self.own_of[0] / self.own_of[1], MAX_OWN)

    def run(self):
        return max(self.runs[0] / self.runs[1], 1.0)

    def chance(self, total):
        own = self.own()
        return math.sqrt(self.run() * own * (1.0 - own) * total)

    def on_spurious(self):
        self.recent = (max(self.recent[0] - 1.0, 0.0), self.recent[1])

    def on_low(self, seen, is_empty):
        if is_empty:
            lost, total = lately(*self.own_of)
            self.own_of = (lost + seen.lost, total + seen.acked + seen.lost)
        else:
            self.own_of = (BELIEVED * self.own_of[0], self.own_of[1])

    def excess(self, seen):
        self.runs = (self.runs[0] + seen.lost, self.runs[1] + seen.runs)
        self.recent = (self.recent[0] + seen.lost, self.recent[1] + seen.acked + seen.lost)
        (lost, total), own = self.recent, self.own()
        expected = (own + MAX_EXCESS) * total + SIGMAS * self.chance(total) + self.run()
        self.recent = lately(*self.recent)
        return lost / total - own if lost > expected else None

    def is_any(self, seen):
        total = float(seen.acked + seen.lost)
        return seen.lost > self.own() * total + SIGMAS * self.chance(total)


class Window:
    """`Window`, and the round that is under way. A cut is a dictionary or `None`."""

    def __init__(self, size, in_flight):
        self.size = rules.clamped(FLOATS, size)
        self.growth, self.max_growth = 0.0, rules.MAX_FIRST_GROWTH
        self.full = math.inf
        self.losses = Losses()
        self.cut_was = None
        self.spreads = [math.inf] * rules.ROUNDS
        self.low = [False] * 3
        self.low_part, self.began_with = 1.0, in_flight
        self.is_stale = True
        self.did = "begun"

    def gain(self):
        return self.low_part if self.low[0] else 1.0 + rules.PACE + self.growth

    def is_all_used(self):
        return not self.low[1]

    def passed(self, seen):
        """What `Windowed::note_passed` finds in samples, of which a model has none."""
        return min(float(seen.acked + seen.lost), seen.acked / (1.0 - self.losses.own()))

    def on_mark(self, part, queue):
        self.hold()
        self.full = min(self.full, rules.OF_FULL * max(queue, rules.SLACK))
        self.size = rules.clamped(FLOATS, self.size * (1.0 - part))
        self.is_stale = True
        self.did = "marked"

    def hold(self):
        self.growth, self.max_growth = 0.0, min(self.max_growth, rules.MAX_GROWTH)

    def on_spurious(self):
        self.losses.on_spurious()
        cut = self.cut_was
        if not cut:
            return None
        cut["spurious"] += 1.0
        if 2.0 * cut["spurious"] < cut["lost"]:
            return None
        self.size = rules.clamped(FLOATS, self.size / cut["part"])
        self.full = max(self.full, cut["full"])
        self.cut_was, self.low = None, [False] * 3
        self.losses.begin()
        self.did = "undone"
        return 1.0 / cut["part"]

    def judge(self, seen, trip, passes, last, in_flight):
        self.forget_cut()
        was_stale, self.is_stale = self.is_stale, False
        part, is_low = 1.0, False
        if was_stale or not math.isfinite(seen.queue) or seen.acked == 0:
            self.begin_round(in_flight, False)
            self.did = "stale"
            return part
        jitter = self.jitter(seen.spread)
        trip += jitter
        part, is_low = self.verdict(seen, trip, passes, jitter)
        passes *= part
        self.low_part = rules.LOW * (1.0 - self.losses.own()) * min(last / passes, 1.0)
        if is_low and self.low_part * passes * trip < rules.MIN_WINDOW:
            is_low = False
            self.did = "too little for a low round"
        self.begin_round(in_flight, is_low)
        self.size = rules.clamped(FLOATS, self.wanted(trip, passes))
        return part

    def begin_round(self, in_flight, is_low):
        self.began_with, self.low = in_flight, [is_low, *self.low[:2]]

    def forget_cut(self):
        if self.cut_was:
            self.cut_was["rounds"] += 1
            if self.cut_was["rounds"] > rules.LATE_ROUNDS:
                self.cut_was = None

    def jitter(self, spread):
        self.spreads = [spread, *self.spreads[:-1]]
        return min(rules.MAX_JITTER, *self.spreads) / 2.0

    def wanted(self, trip, passes):
        if self.low[0]:
            return self.low_part * (passes * trip)
        return rules.wanted(FLOATS, trip, passes, self.growth, self.full)

    def verdict(self, seen, trip, passes, jitter):
        full = self.full
        target = rules.target(FLOATS, trip, passes)
        queued = rules.is_queued(FLOATS, seen.queue, target, full, jitter)
        self.full *= 1.0 + rules.REGROWTH * (trip + seen.queue)
        was_low = self.low[1]
        if was_low or self.low_part * (passes * trip) < rules.MIN_WINDOW:
            is_empty = seen.queue + seen.spread / 2.0 <= rules.SLACK + 2.0 * jitter
            self.losses.on_low(seen, is_empty)
        excess = None if was_low else self.losses.excess(seen)
        if excess is not None:
            self.hold()
            self.note_full(seen, passes, jitter)
            if queued:
                self.did = "cut"
                return self.cut(excess, full), False
            self.losses.begin()
            is_told = not self.low[0]
            self.did = "a low round" if is_told else "waits for a low round"
            return 1.0, is_told
        if queued:
            self.hold()
            self.did = "a queue in a low round" if was_low else "a queue"
        elif was_low:
            self.did = "low"
        elif self.losses.is_any(seen):
            self.hold()
            self.did = "some losses"
        else:
            self.growth = rules.grown(FLOATS, self.growth, self.max_growth)
            self.did = "grows"
        return 1.0, False

    def note_full(self, seen, passes, jitter):
        longest = seen.queue + seen.spread - 2.0 * jitter
        if longest > max(rules.SLACK, rules.MIN_FULL / passes):
            self.full = rules.OF_FULL * longest

    def cut(self, excess, full):
        part = 1.0 - excess
        self.cut_was = {
            "part": part, "full": full, "lost": self.losses.recent[0], "spurious": 0.0, "rounds": 0,
        }
        self.is_stale = True
        self.losses.begin()
        return part


class Passed:
    """`Passed`, where the times that rounds take are given."""

    def __init__(self, expected):
        self.rates, self.expected, self.last, self.over = [0.0] * TRIPS, expected, expected, 0.0

    def most(self):
        return max(self.rates) or self.expected

    def scale(self, times):
        self.rates, self.expected = [rate * times for rate in self.rates], self.expected * times

    def end_round(self, datagrams, lasted, is_full, trip):
        rate, trip = datagrams / lasted, max(trip, MIN_TRIP)
        self.last = rate
        if is_full:
            self.over += lasted
            left = MAX_FORGOTTEN
            while self.over >= trip and left:
                self.over -= trip
                self.rates = [0.0, *self.rates[:-1]]
                left -= 1
            self.over = min(self.over, trip)
        if is_full or rate > self.most():
            self.rates[0] = max(self.rates[0], rate)
