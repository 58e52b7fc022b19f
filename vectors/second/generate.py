"""Writes `vectors/haulier1.json`: golden bytes for every section of the page, from a fixed seed.

    python3 vectors/second/generate.py [FILE]

Row shapes are in `vectors/README.md`. Nothing here depends on the time, the machine or the Python version.
"""

import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import datagrams as d
import golden_frames
import golden_credentials
import parameters
from blake3 import blake3, join
from draw import draw, formula
from frames import Frame, ack_eliciting, read_all, show, wide, write_all
from noise import Handshake
from repair import reconstruct, repair_count, repair_slices
from tree import CHUNK, PAGE, Tree, chunk_count
from wire import Reader, Refused, address_text, varint
from x25519 import public

PROTOCOL_ID = 0x1122334455667788
Row = Dict[str, Any]


def hexed(value: Optional[bytes]) -> Optional[str]:
    return None if value is None else value.hex()


# Sections 1 and 2.


def varints() -> List[Row]:
    rows = []
    for value in (0, 1, 37, 63, 64, 15_293, 16_383, 16_384, 494_878_333, 2**30 - 1, 2**30, 151_288_809_941_952_652, 2**62 - 1):
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


# Section 3: keys, cookies, parameters.


def request_keys() -> List[Row]:
    rows = []
    for secret in (bytes(32), b"\xff" * 32, draw("request keys 0", 32), draw("request keys 1", 32)):
        for protocol_id in (0, PROTOCOL_ID, 2**64 - 1):
            keys = d.check_key(secret, protocol_id), d.noise_psk(secret, protocol_id)
            rows.append({"secret": secret.hex(), "protocol_id": wide(protocol_id), "check_key": keys[0].hex(), "noise_psk": keys[1].hex()})
    return rows


def cookies() -> List[Row]:
    key, client_id = draw("cookie key", 32), bytes(range(1, 9))
    addresses = (("192.0.2.1", 4000), ("192.0.2.1", 4001), ("255.255.255.255", 65_535), ("2001:db8::1", 4001), ("::ffff:192.0.2.1", 4000), ("::", 1))
    return [
        {"key": key.hex(), "time": time, "client_id": client_id.hex(), "address": address_text(a), "cookie": d.cookie(key, time, client_id, a).hex()}
        for time in (0, 1000, 2**32 - 1)
        for a in addresses
    ]


def show_parameters(kind: str, values: parameters.Parameters) -> Row:
    """Numbers that can be above 2^32 as text, like in frames."""
    shown: Row = {}
    bounds = {name: most for _, name, _, most, _ in parameters.NUMBERS}
    for name, value in values.items():
        if name == "unknown":
            shown[name] = [{"id": wide(number), "value": data.hex()} for number, data in value]
        elif name == "roots":
            shown[name] = [root.hex() for root in value]
        elif isinstance(value, bytes):
            shown[name] = value.hex()
        else:
            shown[name] = wide(value) if bounds.get(name, 0) > 2**32 else value
    return shown


EXTREMES: parameters.Parameters = {
    "idle_ms": 2**62 - 1, "largest_block": 2**62 - 1, "largest_datagram": 65_507, "max_ack_delay_ms": 1000,
    "credit": 2**62 - 1, "receive_buffer": 2**62 - 1, "channels": 256, "channel_bytes": 2**62 - 1, "repair_codes": 2**62 - 1,
}
TYPICAL: parameters.Parameters = {
    "idle_ms": 10_000, "largest_block": 1 << 30, "largest_datagram": 1472, "max_ack_delay_ms": 25,
    "credit": 64, "receive_buffer": 425_984, "channels": 4, "channel_bytes": 131_072, "repair_codes": 1,
}
GREASE = [(27, b""), (27 + 31 * 1000, bytes(range(8)))]
HELLOS: Dict[str, parameters.Parameters] = {
    "least": {},
    "typical": {**TYPICAL, "suites": 3, "request": b"HLF1\x01world.dat"},
    "extremes": {**EXTREMES, "suites": 255, "versions": [1, *range(2, 8), 2**32 - 1], "request": formula(0, 0, 400)},
    "zeros": {"idle_ms": 0, "max_ack_delay_ms": 0, "credit": 0},
    "one root": {"roots": [draw("root", 32)]},
    "sixteen roots": {"roots": [draw(f"root {i}", 32) for i in range(16)]},
    "greased": {"versions": [1, 0x5A6A7A8A], "unknown": GREASE},
    "unknown parameter of 100 bytes": {"unknown": [(15, formula(0, 0, 100))]},
    "those of a welcome, ignored": {"unknown": [(13, bytes(8)), (14, bytes(4))]},
}
WELCOMES: Dict[str, parameters.Parameters] = {
    "least": {},
    "typical": {**TYPICAL, "suite": 1},
    "extremes": {**EXTREMES, "suite": 1, "versions": [1, *range(2, 8), 2**32 - 1]},
    "greased": {"unknown": GREASE},
    "those of a hello, ignored": {"unknown": [(0, b""), (11, b""), (12, bytes(500))]},
}


