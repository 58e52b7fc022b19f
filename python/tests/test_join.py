"""A client and a server, both in Python, over loopback."""

from __future__ import annotations

import array
import builtins
import gc
import os
import select
import socket
import sys
import threading
import time

import pytest

import haulier
from conftest import LIMIT_S, PROTOCOL_ID, Host, until
from haulier import Block, Client, CloseCode, ConnectionConfig, Event, Server, ServerEvent


def test_a_player_joins_and_plays(host: Host) -> None:
    with Client.connect(str(host.ticket), request=b"name=alice") as client:
        client.connected(LIMIT_S)
        world = until(client, lambda event: isinstance(event, Event.Block))
        assert isinstance(world, Event.Block) and host.world is not None
        assert (world.tag, world.data) == (1, host.world.data)
        number = client.send_message(b"hello", channel=3)
        reply = until(client, lambda event: isinstance(event, Event.Message))
        assert reply == Event.Message(3, b"hello")
        assert client.send_message(b"again", channel=3, ordered=False) == number + 1
        client.send_packet(b"now")
        packet = until(client, lambda event: isinstance(event, Event.Packet))
        assert isinstance(packet, Event.Packet) and packet.data == b"now"
        stats = client.stats()
        assert stats is not None and stats.bytes_received > 300_000 and stats.suite is not None
        assert client.wire_bytes.received >= stats.bytes_received
        assert client.server == host.server.local_addr
        [id] = host.server.connections()
        assert host.server.address_of(id) == client.local_addr
        assert host.server.stats().accepted == 1
    assert client.is_closed
    assert host.requests == [b"name=alice"]


def test_a_block_goes_up_and_comes_back(host: Host) -> None:
    with Client.connect(host.ticket) as client:
        client.connected(LIMIT_S)
        data = os.urandom(1_000_000)
        block = Block(8, data)
        handle = client.send_block(block, priority=3)
        sent = until(client, lambda event: isinstance(event, Event.BlockSent))
        assert sent == Event.BlockSent(handle) and {handle: 1}[handle] == 1
        back = until(client, lambda event: isinstance(event, Event.Block) and event.tag == 9)
        assert isinstance(back, Event.Block) and back.data == data
        assert (block.tag, block.length_bytes, len(block.digest)) == (8, 1_000_000, 32)


def test_events_are_taken_apart_by_match(host: Host) -> None:
    """Python 3.9 has no `match`, so it is looked at what `match` uses."""
    assert Event.Block.__match_args__ == ("tag", "data")
    assert ServerEvent.Connecting.__match_args__ == ("request", "token")
    with Client.connect(host.ticket) as client:
        seen: list[object] = []
        for event in client:
            match event:
                case Event.Block(tag, data):
                    seen.append((tag, len(data)))
                    client.close(CloseCode.FIRST_OF_APPLICATION, "seen enough")
                case Event.Closed(kind, code):
                    seen.append((kind, code))
        assert seen == [(1, 300_000), ("closed", 256)]
        assert client.wait() is None, "there is nothing after the end"


def test_who_does_not_look_at_the_bytes_does_not_print_them() -> None:
    assert repr(Event.Block(1, b"secret")) == "Event.Block(tag=1)"


def test_what_has_a_buffer_can_be_sent() -> None:
    numbers = array.array("I", [1, 2, 3])
    mutable = bytearray(b"mutable")
    block = Block(1, mutable)
    mutable[:] = b"changed"
    assert block.data == b"mutable", "what can change is copied"
    assert Block(1, numbers).data == numbers.tobytes()
    assert Block(1, memoryview(b"abcdef")[1:3]).data == b"bc"
    for wrong in ("text", 5, [1, 2]):
        with pytest.raises(TypeError, match="bytes are needed"):
            Block(1, wrong)  # type: ignore[arg-type]


def test_bytes_are_held_while_they_are_sent(host: Host) -> None:
    """The block holds the object of Python: it is not copied, and not freed too early."""
    with Client.connect(host.ticket) as client:
        client.connected(LIMIT_S)
        data = os.urandom(2_000_000)
        copy = bytearray(data)
        client.send_block(Block(4, data))
        del data
        gc.collect()
        back = until(client, lambda event: isinstance(event, Event.Block) and event.tag == 5)
        assert isinstance(back, Event.Block) and back.data == copy


