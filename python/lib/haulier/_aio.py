"""asyncio: what haulier awaits, awaited by an event loop.

A network thread of haulier writes a byte into a pipe, and the loop reads it as it reads a socket. There is one
pipe for each loop, and no thread. Loops with `add_reader` have what it takes: asyncio's on Unix, and uvloop.
"""

from __future__ import annotations

import asyncio
from typing import Any, Dict
from weakref import WeakKeyDictionary

from ._haulier import Operation, Wakeups


class _Bridge:
    """What one loop awaits. It does not hold the loop, so that both go together."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.wakeups = Wakeups()
        self._waiting: Dict[int, asyncio.Future[None]] = {}
        self._next = 0
        loop.add_reader(self.wakeups.fileno(), self._on_ready)

    def _on_ready(self) -> None:
        for number in self.wakeups.take():
            future = self._waiting.get(number)
            if future is not None and not future.done():
                future.set_result(None)

    async def run(self, operation: Operation) -> Any:
        """Awaits an operation."""
        while True:
            self._next += 1
            number = self._next
            done = operation.poll(self.wakeups, number)
            if done is not None:
                return done[0]
            # Its number is looked at by this thread, so not before it waits.
            future = asyncio.get_running_loop().create_future()
            self._waiting[number] = future
            try:
                await future
            finally:
                del self._waiting[number]


_bridges: WeakKeyDictionary[asyncio.AbstractEventLoop, _Bridge] = WeakKeyDictionary()


async def run(operation: Operation) -> Any:
    """The result of an operation."""
    loop = asyncio.get_running_loop()
    bridge = _bridges.get(loop)
    if bridge is None:
        bridge = _bridges[loop] = _Bridge(loop)
    return await bridge.run(operation)


async def run_next(operation: Operation) -> Any:
    """The next of an `async for`, which ends at None."""
    found = await run(operation)
    if found is None:
        raise StopAsyncIteration
    return found
