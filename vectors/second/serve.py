"""Serves one file to whoever has the ticket, which it prints (sections 3, 7 and 8).

    python3 vectors/second/serve.py FILE [--port PORT]

The smallest server that the fetching client can be tested against; it is no place for a file that matters.
"""

import argparse
import hmac
import os
import select
import socket
import sys
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import datagrams as d
import files
from blake3 import keyed
from blocks import LEAST_SLICE, NO_PROGRESS, NO_PROGRESS_CODE, Outgoing, SliceItem
from connection import Connection, Stream
from credentials import Ticket
from fetch import NOT_UNDERSTOOD
from frames import Frame
from handshake import Credentials, accept, identity_of
from parameters import VERSION
from recovery import ProtocolError
from tree import Tree
from wire import Address, Refused

PROTOCOL_ID = 0x6861756C66696C65
NOT_FOUND, NOT_ADMITTED = 256, 257
NOT_READABLE = 2
MAX_CONNECTIONS = 64
REFUSALS_PER_SECOND = 20
HANDSHAKE_TIMEOUT = 10.0
COOKIE_UNIT = 10
SLICE_OVERHEAD = 50
EARLY_REPEATS = (8, 16, 32)
LINGER_INTERVAL = 0.05
ASK_AGAIN = 1.0
MAX_LINE = 256


class Serve(Stream):
    """The offer of one file, and the file: at once, or when it is wanted. Or the close that says why not."""

    def __init__(self, connection: Connection, credit: int, repair: bool) -> None:
        self.connection, self.credit, self.repair = connection, credit, repair
        self.block: Optional[Outgoing] = None
        self.announced = False
        self.progress_number = -1
        self.slices = 0
        self.block_known = False
        self.progressed: Optional[float] = None
        self.unwanted = False
        self.data, self.roots, self.repair_per_chunk = b"", [b""], 0
        self.sent_messages = self.read_messages = 0
        self.messages: Dict[int, bytes] = {}

    def answer(
        self, request: bytes, name: str, data: bytes, roots: List[bytes], repair_per_chunk: int, now: float
    ) -> None:
        self.data, self.roots, self.repair_per_chunk = data, roots, repair_per_chunk if self.repair else 0
        try:
            verb, _, asked = files.read_request(request)
        except Refused:
            return self.connection.close(NOT_UNDERSTOOD, "", now)
        if verb == "put":
            return self.connection.close(NOT_ADMITTED, "", now)
        if asked not in ("", name):
            return self.connection.close(NOT_FOUND, "", now)
        entry = {"path": name, "kind": files.KNOWN, "mode": "0644", "modified_ns": 0, "size": len(data)}
        offer = files.write_offer([{**entry, "root": Tree(data).root}])
        self.say({"kind": "offer", "list": offer})
        if verb == "get" and data:
            self.give(0, now)

    def say(self, message: files.Row) -> None:
        frame = {"type": "message", "unordered": False, "channel": 0, "number": self.sent_messages}
        self.connection.send({**frame, "whole": None, "offset": 0, "data": files.write_message(message)})
        self.sent_messages += 1

    def give(self, want: int, now: float) -> None:
        self.block = Outgoing(0, files.write_tag("whole", 0, want), self.data, self.repair_per_chunk)
        self.unwanted = self.block.tree.root in self.roots
        self.progressed = now

    def on_message(self, frame: Frame, now: float) -> None:
        """Wants, in their order; what else a taker says changes nothing here."""
        if frame["channel"] != 0 or frame["whole"] is not None or frame["number"] > self.read_messages + 256:
            raise ProtocolError(NOT_UNDERSTOOD, "not a message of a taker")
        if frame["number"] < self.read_messages:
            return
        self.messages[frame["number"]] = frame["data"]
        while self.read_messages in self.messages:
            data = self.messages.pop(self.read_messages)
            self.read_messages += 1
            try:
                message = files.read_message(data)
            except Refused as refused:
                raise ProtocolError(NOT_UNDERSTOOD, str(refused)) from None
            if message["kind"] in ("offer", "go", "end") or message.get("file", 0) != 0:
                raise ProtocolError(NOT_UNDERSTOOD, "not a message of a taker, or no such file")
            if message["kind"] != "want":
                continue
            if message["form"] in ("any", "whole") and self.block is None:
                self.give(message["number"], now)
            else:
                self.say({"kind": "failed", "file": 0, "reason": NOT_READABLE, "text": "only whole, and once"})

    def on_frame(self, frame: Frame, now: float) -> bool:
        kind, block = frame["type"], self.block
        if kind == "message":
            self.on_message(frame, now)
        if block is None:
            return True
        if kind == "progress" and frame["packet_number"] > self.progress_number:
            self.progress_number = frame["packet_number"]
            self.credit = max(self.credit, frame["credit"])
            if frame["floor"] > 1 or (frame["floor"] or frame["entries"]) and not self.announced:
                raise ProtocolError(1, "progress of a block that was not announced")
            block.on_progress(frame, now)
        elif kind == "slices_here" and frame["block"] == 0:
            block.on_slices_here(frame, now, self.connection.recovery.rtt())
        elif kind == "chunks_here" and frame["block"] == 0:
            block.on_chunks_here(frame, now)
        elif kind == "root_here":
            self.unwanted = self.unwanted or frame["root"] == block.tree.root
        elif kind == "decline" and frame["block"] == 0:
            cancel = block.on_decline(frame, now)
            if cancel is not None:
                self.connection.send(cancel)
        elif kind in ("block", "slice", "last_slice", "repair_slice"):
            raise ProtocolError(3, "no block is accepted")
        return True

    def next_slice(self, room: int, now: float) -> Optional[Tuple[List[Frame], Frame, Any]]:
        block = self.block
        if block is None or self.unwanted and self.announced:
            return None
        if not self.announced:
            if self.credit < 1:
                return None
            self.announced = True
            self.connection.send(block.frame)
            return None
        for page in block.pages_for_next() if len(block.counted) + 1 < self.credit else []:
            self.connection.send(page)
        if self.connection.reliable:
            return None  # the pages go first
        slice_size = min(self.connection.path.size - SLICE_OVERHEAD, room - 12) & ~1
        block.cut_anew(self.connection.path.size - SLICE_OVERHEAD & ~1)
        found = block.next_slice(room, max(slice_size, LEAST_SLICE), self.credit - 1)
        if found is None:
            return None
        frame, item = found
        self.slices += 1
        if self.slices in EARLY_REPEATS and not self.block_known:
            self.connection.send(block.frame)
        return [], frame, item

    def on_acked(self, item: SliceItem, now: float) -> None:
        item.block.on_acked(item, now)

    def on_lost(self, item: SliceItem, now: float) -> None:
        item.block.on_lost(item)

    def still_wanted(self, frame: Frame) -> bool:
        return not (frame["type"] in ("block", "hashes") and self.block is not None and self.block.finished)

    def on_time(self, now: float) -> None:
        block = self.block
        if block is None or block.finished or self.unwanted:
            return
        if block.out_of_credit or block.progressed is None:
            block.progressed = now
        if now - block.progressed > NO_PROGRESS:
            raise ProtocolError(NO_PROGRESS_CODE, "no progress")


