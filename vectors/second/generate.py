"""Writes `vectors/haulier1.json`: golden bytes for every section of the page, from a fixed seed.

    python3 vectors/second/generate.py [FILE]

Row shapes are in `vectors/README.md`. Nothing here depends on the time, the machine or the Python version.
"""

import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import datagrams as d
import golden_blocks
import golden_credentials
import golden_files
import golden_frames
import golden_parameters
import parameters
from blake3 import blake3
from draw import draw, formula
from frames import Frame, show, wide, write_all
from noise import Handshake
from wire import Reader, address_text, varint
from x25519 import public

PROTOCOL_ID = 0x1122334455667788
Row = Dict[str, Any]


def hexed(value: Optional[bytes]) -> Optional[str]:
    return None if value is None else value.hex()


# Sections 1 and 2.


def varints() -> List[Row]:
    rows = []
    for value in (
        0,
        1,
        37,
        63,
        64,
        15_293,
        16_383,
        16_384,
        494_878_333,
        2**30 - 1,
        2**30,
        151_288_809_941_952_652,
        2**62 - 1,
    ):
        for size in (1, 2, 4, 8):
            if value < 1 << 8 * size - 2:
                encoded = varint(value, size)
                assert Reader(encoded).varint() == value
                rows.append({"value": wide(value), "hex": encoded.hex(), "shortest": encoded == varint(value)})
    return rows


def packet_numbers() -> List[Row]:
    """Expansion of the low 32 bits (section 2.2); `expected` is the largest number plus one."""
    rows = []
    for expected in (0, 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 5, 2**40 + 2**31, 2**63, 2**64 - 1):
        for low in sorted({0, 1, 2**31 - 1, 2**31, 2**32 - 1, expected % 2**32, (expected - 2**31) % 2**32}):
            rows.append({"expected": wide(expected), "low": low, "number": wide(d.expand(low, expected))})
    return rows


def traffic() -> List[Row]:
    rows = []
    for secret in (bytes(32), b"\xff" * 32, draw("traffic 0", 32), draw("traffic 1", 32)):
        chain, current = [], secret
        for n in range(4):
            chain.append({"n": n, "secret": current.hex(), "key": d.traffic_key(current).hex()})
            current = d.next_secret(current)
        rows.append({"secret": secret.hex(), "chain": chain})
    return rows


# Section 3: keys, cookies.


def request_keys() -> List[Row]:
    rows = []
    for secret in (bytes(32), b"\xff" * 32, draw("request keys 0", 32), draw("request keys 1", 32)):
        for protocol_id in (0, PROTOCOL_ID, 2**64 - 1):
            keys = d.check_key(secret, protocol_id), d.noise_psk(secret, protocol_id)
            rows.append(
                {
                    "secret": secret.hex(),
                    "protocol_id": wide(protocol_id),
                    "check_key": keys[0].hex(),
                    "noise_psk": keys[1].hex(),
                }
            )
    return rows


def cookies() -> List[Row]:
    key, client_id = draw("cookie key", 32), bytes(range(1, 9))
    addresses = (
        ("192.0.2.1", 4000),
        ("192.0.2.1", 4001),
        ("255.255.255.255", 65_535),
        ("2001:db8::1", 4001),
        ("::ffff:192.0.2.1", 4000),
        ("::", 1),
    )
    return [
        {
            "key": key.hex(),
            "time": time,
            "client_id": client_id.hex(),
            "address": address_text(a),
            "cookie": d.cookie(key, time, client_id, a).hex(),
        }
        for time in (0, 1000, 2**32 - 1)
        for a in addresses
    ]


# Section 3: handshakes.


