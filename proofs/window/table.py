"""The list of queries, with the verdict that is expected of each."""

import dataclasses
import typing

import z3

import queries
import searches
import terms


@dataclasses.dataclass
class Query:
    """A name, what it says, the expected verdict, and at most how long it takes in seconds."""

    name: str
    claim: str
    expected: str
    takes: int
    run: typing.Callable[[float], terms.Answer]


QUERIES = [
    Query("keeps", "what a flow keeps in the queue pays for as long a queue or jitter: its rate does not fall",
          "holds", 5, queries.keeps_its_rate),
    Query("floor", "no flow falls below the rate at which what it keeps takes the longest that a round waits",
          "holds", 30, queries.floor),
    Query("queue-alone", "alone, the queue is the target at most",
          "holds", 5, queries.queue_alone),
    Query("queue-grows", "and a quarter of a round trip more while it grows",
          "holds", 5, lambda seconds: queries.queue_alone(seconds, grows=True)),
    Query("grows", "jitter of less than half of the target is no queue, and a flow grows",
          "holds", 5, lambda seconds: queries.grows(seconds, z3.Q(1, 2))),
    Query("grows-more", "the same with jitter of up to the target",
          "counterexample", 5, lambda seconds: queries.grows(seconds, 1)),
    Query("rest", "flows at rest differ by 3 to 1 at most, with jitter of a quarter of the queue",
          "holds", 60, lambda seconds: queries.rest(3, z3.Q(1, 4), seconds)),
    Query("rest-more", "the same with jitter of half of the queue",
          "counterexample", 60, lambda seconds: queries.rest(3, z3.Q(1, 2), seconds)),
    Query("rest-least", "flows that keep the least and see the same path have the same rate",
          "holds", 5, queries.least_is_equal),
    Query("cut-fits", "what flows send after a cut fits the path",
          "holds", 5, queries.cut_fits),
    Query("low", "a low round sends less than the link passes, whatever was believed",
          "holds", 5, queries.low_round_is_low),
    Query("search-use", "from any beginning, 0.8 is used with jitter up to the target",
          "holds", 5, searches.use_alone),
    Query("search-losses", "alone, at most a twentieth is lost after the start, whatever the queue",
          "holds", 5, searches.losses_alone),
    Query("search-equal", "two flows without jitter become equal",
          "holds", 2, lambda _: searches.equal(2)),
    Query("search-equal-3", "three flows without jitter become equal",
          "holds", 2, lambda _: searches.equal(3)),
    Query("search-unequal", "two flows differ by 4 to 1 at most with jitter of half of the target",
          "holds", 5, lambda _: searches.unequal(2, 0.5, 4)),
    Query("search-jitter", "two flows differ by 4 to 1 at most with jitter of the target",
          "counterexample", 5, lambda _: searches.unequal(2, 1.0, 4)),
    Query("search-unequal-3", "three flows differ by 4 to 1 at most with jitter of half of the target",
          "holds", 15, lambda _: searches.unequal(3, 0.5, 4)),
    Query("search-long", "two flows lose no more than 0.02 behind queues that hold their target",
          "holds", 5, lambda _: searches.short_queue(searches.Flows.loss, 0.02, "lost", searches.longer)),
    Query("search-short", "behind queues of less than half of the target they lose no more than 0.05",
          "counterexample", 5,
          lambda _: searches.short_queue(searches.Flows.loss, 0.05, "lost", searches.shorter)),
    Query("search-starved", "and differ by 10 to 1 at most, whomever the queue drops",
          "counterexample", 5,
          lambda _: searches.short_queue(searches.Flows.ratio, 10, "ratio", searches.shorter)),
]
