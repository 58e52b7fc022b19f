"""Rows for sections 6 to 8: tokens, tickets, and what is neither."""

from typing import Any, Dict, List, Tuple

from blake3 import blake3
from credentials import TICKET, TOKEN, Ticket, Token, open_token, read_ticket, seal_token, text_of, token_key_id
from draw import draw
from frames import wide
from wire import Address, Refused, address_bytes, address_text
from x25519 import public

Row = Dict[str, Any]
Tokens = List[Tuple[str, Token, bytes]]

V4: Address = ("192.0.2.1", 4000)
V6: Address = ("2001:db8::1", 4001)
EXPIRY = 2_000_000_000
KEY = draw("token key", 32)


def tokens(protocol_id: int) -> Tokens:
    def token(
        name: str,
        key_id: int,
        expiry: int,
        client: Any,
        servers: List[Address],
        rates: Tuple[int, int],
        user_data: bytes,
        identity: Any = None,
        issued: int = 1_900_000_000,
    ) -> Token:
        nonce, client_id, secret = draw(f"{name}: nonce", 24), draw(f"{name}: client", 8), draw(f"{name}: secret", 32)
        return Token(
            protocol_id,
            key_id,
            expiry,
            nonce,
            client_id,
            secret,
            client,
            servers,
            *rates,
            user_data,
            identity,
            issued,
            len(servers) != 1,
        )

    identity = public(draw("identity", 32))
    made = {
        "least": token("least", 7, EXPIRY, None, [], (0, 0), b""),
        "one server": token("one server", 7, EXPIRY, None, [V4], (0, 1_000_000), b"user 1"),
        "rates and address": token("rates and address", 7, EXPIRY, V4, [V4, V6], (25_000, 2**32 - 1), b"", identity),
        "most": token("most", 2**32 - 1, 2**63, V6, [V6] * 8, (1, 2), draw("user data", 256), identity, 2**63 - 1),
    }
    return [(name, one, one.sealed(KEY)) for name, one in made.items()]


def token_rows(made: Tokens) -> List[Row]:
    rows = []
    for name, token, sealed in made:
        part = token.client_part(KEY)
        assert open_token(sealed, KEY, token.key_id, token.protocol_id, 0) == token._replace(identity=None)
        rows.append(
            {
                "name": name,
                "token_key": KEY.hex(),
                "key_id": token.key_id,
                "client_id": token.client_id.hex(),
                "secret": token.secret.hex(),
                "expiry_unix": token.expiry_unix,
                "client_address": address_text(token.client_address) if token.client_address else None,
                "issued_unix": token.issued_unix,
                "once_at_each": token.once_at_each,
                "servers": [address_text(a) for a in token.servers],
                "least_bps": token.min_rate,
                "most_bps": token.max_rate,
                "user_data": token.user_data.hex(),
                "nonce": token.nonce.hex(),
                "identity": token.identity.hex() if token.identity else None,
                "sealed": sealed.hex(),
                "client_part": part.hex(),
                "text": text_of(TOKEN, part),
            }
        )
    return rows


def broken_tokens(protocol_id: int) -> List[Row]:
    now = EXPIRY - 1
    least = dict((name, token) for name, token, _ in tokens(protocol_id))["least"]
    good = least.sealed(KEY)
    start, content = least.start(), least.content()

    def sealed(inside: bytes, head: bytes = start) -> bytes:
        return seal_token(KEY, protocol_id, head, inside)

    before_servers, after_servers = content[:49], content[50:]
    one = before_servers[:48] + b"\0"
    cases = [
        ("empty", now, b"", "malformed"),
        ("one byte short of the least", now, good[:-1], "malformed"),
        ("above 640", now, sealed(content + bytes(640)), "malformed"),
        ("another version, sealed", now, sealed(content, b"2" + start[1:]), "malformed"),
        ("expired now", EXPIRY, good, "expired"),
        ("expired long ago", 2**63, good, "expired"),
        ("another key id", now, least._replace(key_id=8).sealed(KEY), "unknown_key"),
        ("another key", now, least.sealed(draw("another token key", 32)), "bad_seal"),
        ("another protocol id", now, least._replace(protocol_id=protocol_id ^ 1).sealed(KEY), "bad_seal"),
        ("expiry changed", now, good[:5] + bytes([good[5] ^ 1]) + good[6:], "bad_seal"),
        ("nonce changed", now, good[:13] + bytes([good[13] ^ 1]) + good[14:], "bad_seal"),
        ("one more", now, good + b"\0", "bad_seal"),
        ("byte left over, sealed", now, sealed(content + b"\0"), "malformed"),
        ("unknown flag, sealed", now, sealed(content[:48] + b"\6" + content[49:]), "malformed"),
        ("no server and not for each, sealed", now, sealed(one + b"\0" + after_servers), "malformed"),
        (
            "two servers and not for each, sealed",
            now,
            sealed(one + b"\2" + address_bytes(V4) * 2 + after_servers),
            "malformed",
        ),
        (
            "nine servers, sealed",
            now,
            sealed(before_servers + b"\x09" + address_bytes(V4) * 9 + after_servers),
            "malformed",
        ),
        (
            "address of kind 5, sealed",
            now,
            sealed(before_servers + b"\x01\x05" + address_bytes(V4)[1:] + after_servers),
            "malformed",
        ),
        ("257 bytes of user data, sealed", now, sealed(content[:-2] + b"\x01\x01" + bytes(257)), "malformed"),
        ("user data longer than the rest, sealed", now, sealed(content[:-2] + b"\x05\0abcd"), "malformed"),
    ]
    rows = []
    for name, when, data, reason in cases:
        try:
            open_token(data, KEY, 7, protocol_id, when)
            raise AssertionError(f"{name} was opened")
        except Refused as refused:
            assert refused.reason == reason, (name, refused)
        rows.append({"name": name, "now_unix": when, "sealed": data.hex(), "reason": reason})
    return rows