def parameter_rows(kind: str, cases: Dict[str, parameters.Parameters]) -> List[Row]:
    rows = []
    for name, values in cases.items():
        if kind == parameters.WELCOME:
            values = {"server_id": draw(f"welcome {name}", 8), **values}
        whole = {**parameters.defaults(kind), **values}
        for everything in (False, True) if name in ("least", "typical") else (False,):
            data = parameters.write(kind, whole, everything)
            assert parameters.read(kind, data) == whole
            title = f"{name}, with the defaults written" if everything else name
            rows.append({"name": title, "parameters": show_parameters(kind, whole), "hex": data.hex()})
    return rows


def broken_parameters() -> List[Row]:
    def item(number: int, value: bytes) -> bytes:
        return varint(number) + varint(len(value)) + value

    versions, server_id = item(0, b"\1\0\0\0"), item(13, bytes(8))
    hello, welcome = parameters.HELLO, parameters.WELCOME
    cases = [
        ("empty", hello, b"", "missing"),
        ("empty", welcome, b"", "missing"),
        ("no versions", hello, item(2, varint(10_000)), "missing"),
        ("no server id", welcome, item(1, b"\0"), "missing"),
        ("idle timeout twice", hello, versions + item(2, varint(1)) * 2, "twice"),
        ("unknown twice", hello, versions + item(27, b"") + item(27, b"x"), "twice"),
        ("server id twice", welcome, server_id * 2, "twice"),
        ("id alone", hello, versions + b"\2", "truncated"),
        ("id cut off", hello, versions + b"\x40", "truncated"),
        ("length cut off", hello, versions + b"\2\x80", "truncated"),
        ("value cut off", hello, versions + item(12, b"abc")[:-1], "truncated"),
        ("number empty", hello, versions + item(2, b""), "truncated"),
        ("number cut off", hello, versions + item(2, b"\x40"), "truncated"),
        ("byte after number", hello, versions + item(2, b"\1\1"), "out_of_range"),
        ("no version in versions", hello, item(0, b""), "out_of_range"),
        ("nine versions", hello, item(0, b"\1\0\0\0" * 9), "out_of_range"),
        ("versions of 5 bytes", hello, item(0, b"\1\0\0\0\0"), "truncated"),
        ("not the version of the request", hello, item(0, b"\2\0\0\0"), "out_of_range"),
        ("suites without ChaCha20-Poly1305", hello, versions + item(1, b"\2"), "out_of_range"),
        ("suites of 2 bytes", hello, versions + item(1, b"\1\0"), "out_of_range"),
        ("suite 2", welcome, server_id + item(1, b"\2"), "out_of_range"),
        ("datagram of 1199", hello, versions + item(4, varint(1199)), "out_of_range"),
        ("datagram of 65508", hello, versions + item(4, varint(65_508)), "out_of_range"),
        ("ack delay of 1001 ms", welcome, server_id + item(5, varint(1001)), "out_of_range"),
        ("no channel", hello, versions + item(8, varint(0)), "out_of_range"),
        ("257 channels", hello, versions + item(8, varint(257)), "out_of_range"),
        ("channel of 65535 bytes", hello, versions + item(9, varint(65_535)), "out_of_range"),
        ("no root in roots", hello, versions + item(11, b""), "out_of_range"),
        ("root of 31 bytes", hello, versions + item(11, bytes(31)), "out_of_range"),
        ("root of 33 bytes", hello, versions + item(11, bytes(33)), "truncated"),
        ("seventeen roots", hello, versions + item(11, bytes(17 * 32)), "out_of_range"),
        ("request of 401 bytes", hello, versions + item(12, bytes(401)), "out_of_range"),
        ("server id of 7 bytes", welcome, item(13, bytes(7)), "truncated"),
        ("server id of 9 bytes", welcome, item(13, bytes(9)), "out_of_range"),
    ]
    rows = []
    for name, kind, data, reason in cases:
        try:
            parameters.read(kind, data)
            raise AssertionError(f"{name} was read")
        except Refused as refused:
            assert refused.reason == reason, (name, refused)
        rows.append({"name": f"{kind}: {name}", "in": kind, "hex": data.hex(), "reason": reason})
    return rows


# Section 3: handshakes.


