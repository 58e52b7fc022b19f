"""The handshake of both ends (section 3), up to a `Connection`."""

import copy
import hmac
import os
import random
from typing import Callable, List, NamedTuple, Optional, Tuple

import datagrams as d
import parameters
from connection import Connection, Stream
from noise import Handshake
from parameters import HELLO, WELCOME, Parameters
from wire import Address, Refused
from x25519 import public

INTERVAL = 0.25
TIMEOUT = 10.0
MAX_IN_LINE = 600.0
BETWEEN_CALLS = 1.0
HINT_TIME = 1.0
MAX_RETRIES = 4
REFUSALS = {
    1: "version",
    2: "key: another secret, or not this mode",
    3: "full",
    4: "shutting down",
    5: "the token has expired",
    6: "the token was used",
    7: "the token is for another server",
    8: "downgrade",
    9: "not accepted",
}


class Credentials(NamedTuple):
    """What both ends know before they meet; `secret` None is mode open."""

    protocol_id: int
    secret: Optional[bytes]
    identity: Optional[bytes] = None  # the server's public key
    private: Optional[bytes] = None  # and its private one, at the server

    def mode(self) -> int:
        return d.OPEN if self.secret is None else d.SECRET | (d.WITH_IDENTITY if self.identity is not None else 0)

    def check_key(self) -> Optional[bytes]:
        return None if self.secret is None else d.check_key(self.secret, self.protocol_id)

    def noise(self, client_id: bytes) -> Optional[Handshake]:
        if self.secret is None:
            return None
        psk = d.noise_psk(self.secret, self.protocol_id)
        return Handshake(psk, d.prologue(1, client_id, self.mode()), os.urandom(32), self.identity, self.private)


def grease() -> Tuple[int, bytes]:
    """A parameter that nobody knows (H-1.3)."""
    return 27 + 31 * random.randrange(1000), os.urandom(random.randrange(9))


def protections(
    credentials: Credentials, noise: Optional[Handshake], suite: int, client_id: bytes, server_id: bytes
) -> Tuple[d.Protection, d.Protection]:
    """Client to server, server to client."""
    secrets = (b"", b"") if noise is None else noise.split()
    chosen = None if noise is None else suite
    return (
        d.Protection(chosen, secrets[0], credentials.protocol_id, client_id),
        d.Protection(chosen, secrets[1], credentials.protocol_id, server_id),
    )


