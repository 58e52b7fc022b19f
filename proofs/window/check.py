#!/usr/bin/env python3
"""Checks the law of long transfers by machine: `python3 proofs/window/check.py --help`.

Every query has the verdict that is expected of it; another one is a failure, a counterexample that is gone
too. `README.md` says what the queries mean, and what they do not.
"""

import argparse
import json
import sys
import time

import trace as golden

# The maximum time of one query, in seconds: the limit that CCAC uses.
LONGEST = 600


def listed():
    """The queries, cheap ones first. Z3 is needed from here on."""
    from table import QUERIES

    return QUERIES


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budget", type=float, default=3600.0, metavar="SECONDS",
                        help="what all queries may take together; those that take longer are not run")
    parser.add_argument("--query", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="say what the queries are")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    parser.add_argument("--write-trace", action="store_true", help="write the golden trace, and ask nothing")
    return parser.parse_args()


def trace_line():
    """That the model still writes the trace which the Rust test replays."""
    differs = golden.differs()
    return {"query": "trace", "verdict": "differs: " + differs if differs else "holds", "expected": "holds",
            "ok": differs is None, "claim": "the model writes the golden trace"}


def run(query, left):
    """One query, with at most this many seconds."""
    line = {"query": query.name, "expected": query.expected, "claim": query.claim}
    if query.takes > left:
        return {**line, "verdict": "not run", "ok": True, "note": f"takes up to {query.takes} s"}
    began = time.monotonic()
    answer = query.run(min(left, LONGEST))
    line |= {"verdict": answer.verdict, "ok": answer.verdict == query.expected}
    line["seconds"] = round(time.monotonic() - began, 1)
    return {**line, **({"state": answer.state} if answer.state else {}),
            **({"note": answer.note} if answer.note else {})}


def say(line, as_json):
    if as_json:
        print(json.dumps(line, default=str), flush=True)
        return
    mark = "" if line["ok"] else f"  FAILED, expected: {line['expected']}"
    seconds = f" in {line['seconds']} s" if "seconds" in line else ""
    print(f"{line['query']}: {line['verdict']}{seconds}{mark}\n    {line['claim']}", flush=True)
    for name, value in line.get("state", {}).items():
        print(f"    {name} = {value}")
    if "note" in line:
        print(f"    {line['note']}")


def main():
    wanted = arguments()
    if wanted.write_trace:
        golden.FILE.write_text(golden.text())
        return 0
    queries = listed()
    if wanted.list:
        for query in queries:
            print(f"{query.name:18} {query.expected:15} {query.takes:4} s  {query.claim}")
        return 0
    names = {query.name for query in queries} | {"trace"}
    if unknown := set(wanted.query or ()) - names:
        print(f"no query {', '.join(sorted(unknown))}: see --list", file=sys.stderr)
        return 2
    began, failed, count = time.monotonic(), 0, 0
    lines = [trace_line] if not wanted.query or "trace" in wanted.query else []
    lines += [
        lambda query=query: run(query, wanted.budget - (time.monotonic() - began))
        for query in queries if not wanted.query or query.name in wanted.query
    ]
    for line in lines:
        line = line()
        say(line, wanted.json)
        failed, count = failed + (not line["ok"]), count + 1
    if not wanted.json:
        print(f"{count} queries, {failed} failed, {time.monotonic() - began:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
