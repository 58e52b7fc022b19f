"""Datagrams (sections 2 and 3): their layout, their checks, and the protection of responses and data."""

import hmac
import zlib
from typing import List, NamedTuple, Optional, Tuple

import aes
import chacha
from blake3 import derive_key, keyed
from wire import Address, Reader, Refused, mapped, u8, u16, u32, u64

REQUEST, RETRY, REFUSAL, RESPONSE, RESET = 4, 5, 6, 7, 8
IN_LINE = 10
FROM_CLIENT, FROM_SERVER = 0x0C, 0x0E  # and one more in key phase 1
OPEN, SECRET, TOKEN, WITH_IDENTITY = 0, 1, 2, 0x10
REQUEST_SIZE = 1200
CHECKED = 1184
COOKIE_SIZE = 20
TOKEN_SIZES = range(113, 641)


# Section 3.1: keys of a request, and checks.


def check_key(secret: bytes, protocol_id: int) -> bytes:
    return derive_key("haulier/1 2026 request check", secret + u64(protocol_id))


def noise_psk(secret: bytes, protocol_id: int) -> bytes:
    return derive_key("haulier/1 2026 noise psk", secret + u64(protocol_id))


def check(key: Optional[bytes], protocol_id: int, before: bytes) -> bytes:
    """The 16 bytes at the end of a request or a refusal; without a key, those of mode open."""
    if key is None:
        return u32(zlib.crc32(u64(protocol_id) + before)) + bytes(12)
    return keyed(key, before)[:16]


class Request(NamedTuple):
    """Section 3.1, its fields but for padding and check."""

    version: int
    client_id: bytes
    mode: int
    cookie: bytes
    token: bytes
    hello_message: bytes


def write_request(request: Request, padding: bytes, key: Optional[bytes], protocol_id: int) -> bytes:
    """`padding` is cut to what fits."""
    start = u8(REQUEST) + u32(request.version) + request.client_id + u8(request.mode)
    lengths = u8(len(request.cookie)) + u16(len(request.token)) + u16(len(request.hello_message))
    before = start + lengths + request.cookie + request.token + request.hello_message
    if len(before) > CHECKED:
        raise ValueError(f"a request of {len(before)} bytes before its check")
    before += padding[: CHECKED - len(before)]
    assert len(before) == CHECKED
    return before + check(key, protocol_id, before)


def read_request(data: bytes) -> Request:
    """What can be seen before the check is verified (H-3.1b); the caller verifies it."""
    if len(data) != REQUEST_SIZE:
        raise Refused("bad_length")
    reader = Reader(data[:CHECKED], 1)
    version, client_id, mode = reader.integer(4), reader.take(8), reader.integer(1)
    cookie, token, hello = reader.integer(1), reader.integer(2), reader.integer(2)
    if mode not in (OPEN, SECRET, TOKEN, SECRET | WITH_IDENTITY, TOKEN | WITH_IDENTITY):
        raise Refused("bad_mode")
    if cookie not in (0, COOKIE_SIZE) or (token not in TOKEN_SIZES if mode & 15 == TOKEN else token != 0):
        raise Refused("bad_length")
    return Request(version, client_id, mode, reader.take(cookie), reader.take(token), reader.take(hello))


def prologue(version: int, client_id: bytes, mode: int) -> bytes:
    return b"haulier/1" + u32(version) + client_id + u8(mode)


# Section 3.6 and 3.7: what a server answers without a connection.


def cookie(key: bytes, time: int, client_id: bytes, address: Address) -> bytes:
    return u32(time) + keyed(key, u32(time) + client_id + mapped(address))[:16]


def write_retry(client_id: bytes, cookie_: bytes) -> bytes:
    return u8(RETRY) + client_id + cookie_


def write_refusal(
    client_id: bytes, code: int, versions: "List[int]", key: Optional[bytes], protocol_id: int, valid: bool
) -> bytes:
    before = u8(REFUSAL) + client_id + u8(code) + u8(len(versions)) + b"".join(map(u32, versions))
    return before + (check(key, protocol_id, before) if valid else bytes(16))


class Refusal(NamedTuple):
    client_id: bytes
    code: int
    versions: "List[int]"
    check: bytes


UNKNOWN = (1 << 32) - 1


