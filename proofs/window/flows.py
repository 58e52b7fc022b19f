"""Flows of the whole law (`law.py`) on one queue, and the search through every periodic adversary of some
kinds.

What is discretised: rounds are as long for all flows and end together; what a flow has in flight is whole
datagrams; jitter in a round is nothing or all of it; it, and which flow the full queue drops, follow a
pattern that repeats. The search is complete over those patterns, for as many rounds as it is given: it
finds what lasts, which queries of some rounds do not. It proves nothing of other patterns."""

import itertools
import math

from law import Seen, Window
from rules import FLOATS, target


class Link:
    """A rate in datagrams a second, a round trip in seconds, and what the queue holds in datagrams."""

    def __init__(self, rate, trip, buffer=math.inf):
        self.rate, self.trip, self.buffer = rate, trip, buffer
        self.holds = rate * trip

    def shown(self):
        queue = "" if math.isinf(self.buffer) else f", queue {self.buffer:g}"
        return f"{self.rate:g}/s, {self.trip * 1e3:g} ms{queue}"


# `STANDING` of `windowed/mod.rs`, which counts eight rounds at most.
STANDING = 0.1

# `ROUNDS`, `VARIES` and `NO_SMALLER` of `windowed/passed.rs`.
ROUNDS = 8
VARIES = 0.7
NO_SMALLER = 0.9


class Flows:
    """Flows on a link, and what became of what they sent."""

    def __init__(self, link, sizes, spreads=None, runs=1):
        self.link, self.runs = link, runs
        self.windows = [Window(size, int(size)) for size in sizes]
        self.under_way = [int(window.size) for window in self.windows]
        self.spreads = spreads or [0.0] * len(sizes)
        self.owed = [0.0] * len(sizes)
        self.time = self.clock = 0.0
        self.seen = [[] for _ in sizes]
        self.rates = [[] for _ in sizes]
        self.acked, self.lost = [0] * len(sizes), [0] * len(sizes)

    def forget(self):
        """What is counted is counted from here."""
        self.time, self.acked, self.lost = 0.0, [0] * len(self.acked), [0] * len(self.lost)

    def drops(self, dropped, victim):
        """Who loses how much of what the queue drops: all in proportion, or one flow as much as it has."""
        sent, all_sent = self.under_way, sum(self.under_way)
        shares = [dropped * it / all_sent for it in sent]
        if victim is not None:
            first = min(dropped, sent[victim])
            others = all_sent - sent[victim]
            shares = [(dropped - first) * it / others if others else 0.0 for it in sent]
            shares[victim] = first
        whole = []
        for n, share in enumerate(shares):
            self.owed[n] += share
            lost = min(int(self.owed[n] + 1e-9), sent[n])
            self.owed[n] -= lost
            whole.append(lost)
        return whole

    def round(self, jitters, victim=None):
        """One round of all flows. What is seen is of what was in flight at its beginning."""
        link = self.link
        waits = max(sum(self.under_way) - link.holds, 0.0)
        lost = self.drops(max(waits - link.buffer, 0.0), victim)
        queue = min(waits, link.buffer) / link.rate
        self.time += link.trip + queue
        self.clock += link.trip + queue
        for n, window in enumerate(self.windows):
            acked, gone = self.under_way[n] - lost[n], lost[n]
            self.acked[n] += acked
            self.lost[n] += gone
            runs = math.ceil(gone / self.runs)
            most = math.floor(window.size)
            window.on_sent(most, True)
            standing = self.standing(n, queue + jitters[n])
            peak = self.peak(n, acked / (link.trip + queue), queue + jitters[n])
            seen = Seen(acked, gone, runs, queue + jitters[n], self.spreads[n], standing, peak)
            window.judge(seen, link.trip, most)
            self.under_way[n] = most

    def standing(self, n, queue):
        """The least queue that a flow has seen lately, this one included."""
        recent = [it for it in self.seen[n] if self.clock - it[0] < STANDING]
        self.seen[n] = recent[-7:] + [(self.clock, queue)]
        return min(it for _, it in self.seen[n])

    def peak(self, n, rate, queue):
        """What passed of a flow in a round trip when most did, if the path's rate seems to vary."""
        window, trip = self.windows[n], self.link.trip
        if window.trial is None:
            is_queued = queue >= target(FLOATS, (trip + queue) / window.size)
            self.rates[n] = self.rates[n][1 - ROUNDS :] + [(rate, window.size, is_queued)]
        if len(self.rates[n]) < ROUNDS or not window.has_met_queue:
            return 0.0
        most, size = max(it[:2] for it in self.rates[n])
        varies = any(
            is_queued and it < VARIES * most and of >= NO_SMALLER * size
            for it, of, is_queued in self.rates[n]
        )
        return most * trip if varies else 0.0

    def use(self):
        """The part of the link that was used."""
        return sum(self.acked) / (self.time * self.link.rate)

    def loss(self):
        return sum(self.lost) / max(sum(self.lost) + sum(self.acked), 1)

    def ratio(self):
        """The largest rate over the smallest."""
        return max(self.acked) / max(min(self.acked), 1)


def patterns(values, period):
    """Every sequence of this length; those that are one of half the length twice are in it, too."""
    return itertools.product(values, repeat=period)


def adversaries(flows, jitter, period, victims=(None,), spreads=(0.0,)):
    """Jitter of each flow by a pattern, spreads that are constant, and whom the queue drops by a pattern."""
    late = [patterns((0.0, jitter), period) if jitter else [(0.0,) * period] for _ in range(flows)]
    return itertools.product(
        itertools.product(*late), patterns(victims, period), itertools.product(spreads, repeat=flows)
    )


def worst(link, sizes, rounds, settle, measure, choices, runs=1):
    """The adversary for which `measure` is largest, after `settle` rounds over as many as `rounds`."""
    found = (-math.inf, None)
    for late, victims, spreads in choices:
        flows = Flows(link, sizes, spreads, runs)
        period = len(victims)
        for n in range(settle + rounds):
            if n == settle:
                flows.forget()
            at = n % period
            flows.round([pattern[at] for pattern in late], victims[at])
        value = measure(flows)
        if value > found[0]:
            found = (value, {"late": late, "victims": victims, "spreads": spreads})
    return found
