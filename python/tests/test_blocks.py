"""Blocks: chunk by chunk, declined, cancelled, here already; and that none is copied on its way in."""

from __future__ import annotations

import os
import sys
from typing import List, Tuple

import pytest

import haulier
from conftest import LIMIT_S, PROTOCOL_ID, Host, until
from haulier import Block, BlockHandle, Client, ConnectionConfig, ConnectionId, Event, Server, ServerEvent

CHUNK_BYTES = 256 << 10


def test_bytes_are_not_copied() -> None:
    data = os.urandom(1_000_000)
    before = sys.getrefcount(data)
    block = Block(1, data)
    assert sys.getrefcount(data) == before + 1, "it holds the object"
    del block
    assert sys.getrefcount(data) == before, "and lets it go"


def test_the_first_block_goes_to_each_who_joins() -> None:
    """With the answer to a request: the program has not looked at its server."""
    data = os.urandom(300_000)
    with Server.bind("127.0.0.1:0", PROTOCOL_ID, first_block=Block(2**62 - 1, data)) as server:
        for _ in range(2):
            with Client.connect(server.ticket()) as client:
                came = until(client, lambda event: isinstance(event, Event.Block))
                assert came == Event.Block(2**62 - 1, data)


def test_a_first_block_has_a_tag_that_can_be_said() -> None:
    with pytest.raises(haulier.UsageError, match="`first_block` must have a tag of at most 2.62 - 1"):
        Server.bind("127.0.0.1:0", PROTOCOL_ID, first_block=Block(2**62, b"world"))


@pytest.mark.parametrize("delivery", ["chunks", "in-order"])
def test_a_block_comes_chunk_by_chunk(delivery: str) -> None:
    """So a client never holds all of it."""
    world = Block(1, os.urandom(10 * CHUNK_BYTES + 5))
    host = Host(Server.bind("127.0.0.1:0", PROTOCOL_ID), world)
    config = ConnectionConfig(delivery=delivery, max_unread_block_bytes=2 * CHUNK_BYTES)
    got = bytearray(world.length_bytes)
    offsets = []
    with Client.connect(host.ticket, config=config) as client:
        while True:
            event = client.wait(LIMIT_S)
            if isinstance(event, Event.Chunk):
                assert event.tag == 1 and len(event.data) <= CHUNK_BYTES
                offsets.append(event.offset_bytes)
                got[event.offset_bytes : event.offset_bytes + len(event.data)] = event.data
            elif isinstance(event, Event.BlockComplete):
                break
            else:
                assert event is not None and not isinstance(event, Event.Block)
    assert bytes(got) == world.data and len(offsets) == 11
    if delivery == "in-order":
        assert offsets == sorted(offsets)
    host.close()


@pytest.mark.parametrize("delivery", ["chunks", "in-order"])
def test_chunks_wait_for_those_before_them_only_in_order(delivery: str) -> None:
    """The end of the block is sent first."""
    server = Server.bind("127.0.0.1:0", PROTOCOL_ID, config=ConnectionConfig(delivery=delivery))
    client = Client.connect(server.ticket())
    joined(server, client)
    client.set_max_rate_bps(10_000_000)
    block = client.send_block(Block(1, os.urandom(8 * CHUNK_BYTES)))
    assert client.prefer_range(block, 6 * CHUNK_BYTES, 8 * CHUNK_BYTES)
    client.set_max_rate_bps(1_000_000_000)
    offsets: List[int] = []
    while len(offsets) < 8:
        found = server.wait(LIMIT_S)
        assert found is not None, "nothing came in time"
        if isinstance(found[1], Event.Chunk):
            offsets.append(found[1].offset_bytes)
    assert (offsets == sorted(offsets)) == (delivery == "in-order")


def test_settings_of_a_delivery() -> None:
    with pytest.raises(haulier.UsageError, match='"whole" is no delivery: it is blocks, chunks or in-order'):
        Server.bind("127.0.0.1:0", PROTOCOL_ID, config=ConnectionConfig(delivery="whole"))


