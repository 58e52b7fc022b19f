"""A load test: many clients join a server at once, from one script and one thread of Python.

python load.py                          against a server of its own
python load.py --ticket haulier1:...    against yours
python load.py --clients 500
"""

import argparse
import asyncio
import time
from typing import List, Optional

from haulier import Block, Client, CloseCode, Event, HaulierError, Server, ServerEvent


class NoWorld(Exception):
    """A client was closed before the world was here."""


async def join(ticket: str) -> float:
    """How long it took until the world was here, in seconds."""
    started = time.perf_counter()
    # One network thread for all of them, not one for each.
    client = Client.connect(ticket, request=b"name=load", shared_thread=True)
    await client.connected_async()
    async for event in client:
        if isinstance(event, Event.Block):
            took = time.perf_counter() - started
            await client.finish_async()
            return took
        if isinstance(event, Event.Closed):
            raise NoWorld(event.text)
    raise NoWorld("it ended without a world")


async def serve(server: Server, world: Block) -> None:
    """Sends the world to each."""
    async for id, event in server:
        if isinstance(event, ServerEvent.Connecting):
            try:
                server.send_block(id, world)
            except HaulierError as error:
                # This client takes only smaller blocks, or has just left. The others get their world.
                server.close(id, CloseCode.NOT_ACCEPTED, f"our world is {error}")


async def load(clients: int, world_bytes: int, ticket: Optional[str]) -> List[float]:
    """How long each join took."""
    with Server.bind("127.0.0.1:0", protocol_id=7) as server:
        serving = asyncio.ensure_future(serve(server, Block(1, bytes(world_bytes))))
        joins = (join(ticket or str(server.ticket())) for _ in range(clients))
        took = await asyncio.gather(*joins)
        serving.cancel()
        return sorted(took)


def main() -> None:
    """Prints how long joins took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--bytes", type=int, default=65_536, help="of the world; of an own server")
    parser.add_argument("--ticket", help="of another server")
    args = parser.parse_args()
    try:
        took = asyncio.run(load(args.clients, args.bytes, args.ticket))
    except HaulierError as error:
        raise SystemExit(f"{error.kind}: {error}")
    except NoWorld as error:
        raise SystemExit(f"a client got no world: {error}")
    median, slow, slowest = took[len(took) // 2], took[len(took) * 95 // 100], took[-1]
    print(f"{len(took)} clients have joined: half within {median:.3f} s, 95 of 100 within", end=" ")
    print(f"{slow:.3f} s, all within {slowest:.3f} s")


if __name__ == "__main__":
    main()