def token_key_ids() -> List[Row]:
    return [{"key": key.hex(), "key_id": token_key_id(key).hex()} for key in (bytes(32), KEY, b"\xff" * 32)]


def ticket_rows(protocol_id: int) -> List[Row]:
    secret, digest, identity = draw("ticket secret", 32), draw("ticket digest", 32), public(draw("identity", 32))
    made = {
        "open, least": Ticket(0, [("127.0.0.1", 4000)], None),
        "open with digest": Ticket(protocol_id, [V4], None, digest),
        "secret": Ticket(protocol_id, [V4], secret),
        "secret with digest": Ticket(protocol_id, [V4, V6], secret, digest),
        "secret with identity": Ticket(protocol_id, [V6], secret, None, identity),
        "everything": Ticket(2**64 - 1, [V6] * 8, secret, digest, identity),
    }
    rows = []
    for name, ticket in made.items():
        assert read_ticket(ticket.text()) == ticket
        rows.append(
            {
                "name": name,
                "protocol_id": wide(ticket.protocol_id),
                "addresses": [address_text(a) for a in ticket.addresses],
                "secret": ticket.secret.hex() if ticket.secret else None,
                "digest": ticket.digest.hex() if ticket.digest else None,
                "identity": ticket.identity.hex() if ticket.identity else None,
                "text": ticket.text(),
            }
        )
    return rows


def broken_tickets(protocol_id: int) -> List[Row]:
    ticket = Ticket(protocol_id, [V4], draw("ticket secret", 32), draw("ticket digest", 32))
    good = ticket.data()

    def again(data: bytes) -> str:
        """With the right last 4 bytes, whatever the data."""
        return text_of(TICKET, data + blake3(data)[:4])

    one, body = address_bytes(V4), good[:-4]
    with_flags = {flags: again(bytes([flags]) + body[1:]) for flags in (9, 129, 6, 7)}
    padded = text_of(TICKET, good)
    assert len(good) % 3 == 1, "the last character has bits to spare"
    cases = [
        ("empty", "", "not_a_ticket"),
        ("no prefix", padded[len(TICKET) :], "not_a_ticket"),
        ("a token", TOKEN + padded[len(TICKET) :], "not_a_ticket"),
        ("version 2", "haulier2:" + padded[len(TICKET) :], "newer"),
        ("prefix alone", TICKET, "cut_off"),
        ("half", padded[: len(padded) // 2], "cut_off"),
        ("last bytes", text_of(TICKET, good[:-3]), "cut_off"),
        ("last four bytes wrong", text_of(TICKET, body + bytes(x ^ 1 for x in good[-4:])), "mistyped"),
        ("a bit of the secret", text_of(TICKET, good[:30] + bytes([good[30] ^ 4]) + good[31:]), "mistyped"),
        ("unknown flag 8, mistyped", text_of(TICKET, bytes([good[0] | 8]) + good[1:]), "mistyped"),
        ("unknown flag 8", with_flags[9], "newer"),
        ("unknown flag 128", with_flags[129], "newer"),
        ("identity in mode open", with_flags[6], "mistyped"),
        ("identity and digest in mode open", with_flags[7], "mistyped"),
        ("no address", again(body[:9] + b"\0" + body[10 + len(one) :]), "mistyped"),
        ("nine addresses", again(body[:9] + b"\x09" + one * 9 + body[10 + len(one) :]), "mistyped"),
        ("address of kind 5", again(body[:10] + b"\5" + body[11:]), "mistyped"),
        ("byte left over", again(body + b"\0"), "mistyped"),
        ("bits left over", padded[:-1] + chr(ord(padded[-1]) + 1), "mistyped"),
        ("white space within", padded[:-9] + "\n" + padded[-9:], "mistyped"),
        ("base64 with padding", padded + "=" * (-len(padded[len(TICKET) :]) % 4 or 1), "mistyped"),
        (
            "standard alphabet",
            padded.replace("-", "+").replace("_", "/") + ("" if "-" in padded or "_" in padded else "+/"),
            "mistyped",
        ),
    ]
    rows = []
    for name, text, reason in cases:
        try:
            read_ticket(text)
            raise AssertionError(f"{name} was read")
        except Refused as refused:
            assert refused.reason == reason, (name, refused)
        rows.append({"name": name, "text": text, "reason": reason})
    return rows