class Lingering:
    """A connection that ended: its client hears so again when it asks (H-5.3b)."""

    def __init__(self, connection: Connection, now: float) -> None:
        self.connection = connection
        pto = 3 * connection.recovery.pto(connection.max_ack_delay)
        closed_by_peer = connection.ended is not None and connection.ended.startswith("closed by the peer")
        self.until = now + max(6.0 if closed_by_peer else max(connection.idle, HANDSHAKE_TIMEOUT), pto)
        self.room = 1200 if connection.validated else max(0, connection.credit_bytes)
        self.last = now - 1

    def receive(self, data: bytes, address: Address, now: float) -> List[bytes]:
        """To the client's address no more than arrived since the end; to another no more than just arrived."""
        home = address == self.connection.address
        verified = data[0] == d.REQUEST or self.connection.receive(data, address, now)
        if not verified or (data[0] == d.REQUEST and self.connection.validated):
            return []
        self.room += len(data) if home and self.connection.validated else 0
        if now < self.last + LINGER_INTERVAL:
            return []
        answer = self.connection.sealed_close(now)
        if len(answer) > (self.room if home else len(data)):
            return []
        self.room -= len(answer) if home else 0
        self.last = now
        return [answer]


class Waiting:
    """Who waits in line: where it is, when it asked last, and whether it was called."""

    def __init__(self, address: Address, now: float) -> None:
        self.address, self.asked, self.called = address, now, False