class Case:
    """One handshake with everything in it; its name is that of its rows."""

    def __init__(
        self,
        name: str,
        mode: int,
        suite: int,
        hello: parameters.Parameters,
        token: Optional[Tuple[str, bytes, bytes]] = None,
    ) -> None:
        self.name, self.mode, self.suite = name, mode, None if mode == d.OPEN else suite
        self.token_name, self.token, self.secret = None, b"", None
        if token is not None:
            self.token_name, self.token, self.secret = token
        elif mode != d.OPEN:
            self.secret = draw(f"{name}: secret", 32)
        self.check_key = None if self.secret is None else d.check_key(self.secret, PROTOCOL_ID)
        self.client_id, self.server_id = draw(f"{name}: client id", 8), draw(f"{name}: server id", 8)
        self.private = draw("identity", 32) if mode & d.WITH_IDENTITY else None
        self.hello = {**parameters.defaults(parameters.HELLO), **hello}
        welcome = {"server_id": self.server_id, "suite": suite, "largest_block": 1 << 30, "idle_ms": 8000}
        self.welcome = {**parameters.defaults(parameters.WELCOME), **welcome}
        self.hello_data = parameters.write(parameters.HELLO, self.hello)
        self.welcome_data = parameters.write(parameters.WELCOME, self.welcome)
        self.noise_row: Optional[Row] = None
        self.messages = (self.hello_data, self.welcome_data)
        self.secrets = (b"", b"")
        if mode != d.OPEN:
            self._handshake()

    def _handshake(self) -> None:
        assert self.secret is not None
        psk = d.noise_psk(self.secret, PROTOCOL_ID)
        prologue = d.prologue(1, self.client_id, self.mode)
        identity = None if self.private is None else public(self.private)
        ephemeral = draw(f"{self.name}: client ephemeral", 32), draw(f"{self.name}: server ephemeral", 32)
        client = Handshake(psk, prologue, ephemeral[0], identity)
        server = Handshake(psk, prologue, ephemeral[1], identity, self.private)
        first = client.write_request(self.hello_data)
        assert server.read_request(first) == self.hello_data
        second = server.write_response(self.welcome_data)
        assert client.read_response(second) == self.welcome_data
        assert client.split() == server.split()
        self.messages, self.secrets = (first, second), client.split()
        self.noise_row = {
            "name": self.name,
            "psk": psk.hex(),
            "prologue": prologue.hex(),
            "identity_private": hexed(self.private),
            "identity_public": hexed(identity),
            "client_ephemeral": ephemeral[0].hex(),
            "server_ephemeral": ephemeral[1].hex(),
            "hello": self.hello_data.hex(),
            "message_1": first.hex(),
            "welcome": self.welcome_data.hex(),
            "message_2": second.hex(),
            "client_to_server": self.secrets[0].hex(),
            "server_to_client": self.secrets[1].hex(),
        }

    def protection(self, sender: str, key_number: int) -> d.Protection:
        secret, own_id = (self.secrets[0], self.client_id) if sender == "client" else (self.secrets[1], self.server_id)
        protection = d.Protection(self.suite, secret, PROTOCOL_ID, own_id)
        for _ in range(key_number):
            protection = protection.next()
        return protection

    def request(self, cookie: bytes) -> Row:
        name = f"{self.name}, with cookie" if cookie else self.name
        request = d.Request(1, self.client_id, self.mode, cookie, self.token, self.messages[0])
        data = d.write_request(request, draw(f"{name}: padding", 1200), self.check_key, PROTOCOL_ID)
        assert d.read_request(data) == request
        used = 19 + len(cookie) + len(self.token) + len(self.messages[0])
        return {
            "name": name,
            "version": 1,
            "mode": self.mode,
            "client_id": self.client_id.hex(),
            "cookie": cookie.hex(),
            "token": self.token_name,
            "sealed_token": self.token.hex(),
            "secret": hexed(self.secret),
            "hello": golden_parameters.show(parameters.HELLO, self.hello),
            "hello_message": self.messages[0].hex(),
            "padding": data[used:1184].hex(),
            "check": data[1184:].hex(),
            "hex": data.hex(),
        }

    def datagram(
        self, name: str, sender: str, number: int, frames: List[Frame], key_number: int = 0, response: bool = False
    ) -> Row:
        protection = self.protection(sender, key_number)
        plaintext = write_all(frames)
        receiver = self.server_id if sender == "client" else self.client_id
        if response:
            before = d.response_header(self.client_id, self.messages[1], number)
        else:
            before = d.data_header(
                (d.FROM_CLIENT if sender == "client" else d.FROM_SERVER) | key_number & 1, receiver, number
            )
        data = protection.seal(number, before, plaintext)
        assert protection.open(number, before, data[len(before) :]) == plaintext and len(data) <= 1200
        row: Row = {
            "name": f"{self.name}: {name}",
            "handshake": self.name,
            "mode": self.mode,
            "suite": self.suite,
            "client_id": self.client_id.hex(),
            "server_id": self.server_id.hex(),
            "from": sender,
            "key_number": key_number,
            "key": protection.key.hex() or None,
            "packet_number": wide(number),
            "frames": [show(frame) for frame in frames],
            "plaintext": plaintext.hex(),
            "hex": data.hex(),
        }
        if response:
            row.update(
                welcome=golden_parameters.show(parameters.WELCOME, self.welcome), welcome_message=self.messages[1].hex()
            )
        return row