class Client:
    """Asks until it has a `connection`, or knows why not (`failed`)."""

    def __init__(
        self,
        credentials: Credentials,
        mine: Parameters,
        copies: int,
        address: Address,
        make_stream: Callable[[Connection], Stream],
        now: float,
    ) -> None:
        self.make_stream = make_stream
        self.credentials, self.address, self.copies = credentials, address, copies
        self.copies_due = copies
        self.client_id = os.urandom(8)
        versions = [parameters.VERSION, 0x0A0A0A0A | random.getrandbits(32) & 0xF0F0F0F0]
        self.mine = {**parameters.defaults(HELLO), "versions": versions, "unknown": [grease()], **mine}
        hello = parameters.write(HELLO, self.mine)
        self.noise = credentials.noise(self.client_id)
        self.hello_message = hello if self.noise is None else self.noise.write_request(hello)
        self.cookie, self.retries = b"", 0
        self.flights, self.asked_at = 0, now
        self.next_time = now
        self.deadline, self.give_up = now + TIMEOUT, now + MAX_IN_LINE
        self.places: List[Optional[int]] = []
        self.called_at: Optional[float] = None
        self.hint: Optional[str] = None
        self.welcome_message = b""
        self.connection: Optional[Connection] = None
        self.failed: Optional[str] = None

    def poll(self, now: float) -> List[bytes]:
        """Copies of the request, each with padding of its own (H-3.1c, H-3.3a)."""
        if now >= self.deadline:
            self.failed = self.hint or "no answer"
        if self.failed is not None or now < self.next_time:
            return []
        self.next_time = now + INTERVAL
        copies, self.copies_due = self.copies_due, 1
        self.flights, self.asked_at = self.flights + 1, now
        request = d.Request(1, self.client_id, self.credentials.mode(), self.cookie, b"", self.hello_message)
        return [
            d.write_request(request, os.urandom(1184), self.credentials.check_key(), self.credentials.protocol_id)
            for _ in range(copies)
        ]

    def receive(self, data: bytes, now: float) -> None:
        if len(data) < 9 or data[1:9] != self.client_id:
            return
        try:
            if data[0] == d.RETRY and len(data) == 29:
                self._on_retry(data[9:], now)
            elif data[0] == d.REFUSAL:
                (self._on_line if data[9:10] == bytes([d.IN_LINE]) else self._on_refusal)(data, now)
            elif data[0] == d.RESPONSE and 64 <= len(data) <= 1200:
                self._on_response(data, now)
        except Refused:
            pass

    def _on_retry(self, cookie: bytes, now: float) -> None:
        """Only a cookie that is new counts, so that copies of the request do not use the retries up."""
        if cookie == self.cookie or self.retries == MAX_RETRIES:
            return
        self.cookie, self.retries = cookie, self.retries + 1
        self.next_time, self.copies_due = now, self.copies

    def _on_refusal(self, data: bytes, now: float) -> None:
        """H-3.6b: with a valid check the end; with zeros a hint."""
        refusal = d.read_refusal(data)
        meaning = f"refused: {REFUSALS.get(refusal.code, refusal.code)}"
        if self._is_checked(data):
            self.failed = meaning
        elif refusal.check == bytes(16) and self.hint is None:
            self.hint, self.deadline = meaning, min(self.deadline, now + HINT_TIME)

    def _is_checked(self, data: bytes) -> bool:
        right = d.check(self.credentials.check_key(), self.credentials.protocol_id, data[:-16])
        return hmac.compare_digest(right, data[-16:])

    def _on_line(self, data: bytes, now: float) -> None:
        """H-3.6c: asks again when told to, and at once when called."""
        line = d.read_in_line(data)
        if not self._is_checked(data):
            return
        self.places.append(line.place)
        again = line.again / 1000
        if line.place == 0:
            if self.called_at is not None and now < self.called_at + BETWEEN_CALLS:
                return
            self.called_at = self.next_time = now
        else:
            self.next_time = now + again * random.uniform(0.8, 1.2)
        self.deadline = min(max(self.deadline, now + max(3 * again, TIMEOUT)), self.give_up)

    def _on_response(self, data: bytes, now: float) -> None:
        """The connection, once a response is verified by its tag (H-2c)."""
        _, message, _, _, _ = d.split_response(data)
        noise = copy.copy(self.noise)
        welcome_data = message if noise is None else noise.read_response(message)
        welcome = parameters.read(WELCOME, welcome_data)
        if not self.mine["suites"] >> welcome["suite"] & 1:
            raise Refused("out_of_range", "a suite that was not offered")
        to_server, to_client = protections(
            self.credentials, noise, welcome["suite"], self.client_id, welcome["server_id"]
        )
        connection = Connection(
            False, self.client_id, welcome["server_id"], to_server, to_client, self.mine, welcome, self.address, now
        )
        connection.stream = self.make_stream(connection)
        connection.ping()
        if self.flights == 1:
            connection.recovery.sample(now - self.asked_at, 0.0)
        if connection.receive(data, self.address, now):
            self.welcome_message, self.connection = message, connection


class Accepted(NamedTuple):
    """A request that was verified, and what its connection needs."""

    request: d.Request
    hello: Parameters
    connection: Connection


def accept(credentials: Credentials, request: d.Request, mine: Parameters, address: Address, now: float) -> Accepted:
    """The server's part, after the check was verified; `Refused` if the hello message is not right."""
    noise = credentials.noise(request.client_id)
    hello = parameters.read(
        HELLO, request.hello_message if noise is None else noise.read_request(request.hello_message)
    )
    server_id = os.urandom(8)
    mine = {**parameters.defaults(WELCOME), "server_id": server_id, "unknown": [grease()], **mine}
    welcome = parameters.write(WELCOME, mine)
    message = welcome if noise is None else noise.write_response(welcome)
    to_server, to_client = protections(credentials, noise, mine["suite"], request.client_id, server_id)
    connection = Connection(True, server_id, request.client_id, to_client, to_server, mine, hello, address, now)
    connection.response_start = d.response_header(request.client_id, message, 0)[:-4]
    return Accepted(request, hello, connection)


def identity_of(private: Optional[bytes]) -> Optional[bytes]:
    return None if private is None else public(private)