class Server:
    """All connections of one socket."""

    def __init__(
        self, credentials: Credentials, name: str, data: bytes, retry_above: int = 32, repair_per_chunk: int = 0
    ) -> None:
        self.credentials, self.name, self.data = credentials, name, data
        self.seats = MAX_CONNECTIONS
        self.line: "OrderedDict[Tuple[bytes, bytes], Waiting]" = OrderedDict()
        self.questions = 0
        self.root = Tree(data).root
        self.retry_above, self.repair_per_chunk = retry_above, repair_per_chunk
        self.may_probe = False  # until fragmentation is forbidden
        self.cookie_key, self.reset_key = os.urandom(32), os.urandom(32)
        self.by_id: Dict[bytes, Connection] = {}
        self.by_request: Dict[Tuple[bytes, bytes], Tuple[Connection, Address, float]] = {}
        self.given_out: "OrderedDict[bytes, None]" = OrderedDict()
        self.lingering: Dict[bytes, Lingering] = {}
        self.refused: List[float] = []
        self.finished = 0

    def reset_token(self, server_id: bytes) -> bytes:
        return keyed(self.reset_key, server_id)[:16]

    def receive(self, data: bytes, address: Address, now: float) -> List[bytes]:
        """Takes a datagram; what comes back are answers without a connection."""
        if not data:
            return []
        if data[0] == d.REQUEST and len(data) == d.REQUEST_SIZE:
            return self._on_request(data, address, now)
        if data[0] in (d.FROM_CLIENT, d.FROM_CLIENT + 1) and len(data) >= 26:
            connection = self.by_id.get(data[1:9])
            if connection is not None:
                connection.receive(data, address, now)
            elif data[1:9] in self.lingering:
                return self.lingering[data[1:9]].receive(data, address, now)
            elif data[1:9] in self.given_out and self._may_refuse(now):
                return [bytes([d.RESET]) + self.reset_token(data[1:9])]
        return []

    def _may_refuse(self, now: float) -> bool:
        """The rate of refusals and resets, for all sources together (H-3.6a, H-3.7a)."""
        self.refused = [t for t in self.refused if t > now - 1]
        if len(self.refused) >= REFUSALS_PER_SECOND:
            return False
        self.refused.append(now)
        return True

    def _refuse(self, request: bytes, code: int, now: float, valid: bool) -> List[bytes]:
        if not self._may_refuse(now):
            return []
        return [
            d.write_refusal(
                request[5:13], code, [VERSION], self.credentials.check_key(), self.credentials.protocol_id, valid
            )
        ]

    def _on_request(self, data: bytes, address: Address, now: float) -> List[bytes]:
        """In the order of H-3.1b."""
        if int.from_bytes(data[1:5], "little") != VERSION:
            return self._refuse(data, 1, now, valid=False)
        try:
            request = d.read_request(data)
        except Refused:
            return []
        key = self.credentials.check_key()
        right = d.check(key, self.credentials.protocol_id, data[: d.CHECKED])
        if request.mode != self.credentials.mode() or not hmac.compare_digest(right, data[d.CHECKED :]):
            return self._refuse(data, 2, now, valid=False)
        known = self.by_request.get((request.client_id, request.hello_message))
        if known is not None:
            ended = self.lingering.get(known[0].my_id)
            if ended is not None:
                return ended.receive(data, address, now)
            if known[1] == address:
                self._credit(known[0])
            return []
        name = request.client_id, request.hello_message
        waits = name in self.line and self.line[name].address == address
        proven = waits or self._cookie_is_right(request, address)
        free = self.seats - len(self.by_id)
        queues = free <= 0 or len(self.line) > 0
        if (queues or sum(not c.validated for c in self.by_id.values()) >= self.retry_above) and not proven:
            return [
                d.write_retry(
                    request.client_id, d.cookie(self.cookie_key, int(now) // COOKIE_UNIT, request.client_id, address)
                )
            ]
        if queues:
            if not waits and len(self.line) >= MAX_LINE:
                return self._refuse(data, 3, now, valid=True)
            place = self.ask(name, address, now)
            if place > free:
                return [self._in_line(request.client_id, place)]
        self.line.pop(name, None)
        self._accept(request, address, now, proven)
        return []

    def ask(self, name: Tuple[bytes, bytes], address: Address, now: float) -> int:
        """Its place in line, which it keeps, or the last one (H-3.6c)."""
        self.questions += 1
        self.line.setdefault(name, Waiting(address, now)).asked = now
        return list(self.line).index(name) + 1

    def _in_line(self, client_id: bytes, place: int) -> bytes:
        answer = d.InLine(client_id, place, None, int(ASK_AGAIN * 1000))
        return d.write_in_line(answer, self.credentials.check_key(), self.credentials.protocol_id)

    def _call(self, now: float) -> List[Tuple[bytes, Address]]:
        """Each for whom there is a seat, once; who has not asked for three intervals has left."""
        for name in [name for name, waiting in self.line.items() if now > waiting.asked + 3 * ASK_AGAIN]:
            del self.line[name]
        calls = []
        for name, waiting in list(self.line.items())[: max(self.seats - len(self.by_id), 0)]:
            if not waiting.called:
                waiting.called = True
                calls.append((self._in_line(name[0], 0), waiting.address))
        return calls

    def _cookie_is_right(self, request: d.Request, address: Address) -> bool:
        time_ = int(time.monotonic()) // COOKIE_UNIT
        cookies = [d.cookie(self.cookie_key, t, request.client_id, address) for t in (time_, max(time_ - 1, 0))]
        return any(hmac.compare_digest(request.cookie, cookie) for cookie in cookies)

    def _credit(self, connection: Connection) -> None:
        """Three times what came in, in bytes and datagrams (H-3.5a)."""
        connection.credit_bytes += 3 * d.REQUEST_SIZE
        connection.credit_datagrams += 3
        if connection.closing is not None:
            connection.close_at = min(connection.close_at, time.monotonic() + LINGER_INTERVAL)

    def _accept(self, request: d.Request, address: Address, now: float, proven: bool) -> None:
        try:
            accepted = accept(self.credentials, request, {}, address, now)
        except Refused:
            return
        connection, hello = accepted.connection, accepted.hello
        self.by_id[connection.my_id] = connection
        self.by_request[request.client_id, request.hello_message] = connection, address, now
        if proven:
            connection.credit_bytes = connection.credit_datagrams = 1 << 40
        self._credit(connection)
        stream = Serve(connection, hello["credit"], bool(hello["repair_codes"] & 1))
        connection.stream = stream
        connection.path.allowed = self.may_probe
        connection.ping()
        stream.answer(hello["request"], self.name, self.data, hello["roots"], self.repair_per_chunk, now)
        connection.on_validated = lambda: connection.send(
            {"type": "reset_token", "token": self.reset_token(connection.my_id)}
        )

    def poll(self, now: float) -> List[Tuple[bytes, Address]]:
        out: List[Tuple[bytes, Address]] = self._call(now)
        for server_id, connection in list(self.by_id.items()):
            out += connection.poll(now)
            if not connection.validated and now - connection.started > HANDSHAKE_TIMEOUT:
                connection.ended = "the client did not answer"
            if connection.ended is not None and not connection.answer_close:
                del self.by_id[server_id]
                self.finished += connection.validated
                self.lingering[server_id] = Lingering(connection, now)
                if len(self.lingering) > MAX_CONNECTIONS:
                    del self.lingering[next(iter(self.lingering))]
                self.given_out[server_id] = None
                if len(self.given_out) > 1000:
                    self.given_out.popitem(last=False)
        self.lingering = {k: v for k, v in self.lingering.items() if now < v.until}
        self.by_request = {k: v for k, v in self.by_request.items() if v[0].ended is None or now - v[2] < 60}
        return out

    def next_time(self, now: float) -> float:
        return min([connection.next_time(now) for connection in self.by_id.values()], default=now + 1)


def forbid_fragmentation(udp: socket.socket) -> bool:
    """DF on everything that is sent, where the system has that (here: Linux, IPv4)."""
    if not sys.platform.startswith("linux"):
        return False
    ip_mtu_discover, ip_pmtudisc_probe = 10, 3
    try:
        udp.setsockopt(socket.IPPROTO_IP, ip_mtu_discover, ip_pmtudisc_probe)
    except OSError:
        return False
    return True


def run(server: Server, udp: socket.socket, stop: Any) -> None:
    """Until `stop()` says so."""
    udp.setblocking(False)
    server.may_probe = forbid_fragmentation(udp)
    while not stop():
        now = time.monotonic()
        for data, address in server.poll(now):
            try:
                udp.sendto(data, address)
            except OSError:
                pass
        wait = max(0.0, min(server.next_time(now) - time.monotonic(), 0.1))
        ready, _, _ = select.select([udp], [], [], wait)
        for _ in range(32 if ready else 0):
            try:
                data, address = udp.recvfrom(65_536)
            except OSError:
                break
            for answer in server.receive(data, address[:2], time.monotonic()):
                udp.sendto(answer, address)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--address", default="127.0.0.1", help="IPv4 address to listen on, and of the ticket")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--open", action="store_true", help="mode open: no secret")
    parser.add_argument(
        "--identity", action="store_true", help="a private key of its own, with the public one in the ticket"
    )
    parser.add_argument("--repair", type=int, default=0, metavar="N", help="repair slices for each chunk")
    parser.add_argument("--once", action="store_true", help="end after one client")
    options = parser.parse_args()
    data = Path(options.file).read_bytes()
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((options.address, options.port))
    private = os.urandom(32) if options.identity else None
    credentials = Credentials(PROTOCOL_ID, None if options.open else os.urandom(32), identity_of(private), private)
    server = Server(credentials, Path(options.file).name, data, repair_per_chunk=options.repair)
    ticket = Ticket(PROTOCOL_ID, [udp.getsockname()], credentials.secret, server.root, credentials.identity)
    print(ticket.text(), flush=True)
    run(server, udp, lambda: options.once and server.finished > 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
