"""Clients and servers that an event loop awaits, without a thread for any of them."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

import haulier
from conftest import LIMIT_S, PROTOCOL_ID, Host
from haulier import Block, Client, CloseCode, Event, Server, ServerEvent


async def serve(server: Server, world: Block, players: int) -> int:
    """Sends the world to each, until so many have left."""
    left = 0
    async for id, event in server:
        if isinstance(event, ServerEvent.Connecting):
            server.send_block(id, world)
        elif isinstance(event, Event.Closed):
            left += 1
            if left == players:
                break
    return left


async def join(ticket: str, shared_thread: bool = False) -> bytes:
    """What the server sends."""
    client = Client.connect(ticket, shared_thread=shared_thread)
    await client.connected_async()
    async for event in client:
        if isinstance(event, Event.Block):
            closed = await client.finish_async(LIMIT_S)
            assert closed.code == CloseCode.DONE
            return event.data
    raise AssertionError("it ended without a world")


def limited(coroutine: object) -> object:
    """Runs it, and not for ever."""
    return asyncio.run(asyncio.wait_for(coroutine, 3 * LIMIT_S))  # type: ignore[arg-type]


@pytest.mark.parametrize("shared_thread", [False, True])
def test_many_join_in_one_loop(shared_thread: bool) -> None:
    """The server and 20 clients, one thread of Python."""

    async def all_of_them() -> None:
        with Server.bind("127.0.0.1:0", PROTOCOL_ID) as server:
            world = Block(1, os.urandom(200_000))
            serving = asyncio.ensure_future(serve(server, world, 20))
            ticket = str(server.ticket())
            threads = threading.active_count()
            got = await asyncio.gather(*(join(ticket, shared_thread) for _ in range(20)))
            assert threading.active_count() == threads
            assert all(data == world.data for data in got)
            assert await serving == 20

    limited(all_of_them())


def test_what_is_given_up_loses_no_event(host: Host) -> None:
    async def play() -> None:
        client = Client.connect(host.ticket)
        await client.connected_async()
        seen: list[object] = []
        while not any(isinstance(event, Event.Block) for event in seen):
            try:
                # It is cancelled nearly always before anything came.
                seen.append(await asyncio.wait_for(client.next_event(), 0.001))
            except asyncio.TimeoutError:
                pass
        assert [type(event) for event in seen if isinstance(event, Event.Connected)] == [Event.Connected]
        client.close()

    limited(play())


def test_errors_are_raised_where_it_is_awaited() -> None:
    async def ask() -> None:
        with Server.bind("127.0.0.1:0", PROTOCOL_ID) as server:
            ticket = str(server.ticket())
        del server
        client = Client.connect(ticket)
        with pytest.raises(haulier.UnreachableError):
            await client.connected_async()
        assert [type(event) async for event in client] == [Event.Closed]

    limited(ask())


def test_one_loop_after_the_other(host: Host) -> None:
    """What a loop awaited belongs to that loop alone."""
    ticket = str(host.ticket)
    for _ in range(3):
        assert host.world is not None
        assert limited(join(ticket)) == host.world.data


def test_two_tasks_share_the_events_of_a_client(host: Host) -> None:
    async def play() -> None:
        client = Client.connect(host.ticket)
        await client.connected_async()
        seen: list[object] = []

        async def read() -> None:
            async for event in client:
                seen.append(event)
                if isinstance(event, Event.Message) and event.data == b"99":
                    client.close()

        readers = [asyncio.ensure_future(read()) for _ in range(2)]
        for number in range(100):
            client.send_message(str(number).encode())
        await asyncio.gather(*readers)
        messages = [event for event in seen if isinstance(event, Event.Message)]
        assert sorted(int(message.data) for message in messages) == list(range(100))

    limited(play())