def cases(tokens: golden_credentials.Tokens) -> List[Case]:
    request = {"request": b"HLF1\x01world.dat", "repair_codes": 1}
    by_name = {name: (name, sealed, token.secret) for name, token, sealed in tokens}
    return [
        Case("open", d.OPEN, 0, {"largest_block": 1 << 26}),
        Case("open with request", d.OPEN, 0, {**request, "largest_block": 1}),
        Case("secret, chacha", d.SECRET, 0, request),
        Case("secret, aes", d.SECRET, 1, {**request, "suites": 3}),
        Case("secret with identity", d.SECRET | d.WITH_IDENTITY, 0, {"roots": [draw("root", 32)]}),
        Case("token", d.TOKEN, 1, {"suites": 3, "versions": [1, 0x0A1A2A3A]}, by_name["least"]),
        Case("token with identity", d.TOKEN | d.WITH_IDENTITY, 0, {"request": formula(3, 0, 300)}, by_name["most"]),
    ]


def cookie_of(case: Case) -> bytes:
    return d.cookie(draw("cookie key", 32), 1000, case.client_id, ("192.0.2.1", 4000))


def requests(all_cases: List[Case]) -> List[Row]:
    rows = [case.request(b"") for case in all_cases]
    return rows + [
        case.request(cookie_of(case))
        for case in all_cases
        if case.name in ("open", "secret, chacha", "token with identity")
    ]


def broken_requests(all_cases: List[Case]) -> List[Row]:
    """Requests of "secret, chacha" that are wrong in one thing each, in the order of H-3.1b."""
    case = next(case for case in all_cases if case.name == "secret, chacha")
    good = bytes.fromhex(case.request(b"")["hex"])

    def changed(at: int, value: bytes, check_again: bool = True) -> bytes:
        data = good[:at] + value + good[at + len(value) :]
        return data[:1184] + d.check(case.check_key, PROTOCOL_ID, data[:1184]) if check_again else data

    rows = [
        ("1199 bytes", good[:-1], "bad_length"),
        ("1201 bytes", good + b"\0", "bad_length"),
        ("version 2", changed(1, b"\2\0\0\0"), "bad_version"),
        ("version 0", changed(1, bytes(4)), "bad_version"),
        ("mode 3", changed(13, b"\3"), "bad_mode"),
        ("identity in mode open", changed(13, b"\x10"), "bad_mode"),
        ("mode 33", changed(13, b"\x21"), "bad_mode"),
        ("cookie of 19 bytes", changed(14, b"\x13"), "bad_length"),
        ("token in mode secret", changed(15, b"\x69\0"), "bad_length"),
        ("hello message beyond the check", changed(17, (1166).to_bytes(2, "little")), "truncated"),
        ("bit of the padding", changed(1183, bytes([good[1183] ^ 1]), False), "bad_check"),
        ("bit of the check", changed(1199, bytes([good[1199] ^ 128]), False), "bad_check"),
        ("another client id", changed(5, bytes(8)), "bad_hello"),
        ("bit of the hello message", changed(60, bytes([good[60] ^ 1])), "bad_hello"),
        ("hello message of 47 bytes", changed(17, (47).to_bytes(2, "little")), "bad_hello"),
    ]
    return [
        {"name": name, "secret": hexed(case.secret), "hex": data.hex(), "reason": reason} for name, data, reason in rows
    ]