def nobody() -> str:
    """The ticket of a server that is gone."""
    with Server.bind("127.0.0.1:0", PROTOCOL_ID) as server:
        return str(server.ticket())


def silent() -> socket.socket:
    """An address that takes datagrams and says nothing."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.bind(("127.0.0.1", 0))
    return bound


def test_a_text_that_is_no_ticket() -> None:
    with pytest.raises(haulier.CredentialsError, match="ticket") as error:
        Client.connect("haulier1:nonsense")
    assert error.value.kind == "credentials" and isinstance(error.value, ValueError)


def test_nobody_listens() -> None:
    client = Client.connect(nobody())
    with pytest.raises(haulier.UnreachableError, match="nobody listens") as error:
        client.connected(LIMIT_S)
    assert error.value.kind == "unreachable" and isinstance(error.value, ConnectionError)
    closed = until(client, lambda event: isinstance(event, Event.Closed))
    assert isinstance(closed, Event.Closed) and closed.kind == "unreachable"
    assert [attempt.kind for attempt in client.attempts] == ["unreachable"]


def test_nobody_answers() -> None:
    with silent() as nobody:
        host, port = nobody.getsockname()
        soon = ConnectionConfig(handshake_timeout_s=0.2)
        client = Client.connect(f"{host}:{port}", protocol_id=7, open=True, config=soon)
        with pytest.raises(haulier.NoAnswerError) as error:
            client.connected(LIMIT_S)
        assert error.value.kind == "no-answer"


def test_not_connected_in_time() -> None:
    with silent() as nobody:
        host, port = nobody.getsockname()
        client = Client.connect(f"{host}:{port}", protocol_id=7, open=True)
        with pytest.raises(haulier.TimeoutError) as error:
            client.connected(0.05)
        assert error.value.kind == "timeout" and isinstance(error.value, builtins.TimeoutError)
        client.close()


def test_another_secret(host: Host) -> None:
    client = Client.connect(host.server.local_addr, protocol_id=PROTOCOL_ID, secret=bytes(32))
    with pytest.raises(haulier.RefusedError, match="another secret") as error:
        client.connected(LIMIT_S)
    assert (error.value.kind, error.value.name) == ("refused", "key")


def test_a_server_with_an_identity_proves_it() -> None:
    secret = haulier.random_secret()
    with Server.bind("127.0.0.1:0", PROTOCOL_ID, secret=secret, identity=haulier.random_secret()) as server:
        host = Host(server)
        identity = server.ticket().identity
        assert identity is not None and len(identity) == 32

        def join(identity: bytes) -> Client:
            address, config = server.local_addr, ConnectionConfig(handshake_timeout_s=2)
            return Client.connect(
                address, protocol_id=PROTOCOL_ID, secret=secret, identity=identity, config=config
            )

        with join(identity) as client:
            client.connected(LIMIT_S)
        # What is encrypted for another server this one cannot read.
        with pytest.raises(haulier.NoAnswerError):
            join(bytes(range(32))).connected(LIMIT_S)
        host.close()


def test_a_full_server_has_a_line() -> None:
    host = Host(Server.bind("127.0.0.1:0", PROTOCOL_ID, connections=1))
    with Client.connect(host.ticket) as first:
        first.connected(LIMIT_S)
        second = Client.connect(host.ticket)
        queued = until(second, lambda event: isinstance(event, Event.Queued))
        assert isinstance(queued, Event.Queued) and queued.place == 1
    second.connected(LIMIT_S)
    second.close()
    host.close()


def test_the_application_refuses(host: Host) -> None:
    client = Client.connect(host.ticket, request=b"no")
    closed = until(client, lambda event: isinstance(event, Event.Closed))
    assert isinstance(closed, Event.Closed)
    assert (closed.kind, closed.code, closed.reason) == ("closed", 300, "not today")
    assert [type(event) for event in client] == []


def test_settings_that_make_no_sense(host: Host) -> None:
    with pytest.raises(haulier.UsageError, match="idle_timeout") as error:
        Client.connect(host.ticket, config=ConnectionConfig(idle_timeout_s=0.0))
    assert error.value.kind == "usage" and isinstance(error.value, ValueError)
    with pytest.raises(haulier.UsageError, match='"slowly" is no urgency'):
        Client.connect(host.ticket, config=ConnectionConfig(urgency="slowly"))
    with pytest.raises(haulier.UsageError, match="no length of time"):
        Client.connect(host.ticket, max_time_in_line_s=-1)
    with pytest.raises(haulier.UsageError, match="it must have 32"):
        Client.connect("127.0.0.1:9", protocol_id=1, secret=b"short")
    with pytest.raises(haulier.UsageError, match="protocol_id is missing"):
        Client.connect("127.0.0.1:9", open=True)
    with pytest.raises(haulier.UsageError, match="with HOST:PORT alone"):
        Client.connect(host.ticket, protocol_id=1)
    with pytest.raises(haulier.UsageError, match="is an address: give its protocol_id, and its secret or open"):
        Client.connect("127.0.0.1:9")
    with pytest.raises(haulier.CredentialsError):
        Client.connect("haulier1:9")


def test_who_leaves_by_choice_reads_of_no_codes(host: Host) -> None:
    client = Client.connect(host.ticket)
    client.connected(LIMIT_S)
    client.close()
    closed = until(client, lambda event: isinstance(event, Event.Closed))
    assert isinstance(closed, Event.Closed)
    assert (closed.text, closed.code) == ("you have left", CloseCode.DONE)
    other = Client.connect(host.ticket)
    other.connected(LIMIT_S)
    assert other.finish(LIMIT_S).text == "you have left"


def test_a_server_that_closes_has_not_left() -> None:
    server = Server.bind("127.0.0.1:0", PROTOCOL_ID)
    client = Client.connect(server.ticket())
    client.connected(LIMIT_S)
    for id, event in server:
        if isinstance(event, Event.Connected):
            server.close(id)
        elif isinstance(event, Event.Closed):
            assert event.text == "closed here: done"
            break
    until(client, lambda event: isinstance(event, Event.Closed))
    server.shut_down()


def test_sequences_wrap() -> None:
    assert haulier.is_newer(2, 1) and not haulier.is_newer(1, 2) and not haulier.is_newer(7, 7)
    assert haulier.is_newer(2, 65_530) and not haulier.is_newer(65_530, 2)


def test_what_is_not_open_takes_nothing(host: Host) -> None:
    client = Client.connect(host.ticket)
    client.close()
    with pytest.raises(haulier.NotOpenError):
        client.send_message(b"too late")


def test_a_full_queue_is_said(host: Host) -> None:
    small = ConnectionConfig(max_queued_message_bytes=1000)
    with Client.connect(host.ticket, config=small) as client:
        client.connected(LIMIT_S)
        with pytest.raises(haulier.FullError, match="max_queued_message_bytes") as error:
            while True:
                client.send_message(bytes(600))
        assert error.value.kind == "full"


def test_an_address_in_use(host: Host) -> None:
    with pytest.raises(haulier.IoError, match="cannot listen") as error:
        Server.bind(host.server.local_addr, PROTOCOL_ID)
    assert isinstance(error.value, OSError) and error.value.kind == "io"


def test_secrets_are_not_printed() -> None:
    secret = haulier.random_secret()
    with Server.bind("127.0.0.1:0", PROTOCOL_ID, secret=secret) as server:
        ticket = server.ticket()
        assert repr(ticket) == f"<Ticket to {server.local_addr}>"
        assert haulier.Ticket.parse(str(ticket)).addresses == [server.local_addr]
        assert repr(haulier.TokenKey(1, secret)) == "<TokenKey 1>"


def test_other_threads_run_while_one_waits(host: Host) -> None:
    """The wait ends only if this thread runs."""
    with Client.connect(host.ticket) as client:
        client.connected(LIMIT_S)
        until(client, lambda event: isinstance(event, Event.Block))
        ended = []
        thread = threading.Thread(target=lambda: ended.append(client.wait(3600)))
        thread.start()
        client.wake()
        thread.join(LIMIT_S)
        assert ended == [None]


def test_each_event_goes_to_one_of_several_threads(host: Host) -> None:
    client = Client.connect(host.ticket)
    client.connected(LIMIT_S)
    until(client, lambda event: isinstance(event, Event.Block))
    seen: list[bytes] = []

    def read() -> None:
        for event in client:
            if isinstance(event, Event.Message):
                seen.append(event.data)
                if len(seen) == 200:
                    client.close()

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(200):
        client.send_message(str(number).encode())
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    assert sorted(map(int, seen)) == list(range(200))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it counts what Linux lists")
def test_many_clients_share_a_thread(host: Host) -> None:
    """Threads of haulier are none of Python's, so it is the system that counts them."""
    first = Client.connect(host.ticket, shared_thread=True)
    before = len(os.listdir("/proc/self/task"))
    shared = [Client.connect(host.ticket, shared_thread=True) for _ in range(10)]
    for client in shared:
        client.connected(LIMIT_S)
    assert len(os.listdir("/proc/self/task")) == before
    own = Client.connect(host.ticket)
    assert len(os.listdir("/proc/self/task")) == before + 1
    for client in (first, own, *shared):
        client.close()


