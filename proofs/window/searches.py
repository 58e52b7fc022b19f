"""Complete searches of `flows.py`, for what Z3 does not reach: the whole law with its losses, over hundreds
of rounds. Each goes through all links, beginnings and adversaries that it names, and answers as a query
does."""

import math

from flows import Flows, Link, adversaries, worst
from rules import FLOATS, target
from terms import Answer

# 10 and 100 Mbit/s; with losses also a short and a long path, which are 5 and 200 datagrams.
PATHS = [(1_000, 0.05), (10_000, 0.02)]
LOSSY_PATHS = [*PATHS, (1_000, 0.005), (1_000, 0.2)]

# What queues hold, in datagrams.
QUEUES = [2, 3, 5, 8, 12, 20, 30, 60, 200]


def aim(link):
    """The target of a flow that has the link alone."""
    return target(FLOATS, link.trip, link.rate)


def judged(found, is_wrong, names):
    """An answer: the worst that was found, and whether it is wrong."""
    value, where = max(found, key=lambda it: it[0])
    state = {names: round(value, 4), **where}
    if is_wrong(value):
        return Answer("counterexample", state)
    return Answer("holds", note=f"at worst {names} {value:.3f}: {where}")


def use_alone(_):
    """Jitter of half of the target and all of it, by every pattern of four rounds, from a small and a large
    window: after 200 rounds."""
    found = []
    for link in (Link(*path) for path in PATHS):
        for part in (0.5, 1.0):
            for size in (4, 3 * link.holds):
                value, by = worst(link, [size], 100, 200, lambda it: 1 - it.use(),
                                  adversaries(1, part * aim(link), 4))
                found.append((value, {"link": link.shown(), "from": size, **by}))
    return judged(found, lambda value: value > 0.2, "unused")


def losses_alone(_):
    """What is lost after the first 40 rounds, in a thousand."""
    found = []
    for path in LOSSY_PATHS:
        for link in (Link(*path, queue) for queue in QUEUES):
            for size in (4, link.holds, 3 * link.holds):
                flow = Flows(link, [size])
                for n in range(1_000):
                    if n == 40:
                        flow.forget()
                    flow.round([0.0])
                found.append((flow.loss(), {"link": link.shown(), "from": size, "use": round(flow.use(), 3)}))
    return judged(found, lambda value: value > 0.05, "lost")


def equal(flows):
    """Without jitter, from all of the link and four datagrams each: after 300 rounds."""
    found = []
    for link in (Link(*path) for path in PATHS):
        sizes = [link.holds] + [4] * (flows - 1)
        value, _ = worst(link, sizes, 100, 300, Flows.ratio, adversaries(flows, 0, 1))
        found.append((value, {"link": link.shown()}))
    return judged(found, lambda value: value > 1.1, "ratio")


def unequal(flows, part, most):
    """Jitter of a part of the target, by every pattern of two rounds, while the spread that each flow sees is
    none or as much: after 150 rounds."""
    found = []
    for link in (Link(*path) for path in PATHS):
        jitter = part * aim(link)
        sizes = [link.holds / flows] * flows
        value, by = worst(link, sizes, 150, 150, Flows.ratio,
                          adversaries(flows, jitter, 2, spreads=(0.0, jitter)))
        found.append((value, {"link": link.shown(), **by}))
    return judged(found, lambda value: value > most, "ratio")


def short_queue(measure, most, names, queues):
    """Two flows behind short queues, which drop in proportion or of one flow first, by every pattern of three
    rounds: after 200 rounds."""
    found = []
    for path in PATHS:
        for link in (Link(*path, queue) for queue in queues(Link(*path))):
            value, by = worst(link, [link.holds / 2] * 2, 300, 200, measure,
                              adversaries(2, 0, 3, victims=(None, 0, 1)))
            found.append((value, {"link": link.shown(), "victims": by["victims"]}))
    return judged(found, lambda value: value > most, names)


def shorter(link):
    """Queues of less than half of the target."""
    return [math.ceil(part * aim(link) * link.rate) for part in (0.15, 0.4)]


def longer(link):
    """Queues of the target of two flows and eight datagrams, and twice that."""
    of_two = 2 * target(FLOATS, link.trip, link.rate / 2) * link.rate / 2
    return [math.ceil(part * (of_two + 8)) for part in (1, 2)]