def responses(all_cases: List[Case]) -> List[Row]:
    rows = []
    for case in all_cases:
        token: Frame = {"type": "reset_token", "token": draw(f"{case.name}: reset token", 16)}
        block: Frame = {"type": "block", "number": 0, "tag": 1, "length": 300, "root": blake3(formula(0, 0, 300))}
        last: Frame = {
            "type": "last_slice",
            "block": 0,
            "chunk": 0,
            "index": 0,
            "slice_size": 1024,
            "data": formula(0, 0, 300),
        }
        room = 1200 - 15 - len(case.messages[1]) - (12 if case.suite is None else 16) - 1
        rows.append(
            case.datagram("ping", "server", 0, [{"type": "ping"}, {"type": "padding", "count": 30}], response=True)
        )
        rows.append(case.datagram("block and slice", "server", 1, [token, block, last], response=True))
        if case.name in ("open", "secret, chacha", "secret, aes", "token with identity"):
            rows.append(
                case.datagram(
                    "full", "server", 300, [{"type": "ping"}, {"type": "padding", "count": room}], response=True
                )
            )
    return rows


def data_rows(all_cases: List[Case]) -> List[Row]:
    rows = []
    ack: Frame = {"type": "ack", "largest": 0, "delay_us": 0, "first": 0, "runs": []}
    for case in all_cases:
        rows.append(case.datagram("first of client", "client", 0, [ack, {"type": "ping"}]))
        rows.append(
            case.datagram(
                "of server", "server", 2, [{"type": "packet", "sequence": 65_535, "data": formula(65_535, 0, 40)}]
            )
        )
    for case in all_cases:
        if case.name not in ("open", "secret, chacha", "secret, aes"):
            continue
        for name, sender, frames in golden_frames.mixtures():
            rows.append(case.datagram(name, sender, 77, frames))
        for number, name in (
            (2**32 - 1, "last of 32 bits"),
            (2**32, "first above 32 bits"),
            (2**64 - 1, "largest number"),
        ):
            rows.append(case.datagram(name, "client", number, [{"type": "ping"}]))
        if case.suite is not None:
            for key_number in (1, 2, 3):
                for sender in ("client", "server"):
                    rows.append(
                        case.datagram(
                            f"key {key_number} of {sender}", sender, 1000 + key_number, [{"type": "ping"}], key_number
                        )
                    )
    return rows


def refusals(all_cases: List[Case]) -> List[Row]:
    """Section 3.6: codes 1, 2 and 5 have a check of zero bytes, the others a valid one."""
    rows = []
    for case in all_cases:
        codes = [(1, [1, 2]), (2, [1]), (3, [1]), (4, list(range(1, 9))), (8, [1, 2]), (9, [])]
        if case.mode & 15 == d.TOKEN:
            codes += [(5, [1]), (6, [1]), (7, [1])]
        for code, versions in codes:
            valid = code not in (1, 2, 5)
            data = d.write_refusal(case.client_id, code, versions, case.check_key, PROTOCOL_ID, valid)
            assert d.read_refusal(data) == d.Refusal(case.client_id, code, versions, data[-16:])
            rows.append(
                {
                    "name": f"{case.name}: code {code}",
                    "mode": case.mode,
                    "client_id": case.client_id.hex(),
                    "code": code,
                    "versions": versions,
                    "secret": hexed(case.secret),
                    "check_is": "right" if valid else "zero",
                    "check": data[-16:].hex(),
                    "hex": data.hex(),
                }
            )
    return rows


def in_lines(all_cases: List[Case]) -> List[Row]:
    """Section 3.6, "In line": code 10, with a valid check."""
    rows = []
    places = [(1, 2500, 1000), (0, 0, 1000), (None, None, 30_000), (16_384, None, 8192), (258, 49 << 25, 10_000)]
    for number, case in enumerate(all_cases):
        place, estimate, again = places[number % len(places)]
        line = d.InLine(case.client_id, place, estimate, again)
        data = d.write_in_line(line, case.check_key, PROTOCOL_ID)
        assert d.read_in_line(data) == line
        rows.append(
            {
                "name": case.name,
                "client_id": case.client_id.hex(),
                "place": place,
                "estimate_ms": estimate,
                "again_ms": again,
                "secret": hexed(case.secret),
                "check_is": "right",
                "check": data[-16:].hex(),
                "hex": data.hex(),
            }
        )
    return rows


