#!/usr/bin/python3
"""How long a page takes to join over emulated links, and to send, beside a native player.

    /usr/bin/python3 web/measure.py TRIAL SITE [RUNS]

`cargo xtask web --measure` builds both and runs this. Each run has a link and a server of its own, so each
join is cold. The last column has QUIC's own congestion control beneath haulier's, at the server.
docs/PERFORMANCE.md has what it printed.
"""

import statistics
import sys
from pathlib import Path
from typing import Any, Callable, List, Optional

import page_test
from page_test import Trial, browser, play
from selenium.common.exceptions import TimeoutException

LINKS = ["cable", "mobile", "bad"]
SIZES = [256 << 10, 4 << 20]

# Until the player is let in, and until the block is there.
JOIN = """
const { load } = await import('./haulier.js');
await load();
const began = performance.now();
const client = await Client.connect(url, ticket, { certificateHashes });
const open = performance.now() - began;
await take(client, ({ type }) => type === 'block');
const there = performance.now() - began;
client.close();
done([open, there]);
"""

# 64 messages of 16 KiB, as `trial` sends them natively.
UP = """
const client = await Client.connect(url, ticket, { certificateHashes });
await take(client, ({ type }) => type === 'block');
const began = performance.now();
for (let left = 64; left > 0;) {
  try {
    client.sendMessage(new Uint8Array(16384).fill(left === 1 ? 255 : 0), { channel: 9 });
    left -= 1;
  } catch (error) {
    if (error.kind !== 'full') throw error;
    await take(client, ({ type }) => type === 'writable');
  }
}
await take(client, ({ type }) => type === 'message');
const there = performance.now() - began;
client.close();
done([0, there]);
"""


def in_page(
    driver: Any, link: str, count: int, seed: int, script: str, more: str = ""
) -> Callable[[int], Optional[float]]:
    """When it was let in, when it had all, and L; the first two are None if it failed."""
    trial = Trial(link, count, seed, more)
    driver.get(trial.told["site"] + "invitation.json")
    try:
        got = play(driver, trial, script)
    except TimeoutException:
        got = None
    times = got if isinstance(got, list) else [None, None]
    times.append(trial.told["limit_ms"])
    trial.end()
    return lambda n: times[n]


def natively(link: str, count: int, seed: int, command: str) -> Optional[float]:
    trial = Trial(link, count, seed)
    trial.command(command)
    took: Optional[float] = trial.line().get("native_ms")
    trial.end()
    return took


def median(times: List[Optional[float]]) -> str:
    there = [time for time in times if time is not None]
    failed = f" ({len(times) - len(there)} failed)" if len(there) < len(times) else ""
    return f"{statistics.median(there):7.0f}{failed}" if there else f"      -{failed}"


def main() -> None:
    page_test.TRIAL, page_test.SITE = Path(sys.argv[1]), Path(sys.argv[2])
    seeds = range(1, 1 + (int(sys.argv[3]) if len(sys.argv) > 3 else 5))
    driver = browser()
    print("link       bytes    L ms page in page all native page, cubic")
    cases = [(f"{size:8}", size, JOIN, "native") for size in SIZES]
    cases.append(("1 MiB up", 1000, UP, "native-up"))
    for link in LINKS:
        for name, count, script, command in cases:
            joined = [in_page(driver, link, count, seed, script) for seed in seeds]
            native = [natively(link, count, seed, command) for seed in seeds]
            # 4 MiB take more than a minute where much is lost.
            held = seeds if count == SIZES[0] else []
            cubic = [in_page(driver, link, count, seed, script, "cubic") for seed in held]
            columns = [median([at(n) for at in joined]) for n in (0, 1)]
            columns += [median(native), median([at(1) for at in cubic])]
            limit = joined[0](2) or 0.0
            print(f"{link:7} {name} {limit:7.0f}", *columns, flush=True)
    driver.quit()


if __name__ == "__main__":
    main()