class InLine(NamedTuple):
    """A place in line: None without one, 0 a call. Times in ms."""

    client_id: bytes
    place: Optional[int]
    estimate: Optional[int]
    again: int


def write_in_line(line: InLine, key: Optional[bytes], protocol_id: int) -> bytes:
    numbers = [UNKNOWN if n is None else n for n in line[1:]]
    return write_refusal(line.client_id, IN_LINE, numbers, key, protocol_id, True)


def read_in_line(data: bytes) -> InLine:
    refusal = read_refusal(data)
    if refusal.code != IN_LINE or len(refusal.versions) != 3:
        raise Refused("out_of_range", "not in line")
    place, estimate, again = refusal.versions
    return InLine(
        refusal.client_id, None if place == UNKNOWN else place, None if estimate == UNKNOWN else estimate, again
    )


def read_refusal(data: bytes) -> Refusal:
    reader = Reader(data, 1)
    client_id, code = reader.take(8), reader.integer(1)
    versions = [reader.integer(4) for _ in range(reader.within(reader.integer(1), 0, 8))]
    if len(reader) != 16:
        raise Refused("bad_length")
    return Refusal(client_id, code, versions, reader.rest())


# Section 2.3: protection.


def traffic_key(secret: bytes) -> bytes:
    return derive_key("haulier/1 2026 key", secret)


def next_secret(secret: bytes) -> bytes:
    return derive_key("haulier/1 2026 next", secret)


class Protection:
    """Seals and opens one direction with one key; `suite` None is mode open, with the sender's own id."""

    def __init__(self, suite: Optional[int], secret: bytes, protocol_id: int, sender_id: bytes) -> None:
        self.suite, self.protocol_id, self.sender_id = suite, protocol_id, sender_id
        self.secret = secret
        self.key = b"" if suite is None else traffic_key(secret)
        self.overhead = 12 if suite is None else 16

    def next(self) -> "Protection":
        return Protection(self.suite, next_secret(self.secret), self.protocol_id, self.sender_id)

    def seal(self, number: int, before: bytes, plaintext: bytes) -> bytes:
        """The whole datagram; `before` is everything up to the ciphertext."""
        if self.suite is None:
            return before + plaintext + self._open_tag(before + plaintext)
        cipher = chacha if self.suite == 0 else aes
        return before + cipher.seal(self.key, bytes(4) + u64(number), before, plaintext)

    def open(self, number: int, before: bytes, sealed: bytes) -> bytes:
        """The plaintext, or `Refused`."""
        if self.suite is None:
            if len(sealed) < 12 or not hmac.compare_digest(sealed[-12:], self._open_tag(before + sealed[:-12])):
                raise Refused("bad_seal")
            return sealed[:-12]
        cipher = chacha if self.suite == 0 else aes
        return cipher.open_sealed(self.key, bytes(4) + u64(number), before, sealed)

    def _open_tag(self, before: bytes) -> bytes:
        """The sender's id, then the crc over the protocol id and everything before the crc."""
        return self.sender_id + u32(zlib.crc32(u64(self.protocol_id) + before + self.sender_id))


def data_header(first_byte: int, receiver_id: bytes, number: int) -> bytes:
    return u8(first_byte) + receiver_id + u32(number & 0xFFFFFFFF)


def response_header(client_id: bytes, welcome_message: bytes, number: int) -> bytes:
    return u8(RESPONSE) + client_id + u16(len(welcome_message)) + welcome_message + u32(number & 0xFFFFFFFF)


def split_response(data: bytes) -> Tuple[bytes, bytes, int, bytes, bytes]:
    """Client id, welcome message, low 32 bits of the number, everything before the ciphertext, the rest."""
    reader = Reader(data, 1)
    client_id = reader.take(8)
    welcome = reader.take(reader.within(reader.integer(2), 0, 256))
    low = reader.integer(4)
    return client_id, welcome, low, data[: reader.at], reader.rest()


def expand(low: int, expected: int, bits: int = 32) -> int:
    """The number with these low bits nearest to `expected`; of two equally near, the larger (section 2.2)."""
    span = 1 << bits
    number = expected - expected % span + low
    candidates = [n for n in (number - span, number, number + span) if 0 <= n < 1 << 64]
    return min(candidates, key=lambda n: (abs(n - expected), -n))