def version_answers() -> List[Row]:
    """Section 1.2: a refusal of code 1, for whoever asks with another version."""
    rows = []
    for versions in ([], [1], [1, 2], [1, 0x0A1A2A3A], [0xFF000001] + list(range(1, 8))):
        client_id = draw(f"version answer {versions}", 8)
        data = d.write_refusal(client_id, 1, versions, None, PROTOCOL_ID, False)
        rows.append({"client_id": client_id.hex(), "versions": versions, "hex": data.hex()})
    return rows


def retries(all_cases: List[Case]) -> List[Row]:
    return [
        {
            "name": c.name,
            "client_id": c.client_id.hex(),
            "cookie": cookie_of(c).hex(),
            "hex": d.write_retry(c.client_id, cookie_of(c)).hex(),
        }
        for c in all_cases
    ]


def resets(all_cases: List[Case]) -> List[Row]:
    rows = []
    for case in all_cases:
        token = draw(f"{case.name}: reset token", 16)
        rows.append({"name": case.name, "reset_token": token.hex(), "hex": (bytes([d.RESET]) + token).hex()})
    return rows


def everything() -> Row:
    tokens = golden_credentials.tokens(PROTOCOL_ID)
    all_cases = cases(tokens)
    return {
        "about": "Golden bytes of the wire haulier/1. Described in README.md. Made by second/generate.py.",
        "protocol_id": wide(PROTOCOL_ID),
        "varints": varints(),
        "packet_numbers": packet_numbers(),
        "request_keys": request_keys(),
        "traffic": traffic(),
        "cookies": cookies(),
        "hellos": golden_parameters.rows(parameters.HELLO, golden_parameters.HELLOS),
        "welcomes": golden_parameters.rows(parameters.WELCOME, golden_parameters.WELCOMES),
        "broken_parameters": golden_parameters.broken(),
        "tokens": golden_credentials.token_rows(tokens),
        "broken_tokens": golden_credentials.broken_tokens(PROTOCOL_ID),
        "token_key_ids": golden_credentials.token_key_ids(),
        "tickets": golden_credentials.ticket_rows(PROTOCOL_ID),
        "broken_tickets": golden_credentials.broken_tickets(PROTOCOL_ID),
        "noise": [case.noise_row for case in all_cases if case.noise_row],
        "requests": requests(all_cases),
        "broken_requests": broken_requests(all_cases),
        "responses": responses(all_cases),
        "data": data_rows(all_cases),
        "retries": retries(all_cases),
        "refusals": refusals(all_cases),
        "in_lines": in_lines(all_cases),
        "version_answers": version_answers(),
        "resets": resets(all_cases),
        "frames": golden_frames.frame_rows(),
        "large_frames": golden_frames.large_frame_rows(),
        "broken_frames": golden_frames.broken_frame_rows(),
        "trees": golden_blocks.tree_rows(),
        "tall_trees": golden_blocks.tall_trees(),
        "repair": golden_blocks.repair_rows(),
        "file_requests": golden_files.requests(),
        "offers": golden_files.offers(),
        "file_tags": golden_files.tags(),
        "file_messages": golden_files.messages(),
        "broken_files": golden_files.broken(),
    }


def text(rows: Row) -> str:
    """One row a line, so that a change of one row is a change of one line."""
    parts = []
    for key, value in rows.items():
        if isinstance(value, list):
            lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f'"{key}": [\n{lines}\n ]')
        else:
            parts.append(f'"{key}": {json.dumps(value)}')
    return "{\n " + ",\n ".join(parts) + "\n}\n"


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:2] and sys.argv[1].startswith("-"):
        sys.exit("usage: generate.py [FILE]\nWrites the golden bytes of STANDARD-1, to vectors/haulier1.json if no FILE is given.")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "haulier1.json"
    path.write_text(text(everything()), encoding="utf-8")
