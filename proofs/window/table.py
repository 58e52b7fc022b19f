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
    Query("follow", "one step of `follow` is bounded and leads toward the target",
          "holds", 2, queries.follow_is_bounded),
    Query("follow-half", "within twice the target `follow` goes half of the way down",
          "counterexample", 2, queries.follow_goes_half),
    Query("cut-fits", "what a cut leaves fits the path and half of its queue",
          "holds", 2, queries.cut_fits),
    Query("queue-alone", "alone, the queue is a quarter of a round trip and 1.25 targets at most",
          "holds", 15, queries.queue_is_bounded),
    Query("judge", "what a round leaves of a window at worst, with jitter up to the target",
          "holds", 2, queries.judge_at_worst),
    Query("judge-fast", "the same for targets of eight datagrams at least",
          "holds", 2, lambda seconds: queries.judge_at_worst(seconds, times=2, most_aim=2)),
    Query("use-alone", "alone, 0.8 is used for good, with jitter up to the target of a third of a round trip",
          "holds", 5, lambda seconds: queries.use(seconds, flows=1)),
    Query("use-alone-fast", "the same for targets of eight datagrams at least, up to two round trips",
          "holds", 10, lambda seconds: queries.use(seconds, flows=1, times=2, most_aim=2)),
    Query("use-any", "any number of flows use 0.8 for good while they hold 1.25 of the path at most",
          "holds", 5, lambda seconds: queries.use(seconds, bound=z3.Q(5, 4))),
    Query("use-any-long", "the same while they hold 1.5",
          "unknown", 240, lambda seconds: queries.use(min(seconds, 240), bound=z3.Q(3, 2))),
    Query("rest", "flows at rest differ by 4 to 1 at most, with jitter up to two thirds of the target",
          "holds", 2, lambda seconds: queries.rest(4, z3.Q(2, 3), seconds)),
    Query("rest-more", "the same with jitter up to twice the target",
          "counterexample", 2, lambda seconds: queries.rest(4, 2, seconds)),
    Query("jitter", "with jitter up to 6 ms a flow alone never rests below 0.8",
          "counterexample", 2, queries.starved_by_jitter),
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
    Query("floor", "no flow falls below the rate whose target is the longest queue",
          "holds", 150, queries.floor),
]