class Case:
    """One handshake with everything in it; its name is that of its rows."""

    def __init__(self, name: str, mode: int, suite: int, hello: parameters.Parameters, token: Optional[Tuple[str, bytes, bytes]] = None) -> None:
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
            "name": self.name, "psk": psk.hex(), "prologue": prologue.hex(),
            "identity_private": hexed(self.private), "identity_public": hexed(identity),
            "client_ephemeral": ephemeral[0].hex(), "server_ephemeral": ephemeral[1].hex(),
            "hello": self.hello_data.hex(), "message_1": first.hex(), "welcome": self.welcome_data.hex(), "message_2": second.hex(),
            "client_to_server": self.secrets[0].hex(), "server_to_client": self.secrets[1].hex(),
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
            "name": name, "version": 1, "mode": self.mode, "client_id": self.client_id.hex(), "cookie": cookie.hex(),
            "token": self.token_name, "sealed_token": self.token.hex(), "secret": hexed(self.secret),
            "hello": show_parameters(parameters.HELLO, self.hello), "hello_message": self.messages[0].hex(),
            "padding": data[used:1184].hex(), "check": data[1184:].hex(), "hex": data.hex(),
        }

    def datagram(self, name: str, sender: str, number: int, frames: List[Frame], key_number: int = 0, response: bool = False) -> Row:
        protection = self.protection(sender, key_number)
        plaintext = write_all(frames)
        receiver = self.server_id if sender == "client" else self.client_id
        if response:
            before = d.response_header(self.client_id, self.messages[1], number)
        else:
            before = d.data_header((d.FROM_CLIENT if sender == "client" else d.FROM_SERVER) | key_number & 1, receiver, number)
        data = protection.seal(number, before, plaintext)
        assert protection.open(number, before, data[len(before) :]) == plaintext and len(data) <= 1200
        row: Row = {
            "name": f"{self.name}: {name}", "handshake": self.name, "mode": self.mode, "suite": self.suite,
            "client_id": self.client_id.hex(), "server_id": self.server_id.hex(), "from": sender, "key_number": key_number,
            "key": protection.key.hex() or None, "packet_number": wide(number),
            "frames": [show(frame) for frame in frames], "plaintext": plaintext.hex(), "hex": data.hex(),
        }
        if response:
            row.update(welcome=show_parameters(parameters.WELCOME, self.welcome), welcome_message=self.messages[1].hex())
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
    return rows + [case.request(cookie_of(case)) for case in all_cases if case.name in ("open", "secret, chacha", "token with identity")]


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
    return [{"name": name, "secret": hexed(case.secret), "hex": data.hex(), "reason": reason} for name, data, reason in rows]


def responses(all_cases: List[Case]) -> List[Row]:
    rows = []
    for case in all_cases:
        token: Frame = {"type": "reset_token", "token": draw(f"{case.name}: reset token", 16)}
        block: Frame = {"type": "block", "number": 0, "tag": 1, "length": 300, "root": blake3(formula(0, 0, 300))}
        last: Frame = {"type": "last_slice", "block": 0, "chunk": 0, "index": 0, "slice_size": 1024, "data": formula(0, 0, 300)}
        room = 1200 - 15 - len(case.messages[1]) - (12 if case.suite is None else 16) - 1
        rows.append(case.datagram("ping", "server", 0, [{"type": "ping"}, {"type": "padding", "count": 30}], response=True))
        rows.append(case.datagram("block and slice", "server", 1, [token, block, last], response=True))
        if case.name in ("open", "secret, chacha", "secret, aes", "token with identity"):
            rows.append(case.datagram("full", "server", 300, [{"type": "ping"}, {"type": "padding", "count": room}], response=True))
    return rows


def data_rows(all_cases: List[Case]) -> List[Row]:
    rows = []
    ack: Frame = {"type": "ack", "largest": 0, "delay_us": 0, "first": 0, "runs": []}
    for case in all_cases:
        rows.append(case.datagram("first of client", "client", 0, [ack, {"type": "ping"}]))
        rows.append(case.datagram("of server", "server", 2, [{"type": "packet", "sequence": 65_535, "data": formula(65_535, 0, 40)}]))
    for case in all_cases:
        if case.name not in ("open", "secret, chacha", "secret, aes"):
            continue
        for name, sender, frames in golden_frames.mixtures():
            rows.append(case.datagram(name, sender, 77, frames))
        for number, name in ((2**32 - 1, "last of 32 bits"), (2**32, "first above 32 bits"), (2**64 - 1, "largest number")):
            rows.append(case.datagram(name, "client", number, [{"type": "ping"}]))
        if case.suite is not None:
            for key_number in (1, 2, 3):
                for sender in ("client", "server"):
                    rows.append(case.datagram(f"key {key_number} of {sender}", sender, 1000 + key_number, [{"type": "ping"}], key_number))
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
            rows.append({
                "name": f"{case.name}: code {code}", "mode": case.mode, "client_id": case.client_id.hex(), "code": code, "versions": versions,
                "secret": hexed(case.secret), "check_is": "right" if valid else "zero", "check": data[-16:].hex(), "hex": data.hex(),
            })
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
        {"name": c.name, "client_id": c.client_id.hex(), "cookie": cookie_of(c).hex(), "hex": d.write_retry(c.client_id, cookie_of(c)).hex()}
        for c in all_cases
    ]


