"""Connect tokens (section 6), tickets (section 7) and key files (section 7.1)."""

import base64
import binascii
import re
from typing import List, NamedTuple, Optional

import chacha
from blake3 import blake3, derive_key
from datagrams import TOKEN_SIZES
from wire import Address, Reader, Refused, address_bytes, read_address, u8, u16, u32, u64

TICKET, TOKEN = "haulier1:", "haulier-token1:"
TOKEN_MAGIC = b"HLT1"
MAX_ADDRESSES = 8
MAX_USER_DATA = 256


def text_of(prefix: str, data: bytes) -> str:
    return prefix + base64.urlsafe_b64encode(data).decode().rstrip("=")


def from_text(prefix: str, text: str) -> bytes:
    """The bytes of base64url without padding; `not_a_ticket` without the prefix, `mistyped` if it is not that."""
    text = text.strip()
    if not text.startswith(prefix):
        newer = re.match(r"haulier[0-9]+:", text) is not None
        raise Refused("newer" if newer else "not_a_ticket", f"it does not begin with {prefix}")
    body = text[len(prefix) :]
    try:
        data = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused("mistyped", str(error)) from None
    if text_of("", data) != body:
        raise Refused("mistyped", "not the one way to write it")
    return data


def _addresses(addresses: List[Address]) -> bytes:
    return u8(len(addresses)) + b"".join(map(address_bytes, addresses))


class Ticket(NamedTuple):
    protocol_id: int
    addresses: List[Address]
    secret: Optional[bytes]  # None: mode open
    digest: Optional[bytes] = None
    identity: Optional[bytes] = None

    def data(self) -> bytes:
        flags = (self.digest is not None) | (self.identity is not None) << 1 | (self.secret is None) << 2
        parts = [u8(flags), u64(self.protocol_id), _addresses(self.addresses)]
        parts += [part for part in (self.secret, self.digest, self.identity) if part is not None]
        before = b"".join(parts)
        return before + blake3(before)[:4]

    def text(self) -> str:
        return text_of(TICKET, self.data())


def read_ticket(text: str) -> Ticket:
    """`not_a_ticket`, `cut_off`, `mistyped` or `newer` (H-7)."""
    data = from_text(TICKET, text)
    right = len(data) >= 4 and blake3(data[:-4])[:4] == data[-4:]
    reader = Reader(data[:-4])
    try:
        flags = reader.integer(1)
        if flags & ~7:
            raise Refused("newer" if right else "mistyped", f"flags {flags}")
        protocol_id = reader.integer(8)
        addresses = [read_address(reader) for _ in range(reader.within(reader.integer(1), 1, MAX_ADDRESSES))]
        secret = None if flags & 4 else reader.take(32)
        digest = reader.take(32) if flags & 1 else None
        identity = reader.take(32) if flags & 2 else None
    except Refused as refused:
        classes = {"truncated": "cut_off", "out_of_range": "mistyped"}
        raise Refused(classes.get(refused.reason, refused.reason), str(refused)) from None
    if not right or len(reader) or (secret is None and identity is not None):
        raise Refused("mistyped", "its last bytes do not agree, bytes are left over, or an identity in mode open")
    return Ticket(protocol_id, addresses, secret, digest, identity)


class Token(NamedTuple):
    """Both parts of a connect token."""

    protocol_id: int
    key_id: int
    expiry_unix: int
    nonce: bytes
    client_id: bytes
    secret: bytes
    client_address: Optional[Address]
    servers: List[Address]
    min_rate: int
    max_rate: int
    user_data: bytes
    identity: Optional[bytes] = None
    issued_unix: int = 1_900_000_000
    once_at_each: bool = False

    def start(self) -> bytes:
        return b"1" + u32(self.key_id) + u64(self.expiry_unix) + self.nonce

    def content(self) -> bytes:
        address = b"" if self.client_address is None else address_bytes(self.client_address)
        rates = u32(self.min_rate) + u32(self.max_rate)
        flags = (self.client_address is not None) | self.once_at_each << 1
        start = self.client_id + self.secret + u64(self.issued_unix) + u8(flags) + address
        return start + _addresses(self.servers) + rates + u16(len(self.user_data)) + self.user_data

    def sealed(self, token_key: bytes) -> bytes:
        return seal_token(token_key, self.protocol_id, self.start(), self.content())

    def client_part(self, token_key: bytes) -> bytes:
        sealed = self.sealed(token_key)
        start = TOKEN_MAGIC + u64(self.protocol_id) + u64(self.expiry_unix) + self.secret + _addresses(self.servers)
        identity = u8(self.identity is not None) + (self.identity or b"")
        return start + identity + u16(len(sealed)) + sealed


def seal_token(token_key: bytes, protocol_id: int, start: bytes, content: bytes) -> bytes:
    return start + chacha.xseal(token_key, start[13:], u64(protocol_id) + start, content)


def open_token(sealed: bytes, token_key: bytes, key_id: int, protocol_id: int, now_unix: int) -> Token:
    """The server's reading: `malformed`, `expired`, `unknown_key`, `bad_seal`, then `malformed` content."""
    if len(sealed) not in TOKEN_SIZES or sealed[:1] != b"1":
        raise Refused("malformed")
    head = Reader(sealed, 1)
    found_id, expiry, nonce = head.integer(4), head.integer(8), head.take(24)
    if now_unix >= expiry:
        raise Refused("expired")
    if found_id != key_id:
        raise Refused("unknown_key")
    content = chacha.xopen(token_key, nonce, u64(protocol_id) + sealed[:37], sealed[37:])
    reader = Reader(content)
    try:
        client_id, secret, issued = reader.take(8), reader.take(32), reader.integer(8)
        flags = reader.within(reader.integer(1), 0, 3)
        address = read_address(reader) if flags & 1 else None
        once_at_each = flags & 2 != 0
        counts = (0, MAX_ADDRESSES) if once_at_each else (1, 1)
        servers = [read_address(reader) for _ in range(reader.within(reader.integer(1), *counts))]
        rates = reader.integer(4), reader.integer(4)
        user_data = reader.take(reader.within(reader.integer(2), 0, MAX_USER_DATA))
    except Refused as refused:
        raise Refused("malformed", str(refused)) from None
    if len(reader):
        raise Refused("malformed", "bytes are left over")
    return Token(
        protocol_id,
        key_id,
        expiry,
        nonce,
        client_id,
        secret,
        address,
        servers,
        *rates,
        user_data,
        None,
        issued,
        once_at_each,
    )


def token_key_id(key: bytes) -> bytes:
    """Section 7.1."""
    return derive_key("haulier/1 2026 token key id", key)[:4]
