"""Joins a haulier server by its ticket and gets a file whose root is offered (sections 7 and 8).

    python3 vectors/second/fetch.py TICKET -o FILE [--name NAME]

Slow, and complete: every chunk is verified by the tree before it is written.
"""

import argparse
import os
import select
import socket
import sys
import time
from typing import BinaryIO, Callable, List, Optional, Set

import datagrams as d
import files
from blocks import MAX_BLOCKS, NO_PROGRESS, NO_PROGRESS_CODE, Receiver
from connection import Connection, Stream
from credentials import Ticket, read_ticket
from frames import Frame
from handshake import Client, Credentials
from recovery import ProtocolError
from tree import CHUNK
from wire import Address, Refused, address_text

FILE_TAG = files.write_tag("whole")
LARGEST_BLOCK = 1 << 40
CREDIT = 64
LARGEST_DATAGRAM = 9000
RECEIVE_BUFFER = 4 << 20
NOT_UNDERSTOOD, NOT_STORED, NOT_THE_TICKETS = 258, 259, 260
SERVER_CODES = {
    256: "no file of this name",
    257: "it takes no files",
    258: "not understood",
    6: "not accepted",
}


class Failed(Exception):
    """Why the file was not fetched, in a sentence."""


class Fetch(Stream):
    """The answer to one get: the offer of one file as a message, the file as a block, in either order."""

    def __init__(self, asked: str, ticket: Ticket, path: str, connection: Connection) -> None:
        self.asked, self.ticket, self.path, self.connection = asked, ticket, path, connection
        self.receiver = Receiver(LARGEST_BLOCK, CREDIT, self._store, self._on_block, self._on_cancel)
        self.block: Optional[Frame] = None
        self.name: Optional[str] = None
        self.entry: files.Row = {}
        self.parts = bytearray()
        self.missing: Optional[Set[int]] = None
        self.file: Optional[BinaryIO] = None
        self.done = False
        self.started = time.monotonic()

    def on_frame(self, frame: Frame, now: float) -> bool:
        kind = frame["type"]
        if kind in ("block", "hashes", "slice", "last_slice", "repair_slice", "cancel"):
            had_none = self.receiver.credit() == self.receiver.counted
            kept = self.receiver.on_frame(frame, now)
            if had_none and self.receiver.credit() > self.receiver.counted:
                self.connection.ping()  # H-4.2h: credit after none is said at once
                self.connection.acknowledge_now(now)
            self._finish(now)
            return kept
        if kind == "message":
            self._on_message(frame, now)
        elif kind == "progress" and (frame["entries"] or frame["floor"]):
            raise ProtocolError(1, "progress of a block that was not announced")
        return True

    def _on_block(self, frame: Frame) -> None:
        if self.block is not None or frame["tag"] != FILE_TAG:
            raise ProtocolError(NOT_UNDERSTOOD, "not the block that was asked for")
        if self.ticket.digest is not None and frame["root"] != self.ticket.digest:
            raise ProtocolError(NOT_THE_TICKETS, "not the file of the ticket")
        self.block = frame
        self._open()

    def _open(self) -> None:
        try:
            self.file = open(self.path + ".part", "wb")
        except OSError as error:
            raise ProtocolError(NOT_STORED, str(error)) from None

    def _on_cancel(self, _: Frame) -> None:
        raise ProtocolError(NOT_UNDERSTOOD, "the server gave the file up")

    def _store(self, _: int, chunk: int, data: bytes) -> None:
        assert self.file is not None
        try:
            self.file.seek(chunk * CHUNK)
            self.file.write(data)
        except OSError as error:
            raise ProtocolError(NOT_STORED, str(error)) from None

    def _on_message(self, frame: Frame, now: float) -> None:
        """Message 0 of channel 0: the offer. No other was asked for (H-8.5a)."""
        if frame["channel"] != 0:
            raise ProtocolError(1, "a message on a channel that is not accepted")
        if frame["number"] != 0:
            raise ProtocolError(NOT_UNDERSTOOD, "a second message")
        if self.name is not None:
            return
        whole = len(frame["data"]) if frame["whole"] is None else frame["whole"]
        if self.missing is None:
            self.parts, self.missing = bytearray(whole), set(range(whole))
        if len(self.parts) != whole:
            raise ProtocolError(1, "parts that contradict each other")
        start = frame["offset"]
        self.parts[start : start + len(frame["data"])] = frame["data"]
        self.missing -= set(range(start, start + len(frame["data"])))
        if self.missing:
            return
        try:
            message = files.read_message(bytes(self.parts))
            entries = files.read_offer(message.get("list", b""))
        except Refused as refused:
            raise ProtocolError(NOT_UNDERSTOOD, str(refused)) from None
        if len(entries) != 1 or entries[0]["kind"] != files.KNOWN:
            raise ProtocolError(NOT_UNDERSTOOD, "the offer is not one file with its root")
        self.entry = entries[0]
        if self.asked and self.entry["path"] != self.asked:
            raise ProtocolError(NOT_UNDERSTOOD, "not the name that was asked for")
        if self.ticket.digest is not None and self.entry["root"] != self.ticket.digest:
            raise ProtocolError(NOT_THE_TICKETS, "not the file of the ticket")
        self.name = self.entry["path"]
        if self.entry["size"] == 0 and self.file is None:
            self._open()  # no block comes of it
        self._finish(now)

    def _finish(self, now: float) -> None:
        """Once both are here: the file under its name, and the close."""
        if self.done or self.name is None or self.receiver.receiving():
            return
        if self.block is None and self.entry["size"] > 0:
            return
        if self.block is not None and self.block["root"] != self.entry["root"]:
            raise ProtocolError(NOT_UNDERSTOOD, "not the file of the offer")
        assert self.file is not None
        try:
            self.file.close()
            os.replace(self.path + ".part", self.path)
        except OSError as error:
            raise ProtocolError(NOT_STORED, str(error)) from None
        self.done = True
        self.connection.close(0, "", now)

    def discard(self) -> None:
        """What is left of a file that did not become whole."""
        if self.file is not None and not self.done:
            self.file.close()
            os.unlink(self.path + ".part")

    def state_frames(self, now: float) -> List[Frame]:
        return self.receiver.state_frames(now)

    def receiving(self) -> bool:
        return not self.done

    def on_time(self, now: float) -> None:
        """H-5.1b: the receiver waits twice as long as the sender."""
        if now - max(self.receiver.progressed, self.started) > 2 * NO_PROGRESS:
            raise ProtocolError(NO_PROGRESS_CODE, "no progress")


