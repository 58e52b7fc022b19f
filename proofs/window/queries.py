"""What is asked of Z3. Each function returns an answer; `check.py` has the list with the expected verdicts.

A flow has a rate `passes` that it takes for what passes, the round trip `trip` that it takes for the path's,
and the window that the rules make of them. A round takes as long as the path does, and the queue; what was
in flight arrives in it. Links, states and jitter are any that a query does not bound."""

import z3

import rules
from terms import Terms, ask


class Flow:
    """What a flow believes, and the window that follows without growth and losses."""

    def __init__(self, of, name=""):
        self.passes, self.trip = z3.Real(f"passes{name}"), z3.Real(f"trip{name}")
        self.window = rules.wanted(of, self.trip, self.passes, 0)
        self.kept = self.window - self.passes * self.trip

    def given(self):
        return [self.passes > 0, self.trip > 0]

    def show(self):
        return {str(self.passes): self.passes, str(self.trip): self.trip, "window": self.window}


def keeps_its_rate(seconds):
    """Any link and any number of flows: where what a round took longer than the path, by queue and jitter, is
    at most what the flow keeps in the queue, at least as much passes as before."""
    of, flow, waits = Terms(), None, z3.Real("waits")
    flow = Flow(of)
    given = [*flow.given(), waits >= 0, waits * flow.passes <= flow.kept]
    arrived = flow.window / (flow.trip + waits)
    return ask(given, arrived < flow.passes, seconds, {**flow.show(), "waits": waits}, of)


def floor(seconds):
    """Any link without losses, any number of flows: whatever it does, no flow that sends less than its floor
    falls any further; the floor is the rate at which what it keeps takes the longest that a round waits."""
    of, waits, least = Terms(), z3.Real("waits"), z3.Real("least")
    flow = Flow(of)
    kept = rules.queue(of, least * flow.trip)
    given = [*flow.given(), waits > 0, least > 0, least * waits <= kept, flow.passes >= least]
    arrived = flow.window / (flow.trip + waits)
    return ask(given, arrived < least, seconds, {**flow.show(), "waits": waits, "least": least}, of)


def queue_alone(seconds, grows=False):
    """A flow that has a link alone and knows its rate: after a round that saw a queue, what waits is what it
    keeps; while it grows, a quarter of what passes in a round trip more."""
    of = Terms()
    flow = Flow(of)
    growth = z3.Real("growth")
    window = rules.wanted(of, flow.trip, flow.passes, growth if grows else 0)
    given = [*flow.given(), growth >= 0, growth <= rules.MAX_GROWTH]
    waits = window / flow.passes - flow.trip
    most = rules.target(of, flow.trip, flow.passes) + (rules.MAX_GROWTH * flow.trip if grows else 0)
    return ask(given, waits > most, seconds, {**flow.show(), "waits": waits}, of)


def grows(seconds, part):
    """A flow alone with less than the link has, so that no queue stands: jitter of up to `part` of its target
    is no queue to it, and it grows by a sixteenth at least."""
    of, late, rate, growth = Terms(), z3.Real("late"), z3.Real("rate"), z3.Real("growth")
    flow = Flow(of)
    target = rules.target(of, flow.trip, flow.passes)
    given = [*flow.given(), growth >= 0, growth <= rules.MAX_GROWTH, late >= 0, late < part * target]
    after = rules.grown(of, growth, rules.MAX_GROWTH)
    is_queued = rules.is_queued(of, late, target, target, 0)
    wrong = z3.Or(is_queued, after < rules.FIRST_GROWTH)
    return ask(given, wrong, seconds, {**flow.show(), "late": late, "growth": growth}, of)


def rest(ratio, part, seconds):
    """Two flows of any number that rest beside each other: as much arrives in a round as before. What one
    takes for its round trip is longer than the path by a jitter that the other does not see, of up to `part`
    of the queue that both wait in, and of the path."""
    of = Terms()
    trip, waits = z3.Reals("path waits")
    flows = [Flow(of, f"_{n}") for n in (1, 2)]
    given = [trip > 0, waits > 0]
    for flow in flows:
        given += [*flow.given(), flow.trip >= trip, flow.trip <= trip + part * waits]
        given += [flow.trip <= (1 + part) * trip, flow.window == flow.passes * (trip + waits)]
        # Below this the least of a few datagrams makes flows equal, whatever they see.
        given += [flow.passes * flow.trip >= (rules.MIN_QUEUED / rules.QUEUED) ** 2]
    one, other = flows
    shown = {**one.show(), **other.show(), "path": trip, "waits": waits}
    return ask(given, one.passes > ratio * other.passes, seconds, shown, of)


def least_is_equal(seconds):
    """Two flows that rest beside each other with the least that a flow keeps, and see the same path: they have
    the same rate."""
    of = Terms()
    waits = z3.Real("waits")
    flows = [Flow(of, f"_{n}") for n in (1, 2)]
    given = [waits > 0, flows[0].trip == flows[1].trip]
    for flow in flows:
        given += [*flow.given(), flow.window == flow.passes * (flow.trip + waits)]
        given += [flow.kept == rules.MIN_QUEUED]
    one, other = flows
    return ask(given, one.passes != other.passes, seconds, {**one.show(), **other.show()}, of)


def cut_fits(seconds):
    """Any number of flows that overflow a queue, each of which loses as large a part: after the cut what they
    send in a round trip, without what they keep, fits the path and the queue that stood."""
    sent, rate, trip, buffer = z3.Reals("sent rate trip buffer")
    holds = rate * (trip + buffer)
    excess = 1 - holds / sent
    given = [rate > 0, trip > 0, buffer >= 0, sent > holds]
    # What passed in this round, or before: what was sent in it at most.
    passes = z3.Real("passes")
    given += [passes <= sent / (trip + buffer), passes > 0]
    after = (1 - excess) * passes * trip
    shown = {str(it): it for it in (sent, rate, trip, buffer, passes)}
    return ask(given, after > rate * trip, seconds, shown)


def low_round_is_low(seconds):
    """Any link that loses a part of its own, known or not, and a rate that was believed to be any higher: a low
    round sends less than the link passes, so that what is lost in it is the path's own."""
    rate, sent, lost, own, passes, last = z3.Reals("rate sent lost believed passes last")
    arrives = z3.Real("arrives")
    # What gets through the bottleneck in a second, less what is lost behind it.
    given = [rate > 0, sent > 0, lost >= 0, lost < 1, own >= 0, own <= z3.Q(9, 10)]
    given += [arrives == (1 - lost) * z3.If(sent < rate, sent, rate), last == arrives / (1 - own)]
    given += [passes >= last, last > 0]
    part = rules.LOW * (1 - own) * z3.If(last <= passes, last / passes, 1)
    shown = {str(it): it for it in (rate, sent, lost, own, passes, last)}
    return ask(given, part * passes > rules.LOW * rate, seconds, shown)