def resets(all_cases: List[Case]) -> List[Row]:
    rows = []
    for case in all_cases:
        token = draw(f"{case.name}: reset token", 16)
        rows.append({"name": case.name, "reset_token": token.hex(), "hex": (bytes([d.RESET]) + token).hex()})
    return rows


# Section 4.2: the tree, and repair slices.


def tree_rows() -> List[Row]:
    """Blocks of formula data with i = 0, o over the whole block. Pages of large trees as digests."""
    rows = []
    lengths = [0, 1, 1023, 1024, 1025, 65_536, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1025, 3 * CHUNK]
    lengths += [31 * CHUNK + 1, 32 * CHUNK, 32 * CHUNK + 1, 33 * CHUNK, 9 << 20]
    data = formula(0, 0, max(lengths))
    for length in lengths:
        tree = Tree(data[:length])
        assert tree.root == blake3(data[:length])
        pages = [{"level": level, "first": first, "values": [v.hex() for v in tree.page((level, first))]} for level, first in tree.pages()]
        rows.append({"length": length, "chunks": chunk_count(length), "root": tree.root.hex(), "pages": pages})
    return rows


def tall_trees() -> List[Row]:
    """Trees above chunks whose values are given by a formula: BLAKE3 of the chunk's number, 8 bytes."""
    rows = []
    for chunks in (2, 32, 33, 1000, 1024, 1025, 33_000):
        level = [blake3(i.to_bytes(8, "little")) for i in range(chunks)]
        levels = []
        while True:
            levels.append({"values": len(level), "blake3": blake3(b"".join(level)).hex(), "last": level[-1].hex()})
            if len(level) <= PAGE:
                break
            level = [join(level[at : at + PAGE]) for at in range(0, len(level), PAGE)]
        rows.append({"chunks": chunks, "levels": levels, "root": join(level, root=True).hex()})
    return rows


def repair_rows() -> List[Row]:
    """Chunks of formula data with i = 0; all repair slices joined, as a digest, and the start of some."""
    rows = []
    shapes = [
        (3, 2), (4, 2), (66, 64), (100, 50), (128, 64), (129, 64), (192, 96), (1000, 300), (1000, 334), (3000, 1024), (5000, 1172),
        (10_000, 130), (65_535, 1172), (CHUNK, 1024), (CHUNK, 1136), (CHUNK, 1434), (CHUNK - 1, 1024), (CHUNK, 2048), (CHUNK, 8944), (CHUNK, 65_472),
        (512, 2), (511, 2), (260, 2), (32 * 1172 + 1, 1172), (33 * 1172, 1172), (128 * 1172 + 2, 1172),
    ]
    for length, size in shapes:
        chunk = formula(0, 0, length)
        slices = repair_slices(chunk, size)
        k = -(-length // size)
        some = sorted({0, 1, len(slices) // 2, len(slices) - 1})
        first = {i: chunk[i * size : (i + 1) * size] for i in range(0, k, 2)} if k <= 64 else {i: chunk[i * size : (i + 1) * size] for i in range(6, k)}
        assert reconstruct(size, k, length, first, dict(enumerate(slices))) == chunk
        rows.append({
            "length": length, "slice_size": size, "k": k, "repair": repair_count(k),
            "blake3": blake3(b"".join(slices)).hex(),
            "slices": [{"index": i, "first32_hex": slices[i][:32].hex(), "last8_hex": slices[i][-8:].hex(), "blake3": blake3(slices[i]).hex()} for i in some],
        })
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
        "hellos": parameter_rows(parameters.HELLO, HELLOS),
        "welcomes": parameter_rows(parameters.WELCOME, WELCOMES),
        "broken_parameters": broken_parameters(),
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
        "version_answers": version_answers(),
        "resets": resets(all_cases),
        "frames": golden_frames.frame_rows(),
        "large_frames": golden_frames.large_frame_rows(),
        "broken_frames": golden_frames.broken_frame_rows(),
        "trees": tree_rows(),
        "tall_trees": tall_trees(),
        "repair": repair_rows(),
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
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "haulier1.json"
    path.write_text(text(everything()), encoding="utf-8")