def joined(server: Server, client: Client) -> ConnectionId:
    """The connection of the only client."""
    while True:
        event = server.wait(LIMIT_S)
        assert event is not None
        if isinstance(event[1], Event.Connected):
            client.connected(LIMIT_S)
            return event[0]


def until_at(server: Server, wanted: type) -> object:
    """The first event of this sort at a server."""
    while True:
        event = server.wait(LIMIT_S)
        assert event is not None, "nothing came in time"
        if isinstance(event[1], wanted):
            return event[1]


@pytest.fixture
def pair() -> Tuple[Server, Client, ConnectionId]:
    """A server and its client."""
    server = Server.bind("127.0.0.1:0", PROTOCOL_ID)
    client = Client.connect(server.ticket())
    return server, client, joined(server, client)


def slow(server: Server, id: ConnectionId) -> BlockHandle:
    """A block of the server that is announced, and not there for a while."""
    server.set_max_rate_bps(id, 2_000_000)
    return server.send_block(id, Block(7, os.urandom(5_000_000)))


def test_a_block_is_declined(pair: Tuple[Server, Client, ConnectionId]) -> None:
    server, client, id = pair
    handle = slow(server, id)
    announced = until(client, lambda event: isinstance(event, Event.BlockAnnounced))
    assert isinstance(announced, Event.BlockAnnounced)
    assert (announced.tag, announced.length_bytes) == (7, 5_000_000)
    assert client.decline_block(announced.block, 9)
    assert until_at(server, Event.BlockDeclined) == Event.BlockDeclined(handle, 9)


def test_a_block_is_cancelled(pair: Tuple[Server, Client, ConnectionId]) -> None:
    server, client, id = pair
    handle = slow(server, id)
    until(client, lambda event: isinstance(event, Event.BlockAnnounced))
    progress = client.receiving()
    assert progress is not None and (progress.tag, progress.length_bytes) == (7, 5_000_000)
    assert server.cancel_block(id, handle, 8)
    cancelled = until(client, lambda event: isinstance(event, Event.BlockCancelled))
    assert isinstance(cancelled, Event.BlockCancelled) and (cancelled.tag, cancelled.code) == (7, 8)
    assert not server.cancel_block(id, handle), "it is gone"


def test_a_block_that_is_here_does_not_come(pair: Tuple[Server, Client, ConnectionId]) -> None:
    server, client, id = pair
    block = Block(7, os.urandom(5_000_000))
    assert client.have_block(block.digest)
    server.send_block(id, block)
    assert until(client, lambda event: isinstance(event, Event.BlockHere)) == Event.BlockHere(7)
    assert client.wire_bytes.received < 1_000_000


def test_a_block_that_is_paused_waits(pair: Tuple[Server, Client, ConnectionId]) -> None:
    _server, client, _id = pair
    # So slow that it cannot be gone before it is paused.
    client.set_max_rate_bps(1_000_000)
    paused = client.send_block(Block(1, os.urandom(2_000_000)))
    assert client.pause_block(paused)
    other = client.send_block(Block(2, os.urandom(20_000)))
    assert client.set_block_priority(paused, 2) and client.prefer_range(paused, 200_000, 300_000)
    assert until(client, lambda event: isinstance(event, Event.BlockSent)) == Event.BlockSent(other)
    client.set_max_rate_bps(1_000_000_000)
    assert client.resume_block(paused)
    assert until(client, lambda event: isinstance(event, Event.BlockSent)) == Event.BlockSent(paused)
    assert client.all_acked and not client.pause_block(paused)


def test_a_game_polls_once_a_frame(pair: Tuple[Server, Client, ConnectionId]) -> None:
    """`poll` never waits: it is called until nothing is there."""
    server, client, id = pair
    numbers: List[int] = []
    frames = 0
    while len(numbers) < 100:
        if frames < 100:
            client.send_message(str(frames).encode())
        frames += 1
        while (event := client.poll()) is not None:
            if isinstance(event, Event.Message):
                numbers.append(int(event.data))
        while (request := server.poll()) is not None:
            assert request[0] == id and not isinstance(request[1], ServerEvent.Connecting)
            if isinstance(request[1], Event.Message):
                server.send_message(id, request[1].data)
    assert numbers == list(range(100))