def test_a_port_is_free_when_the_last_name_of_its_server_is_gone() -> None:
    with Server.bind("127.0.0.1:0", PROTOCOL_ID) as server:
        address = server.local_addr
    with pytest.raises(haulier.IoError):
        Server.bind(address, PROTOCOL_ID)
    del server
    with Server.bind(address, PROTOCOL_ID) as again:
        assert again.local_addr == address


def test_the_end_of_a_with_waits_for_what_was_sent(host: Host) -> None:
    """And after an error it does not."""
    with Client.connect(host.ticket) as client:
        client.connected(LIMIT_S)
        client.send_block(Block(8, os.urandom(3_000_000)))
    assert client.is_closed and client.all_acked
    with pytest.raises(LookupError):
        with Client.connect(host.ticket) as client:
            client.connected(LIMIT_S)
            client.set_max_rate_bps(100_000)
            client.send_block(Block(8, os.urandom(3_000_000)))
            raise LookupError
    assert not client.all_acked


class Link:
    """A link of 0.3 s each way to a server, until it is cut."""

    def __init__(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        self._near, self._far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self._near.bind(("127.0.0.1", 0))
        self._far.connect((host, int(port)))
        self.near = "127.0.0.1:%d" % self._near.getsockname()[1]
        self._is_cut = threading.Event()
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()

    def _carry(self) -> None:
        on_the_way: list[tuple[float, socket.socket, bytes]] = []
        client = None
        while not self._is_cut.is_set():
            readable, _, _ = select.select([self._near, self._far], [], [], 0.01)
            for end in readable:
                data, sender = end.recvfrom(2000)
                client = sender if end is self._near else client
                other = self._far if end is self._near else self._near
                on_the_way.append((time.monotonic() + 0.3, other, data))
            while on_the_way and on_the_way[0][0] <= time.monotonic():
                _, to, data = on_the_way.pop(0)
                if to is self._far:
                    to.send(data)
                elif client is not None:
                    to.sendto(data, client)

    def cut(self) -> None:
        self._is_cut.set()
        self._thread.join()
        self._near.close()
        self._far.close()


def test_a_player_that_has_vanished_is_no_error_at_the_end_of_a_with() -> None:
    """Six closes that nobody answers, a second apart, take longer than the end waits."""
    with Server.bind("127.0.0.1:0", PROTOCOL_ID, open=True) as server:
        link = Link(server.local_addr)
        client = Client.connect(link.near, protocol_id=PROTOCOL_ID, open=True)
        event: object = None
        while not isinstance(event, Event.Connected):
            found = server.wait(LIMIT_S)
            assert found is not None, "nothing came in time"
            _, event = found
        link.cut()
        assert server.connections() != []
        with pytest.raises(haulier.TimeoutError):
            server.finish(0)
    client.close()


def test_a_handle_that_is_forgotten_closes_its_connection(host: Host) -> None:
    client = Client.connect(host.ticket)
    client.connected(LIMIT_S)
    del client
    gc.collect()
    other = Client.connect(host.ticket)
    other.connected(LIMIT_S)
    while not host.closed:
        other.send_message(b"?")
        until(other, lambda event: isinstance(event, Event.Message))
    assert host.closed[0].code == CloseCode.DONE
    other.finish(LIMIT_S)