class Socket:
    """One UDP socket, to one server."""

    def __init__(self, address: Address) -> None:
        found = socket.getaddrinfo(address[0], address[1], type=socket.SOCK_DGRAM)[0]
        self.udp = socket.socket(found[0], socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self.udp.setblocking(False)
        self.server = found[4]
        self.buffer = self.udp.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    def send(self, data: bytes) -> None:
        try:
            self.udp.sendto(data, self.server)
        except OSError:
            pass  # as good as lost

    def receive(self, until: float) -> List[bytes]:
        """What is there, after a wait of at most until that time."""
        ready, _, _ = select.select([self.udp], [], [], max(0.0, min(until - time.monotonic(), 0.25)))
        out: List[bytes] = []
        while ready and len(out) < 32:
            try:
                data, sender = self.udp.recvfrom(65_536)
            except OSError:
                break
            if sender[:2] == self.server[:2]:
                out.append(data)
        return out


def join(ticket: Ticket, address: Address, name: str, path: str, sock: Socket) -> Client:
    """Asks one of the ticket's addresses; the answer has a `connection`, or says why it `failed`."""
    credentials = Credentials(ticket.protocol_id, ticket.secret, ticket.identity)
    mine = {
        "request": files.write_request("get", False, name),
        "largest_block": LARGEST_BLOCK,
        "credit": CREDIT,
        "largest_datagram": LARGEST_DATAGRAM,
        "receive_buffer": sock.buffer // 2,
        "max_ack_delay_ms": 20,
        "repair_codes": 1,
        "announced_blocks": MAX_BLOCKS,
    }
    client = Client(
        credentials, mine, 3, address, lambda connection: Fetch(name, ticket, path, connection), time.monotonic()
    )
    while client.connection is None and client.failed is None:
        for data in client.poll(time.monotonic()):
            sock.send(data)
        for data in sock.receive(min(client.next_time, client.deadline)):
            pass_on(client, data)
    return client


def pass_on(client: Client, data: bytes) -> None:
    """A datagram, to the handshake or to the connection it is for."""
    now, connection = time.monotonic(), client.connection
    if connection is None:
        client.receive(data, now)
    elif data[:1] == bytes([d.RESET]) and len(data) == 17:
        connection.on_reset(data[1:])
    elif len(data) >= 26 and data[1:9] == client.client_id:
        same = data[0] == d.RESPONSE and data[11:].startswith(client.welcome_message)
        if same or data[0] in (d.FROM_SERVER, d.FROM_SERVER + 1):
            connection.receive(data, connection.address, now)


def transfer(client: Client, connection: Connection, sock: Socket, each_turn: Callable[[Socket], None]) -> None:
    """Runs the connection to its end."""
    while connection.ended is None:
        now = time.monotonic()
        for data, _ in connection.poll(now):
            sock.send(data)
        each_turn(sock)
        for data in sock.receive(connection.next_time(now)):
            pass_on(client, data)


def fetch(ticket_text: str, path: str, name: str = "", each_turn: Callable[[Socket], None] = lambda _: None) -> str:
    """Stores the file at `path` and returns its name at the server; `Failed` says why not."""
    try:
        ticket = read_ticket(ticket_text)
    except Refused as refused:
        raise Failed(f"the ticket cannot be read: {refused}") from None
    reasons = []
    for address in ticket.addresses:
        sock = Socket(address)
        with sock.udp:
            client = join(ticket, address, name, path, sock)
            connection = client.connection
            if connection is None:
                reasons.append(f"{address_text(address)}: {client.failed}")
                continue
            try:
                transfer(client, connection, sock, each_turn)
            finally:
                stream = connection.stream
                assert isinstance(stream, Fetch)
                stream.discard()
        if stream.done and stream.name is not None:
            return stream.name
        raise Failed(
            SERVER_CODES.get(
                connection.close_code or 0,
                f"{connection.ended} (code {connection.close_code}, {connection.close_reason()})",
            )
        )
    raise Failed("; ".join(reasons))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("ticket")
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    parser.add_argument("--name", default="", help="which of several files")
    options = parser.parse_args()
    try:
        name = fetch(options.ticket, options.output, options.name)
    except Failed as failed:
        print(f"fetch: {failed}", file=sys.stderr)
        return 1
    print(f"{name!r}, {os.path.getsize(options.output)} bytes, in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
