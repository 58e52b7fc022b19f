"""Tests of the second program: known answers, the golden file, and transfers over a bad link.

python3 vectors/second/test_second.py
"""

import json
import os
import random
import select
import socket
import tempfile
import threading
import time
import unittest
import zlib
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple

import aes
import blake3
import blocks
import chacha
import connection
import datagrams as d
import fetch
import frames
import generate
import handshake
import parameters
import repair
import serve
import tree
from credentials import Ticket
from draw import draw, formula
from handshake import Credentials, identity_of
from recovery import ProtocolError, Received, acked_ranges
from wire import Address, Refused
from x25519 import BASE, x25519

h = bytes.fromhex
GOLDEN = Path(__file__).resolve().parent.parent / "haulier1.json"


class KnownAnswers(unittest.TestCase):
    """Test vectors of others."""

    def test_blake3(self) -> None:
        """From BLAKE3's test_vectors.json: input byte i is i mod 251."""
        for length, expected in (
            (0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"),
            (1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"),
            (1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"),
            (1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"),
            (2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"),
            (31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"),
            (102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"),
        ):
            self.assertEqual(blake3.blake3(bytes(i % 251 for i in range(length))).hex(), expected)
        key = b"whats the Elvish word for friend"
        self.assertEqual(
            blake3.keyed(key, b"").hex(), "92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26"
        )
        context = "BLAKE3 2019-12-27 16:29:52 test vectors context"
        self.assertEqual(
            blake3.derive_key(context, b"").hex(), "2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d"
        )

    def test_x25519(self) -> None:
        """RFC 7748, section 5.2."""
        scalar = h("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
        point = h("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
        self.assertEqual(
            x25519(scalar, point).hex(), "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
        )
        k, u = BASE, BASE
        for turn in range(1000):
            k, u = x25519(k, u), k
            if turn == 0:
                self.assertEqual(k.hex(), "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079")
        self.assertEqual(k.hex(), "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51")

    def test_chacha20_poly1305(self) -> None:
        """RFC 8439, section 2.8.2."""
        key, nonce = bytes(range(0x80, 0xA0)), h("070000004041424344454647")
        text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
        sealed = chacha.seal(key, nonce, h("50515253c0c1c2c3c4c5c6c7"), text)
        self.assertEqual(sealed[-16:].hex(), "1ae10b594f09e26a7e902ecbd0600691")
        self.assertEqual(sealed[:16].hex(), "d31a8d34648e60db7b86afbc53ef7ec2")
        self.assertEqual(chacha.open_sealed(key, nonce, h("50515253c0c1c2c3c4c5c6c7"), sealed), text)
        with self.assertRaises(Refused):
            chacha.open_sealed(key, nonce, b"", sealed)

    def test_xchacha20_poly1305(self) -> None:
        """draft-irtf-cfrg-xchacha-03, appendix A.3.1."""
        key, nonce = bytes(range(0x80, 0xA0)), bytes(range(0x40, 0x58))
        text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
        sealed = chacha.xseal(key, nonce, h("50515253c0c1c2c3c4c5c6c7"), text)
        self.assertEqual(sealed[-16:].hex(), "c0875924c1c7987947deafd8780acf49")

    def test_aes_256_gcm(self) -> None:
        """FIPS 197, appendix C.3; test case 14 of the GCM specification."""
        block = aes.encrypt_block(bytes(range(32)), h("00112233445566778899aabbccddeeff"))
        self.assertEqual(block.hex(), "8ea2b7ca516745bfeafc49904b496089")
        self.assertEqual(
            aes.seal(bytes(32), bytes(12), b"", bytes(16)).hex(),
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
        )

    def test_repair_slices(self) -> None:
        """Cantor's basis, and what Leopard's low-rate encoder (reed-solomon-simd 3.1) computes."""

        def square(value: int) -> int:
            product = 0
            for bit in range(16):
                if value >> bit & 1:
                    product ^= value << bit
            for bit in range(31, 15, -1):
                if product >> bit & 1:
                    product ^= repair.POLYNOMIAL << bit - 16
            return product

        for i in range(15):
            self.assertEqual(square(repair.BASIS[i + 1]) ^ repair.BASIS[i + 1], repair.BASIS[i])
        for length, size, expected in (
            (1000, 300, 0x827A011A),
            (77_777, 1434, 0x1BD6B5F5),
            (3, 2, 0x733A0462),
            (100, 50, 0x90E207CF),
            (262_144, 1402, 0x76887E30),
        ):
            self.assertEqual(zlib.crc32(b"".join(repair.repair_slices(formula(0, 0, length), size))), expected)


class Golden(unittest.TestCase):
    def test_the_file_is_what_the_program_writes(self) -> None:
        self.assertEqual(GOLDEN.read_text(encoding="utf-8"), generate.text(generate.everything()))

    def test_readers_of_random_bytes_refuse_or_read(self) -> None:
        """Nothing but `Refused` comes out of a reader, and what is read is written back."""
        rng = random.Random(1)
        good = [h(row["hex"]) for row in json.loads(GOLDEN.read_text(encoding="utf-8"))["frames"]]
        for _ in range(3000):
            data = bytearray(
                rng.choice(good) if rng.random() < 0.8 else bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
            )
            for _ in range(rng.randrange(3)):
                if data:
                    data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                found = frames.read_all(bytes(data))
            except Refused:
                continue
            self.assertEqual(frames.read_all(frames.write_all(found)), found)


class Parts(unittest.TestCase):
    def test_acks_name_what_was_received(self) -> None:
        rng = random.Random(2)
        for _ in range(50):
            received = Received()
            numbers = rng.sample(range(300), rng.choice((30, 150)))
            for number in numbers:
                received.remember(number)
                received.acknowledge(number)
            named = {n for low, last in acked_ranges(received.ack(0), 300) for n in range(low, last + 1)}
            self.assertLessEqual(named, set(numbers))
            self.assertEqual(max(named), max(numbers))
            self.assertGreaterEqual(len(named), min(len(numbers), 32))
            if len(numbers) == 30:
                self.assertEqual(named, set(numbers))

    def test_pages_in_any_order(self) -> None:
        length = 70 * tree.CHUNK
        values = [blake3.blake3(bytes([i])) for i in range(70)]
        upper = [blake3.join(values[at : at + 32]) for at in (0, 32, 64)]
        root = blake3.join(upper, root=True)
        pages = [((1, 0), upper)] + [((0, at), values[at : at + 32]) for at in (0, 32, 64)]
        for seed in range(10):
            verifier = tree.Verifier(root, length)
            for page, its in random.Random(seed).sample(pages, 4):
                self.assertEqual(verifier.add(page, its), "kept")
            self.assertEqual(len(verifier.verified), 4)
        verifier = tree.Verifier(root, length)
        self.assertEqual(verifier.add((0, 32), values[:32]), "kept")
        self.assertEqual(verifier.add((1, 0), upper), "wrong")
        self.assertEqual(verifier.add((0, 31), values[:32]), "no such page")
        self.assertEqual(verifier.add((1, 0), upper[:2]), "no such page")

    def test_slices_of_a_chunk(self) -> None:
        """Smaller ones start it over, larger ones are dropped, others are refused (H-4.2c, H-4.2d)."""
        data = formula(0, 0, 3000)

        def slices(size: int) -> List[frames.Frame]:
            return [
                (
                    {"type": "slice", "index": i, "data": data[i * size : (i + 1) * size]}
                    if (i + 1) * size < 3000
                    else {"type": "last_slice", "index": i, "slice_size": size, "data": data[i * size :]}
                )
                for i in range(-(-3000 // size))
            ]

        assembly = blocks.Assembly(3000)
        assembly.add(slices(1000)[0])
        assembly.add(slices(1000)[2])
        for one in slices(700):
            assembly.add(one)
            assembly.add(slices(1000)[1])
        self.assertEqual((assembly.slice_size, assembly.whole()), (700, data))
        for wrong in (
            {"type": "slice", "index": 2, "data": bytes(1000)},
            {"type": "slice", "index": 0, "data": bytes(10)},
            {"type": "last_slice", "index": 2, "slice_size": 1000, "data": bytes(999)},
            {"type": "repair_slice", "index": 4, "data": bytes(1000)},
            {"type": "repair_slice", "index": 0, "data": bytes(3000)},
        ):
            with self.assertRaises(ProtocolError):
                blocks.Assembly(3000).add(wrong)

    def test_a_forged_repair_slice_costs_one_more_try(self) -> None:
        """H-4.2i: started over once, then from source slices alone."""
        data = formula(0, 0, 3000)
        stored: List[bytes] = []
        block = {"type": "block", "number": 0, "tag": 1, "length": 3000, "root": blake3.blake3(data)}
        incoming = blocks.Incoming(block, lambda _, chunk: stored.append(chunk))
        forged = {"type": "repair_slice", "block": 0, "chunk": 0, "index": 0, "data": bytes(1000)}
        source = {"type": "slice", "block": 0, "chunk": 0}
        for _ in range(3):
            incoming.on_slice({**source, "index": 0, "data": data[:1000]})
            incoming.on_slice({**source, "index": 1, "data": data[1000:2000]})
            incoming.on_slice(forged)
        self.assertFalse(stored)
        incoming.on_slice({**source, "type": "last_slice", "index": 2, "slice_size": 1000, "data": data[2000:]})
        self.assertEqual(stored, [data])

    def test_what_comes_before_its_announcement(self) -> None:
        """H-4.2e: slices up to one chunk in all; what is not kept is not acknowledged."""
        data = formula(0, 0, 4000)
        stored: List[bytes] = []
        receiver = blocks.Receiver(1 << 20, 8, lambda _, __, chunk: stored.append(chunk), lambda _: None)
        last = {"type": "last_slice", "block": 0, "chunk": 0, "index": 3, "slice_size": 1000, "data": data[3000:]}
        self.assertTrue(receiver.on_frame(last, 0.0))
        kept = [
            receiver.on_frame({"type": "slice", "block": 1, "chunk": 0, "index": i, "data": bytes(1000)}, 0.0)
            for i in range(270)
        ]
        self.assertEqual(kept, [True] * 261 + [False] * 9)
        for i in range(3):
            self.assertFalse(
                receiver.on_frame(
                    {"type": "slice", "block": 0, "chunk": 0, "index": i, "data": data[i * 1000 : (i + 1) * 1000]}, 0.0
                )
            )
        receiver.on_frame({"type": "block", "number": 0, "tag": 1, "length": 4000, "root": blake3.blake3(data)}, 0.0)
        for i in range(3):
            self.assertTrue(
                receiver.on_frame(
                    {"type": "slice", "block": 0, "chunk": 0, "index": i, "data": data[i * 1000 : (i + 1) * 1000]}, 0.0
                )
            )
        self.assertEqual((stored, receiver.floor), ([data], 1))

    def test_a_cancel_keeps_the_credit_right(self) -> None:
        """What it says was opened counts, also before the announcement (section 4.2.7)."""
        receiver = blocks.Receiver(1 << 30, 8, lambda *_: None, lambda _: None)
        block = {"type": "block", "number": 1, "tag": 1, "length": 5 * tree.CHUNK, "root": bytes(32)}
        receiver.on_frame({"type": "cancel", "block": 1, "code": 0, "opened": 5}, 0.0)
        receiver.on_frame(block, 0.0)
        self.assertEqual((receiver.counted, receiver.credit(), receiver.floor), (6, 14, 0))
        receiver.on_frame({**block, "number": 0}, 0.0)
        receiver.on_frame({"type": "slice", "block": 0, "chunk": 3, "index": 0, "data": bytes(1024)}, 0.0)
        self.assertEqual((receiver.counted, receiver.credit()), (8, 15))
        with self.assertRaises(ProtocolError):
            receiver.on_frame({"type": "cancel", "block": 0, "code": 0, "opened": 0}, 0.0)
        receiver.on_frame({"type": "cancel", "block": 0, "code": 0, "opened": 3}, 0.0)
        self.assertEqual((receiver.counted, receiver.credit(), receiver.floor), (10, 18, 2))


class Hostile(unittest.TestCase):
    """Whatever comes in, nothing is raised."""

    def test_datagrams_that_nobody_sealed(self) -> None:
        rng = random.Random(3)
        rows = json.loads(GOLDEN.read_text(encoding="utf-8"))
        golden = [
            h(row["hex"])
            for kind in ("requests", "broken_requests", "responses", "data", "retries", "refusals", "resets")
            for row in rows[kind]
        ]
        credentials = Credentials(generate.PROTOCOL_ID, h(rows["requests"][3]["secret"]))
        server = serve.Server(credentials, "x", b"x")
        client = handshake.Client(credentials, {}, 1, ("127.0.0.1", 1), lambda _: connection.Stream(), 0.0)
        for turn in range(2000):
            data = bytearray(rng.choice(golden))
            if rng.random() < 0.5:
                data = data[: rng.randrange(len(data) + 1)]
            for _ in range(rng.randrange(4)):
                if data:
                    data[rng.randrange(len(data))] = rng.randrange(256)
            server.receive(bytes(data), ("127.0.0.1", 1 + turn), 0.0)
            client.receive(bytes(data[:1]) + client.client_id + bytes(data[9:]), 0.0)
        self.assertIsNone(client.connection)

    def test_frames_of_a_hostile_server(self) -> None:
        """Sealed as they should be, but senseless: the worst is a close."""
        rng = random.Random(4)
        rows = json.loads(GOLDEN.read_text(encoding="utf-8"))
        every = [frames.read_all(h(row["hex"]))[0] for row in rows["frames"]]
        closed = 0
        with tempfile.TemporaryDirectory() as directory:
            for turn in range(200):
                protection = d.Protection(None, b"", 1, bytes(8))
                one = connection.Connection(
                    False,
                    bytes(8),
                    bytes(8),
                    protection,
                    protection,
                    parameters.defaults("hello"),
                    parameters.defaults("welcome"),
                    ("127.0.0.1", 1),
                    0.0,
                )
                one.stream = fetch.Fetch("", Ticket(1, [], None), os.path.join(directory, "x"), one)
                for number in range(20):
                    some = [small(rng, frame) for frame in rng.sample(every, rng.randrange(1, 4))]
                    data = protection.seal(
                        number, d.data_header(d.FROM_SERVER, bytes(8), number), frames.write_all(some)
                    )
                    one.receive(data, ("127.0.0.1", 1), number / 100)
                    one.poll(number / 100)
                closed += one.closing is not None
                one.stream.discard()
        self.assertGreater(closed, 100)


def small(rng: random.Random, frame: frames.Frame) -> frames.Frame:
    """The frame, mostly of block 0 or 1 and chunk 0 or 1, so that it meets others."""
    nearer = {
        key: rng.randrange(2)
        for key in ("block", "number", "chunk", "first", "channel")
        if key in frame and frame["type"] != "unknown" and rng.random() < 0.8
    }
    if frame["type"] == "hashes":
        nearer["first"] = 0
    if frame["type"] == "block" and rng.random() < 0.8:
        nearer["length"], nearer["tag"] = rng.choice((0, 1, 300, 3 * tree.CHUNK)), 1
    return {**frame, **nearer}


class Relay(threading.Thread):
    """A link between one client and a server: loses, doubles and overtakes, and may change its own port."""

    def __init__(self, server: Address, loss: float, seed: int) -> None:
        super().__init__(daemon=True)
        self.server, self.loss, self.rng = server, loss, random.Random(seed)
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.back.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.client: Optional[Address] = None
        self.stopped = False
        self.passed = self.lost = 0
        self.move_after = 0
        self.held: List[Tuple[bytes, bool]] = []
        self.carries = [65_507]  # bytes in a datagram; after the first large ones perhaps fewer
        self.large = self.largest = 0

    def run(self) -> None:
        while not self.stopped:
            ready, _, _ = select.select([self.front, self.back], [], [], 0.02)
            if not ready:
                self._release()
            for sock in ready:
                if sock not in (self.front, self.back):
                    continue  # the client has moved since it was found ready
                data, sender = sock.recvfrom(65_536)
                up = sock is self.front
                if up:
                    self.client = sender
                self._pass(data, up)

    def _pass(self, data: bytes, up: bool) -> None:
        self.passed += 1
        if len(data) > 1200:
            self.large += 1
        if len(data) > self.carries[0 if self.large < 20 else -1]:
            return
        self.largest = max(self.largest, len(data))
        if self.passed == self.move_after:
            self.back.close()
            self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        chance = self.rng.random()
        if chance < self.loss:
            self.lost += 1
        elif chance < 1.5 * self.loss:
            self.held.append((data, up))
        else:
            self._send(data, up)
            if chance > 1 - self.loss / 2:
                self._send(data, up)
            if len(self.held) > 4:
                self._release()

    def _release(self) -> None:
        for data, up in self.held:
            self._send(data, up)
        self.held = []

    def _send(self, data: bytes, up: bool) -> None:
        if up:
            self.back.sendto(data, self.server)
        elif self.client is not None:
            self.front.sendto(data, self.client)


class Transfers(unittest.TestCase):
    """fetch.py against serve.py over loopback."""

    def setUp(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, "got")

    def tearDown(self) -> None:
        self.directory.cleanup()

    def transfer(
        self,
        size: int,
        loss: float = 0.0,
        identity: bool = False,
        secret: bool = True,
        retry: bool = False,
        prepare: Callable[[serve.Server], None] = lambda _: None,
        repair_slices: int = 0,
        move_after: int = 0,
        carries: Tuple[int, ...] = (65_507,),
        name: str = "",
        ticket_secret: Optional[bytes] = None,
        each_turn: Callable[[serve.Server], None] = lambda _: None,
    ) -> Tuple[serve.Server, Relay]:
        """One file of so many bytes; raises what `fetch` raises."""
        data = draw("transfer", size)
        private = draw("transfer identity", 32) if identity else None
        credentials = Credentials(
            serve.PROTOCOL_ID, draw("transfer secret", 32) if secret else None, identity_of(private), private
        )
        server = serve.Server(
            credentials, "world.dat", data, retry_above=0 if retry else 32, repair_per_chunk=repair_slices
        )
        prepare(server)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        relay = Relay(udp.getsockname(), loss, seed=size)
        relay.move_after, relay.carries = move_after, list(carries)
        stopped = threading.Event()
        running = threading.Thread(target=serve.run, args=(server, udp, stopped.is_set), daemon=True)
        running.start()
        relay.start()
        ticket = Ticket(
            serve.PROTOCOL_ID,
            [relay.front.getsockname()],
            ticket_secret or credentials.secret,
            server.root,
            credentials.identity,
        )
        try:
            self.assertEqual(fetch.fetch(ticket.text(), self.path, name, lambda _: each_turn(server)), "world.dat")
            self.assertEqual(Path(self.path).read_bytes(), data)
            deadline = time.monotonic() + 3
            while not server.finished and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertEqual(server.finished, 1, "the server heard of the end")
        finally:
            self.assertFalse(os.path.exists(self.path + ".part"))
            stopped.set()
            relay.stopped = True
            running.join()
            relay.join()
            for sock in (udp, relay.front, relay.back):
                sock.close()
        return server, relay

    def test_a_file(self) -> None:
        self.transfer(1 << 20)

    def test_small_files(self) -> None:
        for size in (0, 1, 2, 1023, 1151, 3000, 262_144, 262_145):
            self.transfer(size)

    def test_every_mode(self) -> None:
        self.transfer(5000, secret=False)
        self.transfer(5000, identity=True)

    def test_a_bad_link(self) -> None:
        _, relay = self.transfer(600_000, loss=0.1)
        self.assertGreater(relay.lost, 20)

    def test_a_very_bad_link(self) -> None:
        self.transfer(100_000, loss=0.3)

    def test_repair_slices(self) -> None:
        self.transfer(600_000, loss=0.1, repair_slices=40)

    def test_wrong_repair_slices(self) -> None:
        """Each chunk is started over twice; slices here tells the sender (H-4.2i)."""
        right = blocks.repair_slices
        blocks.repair_slices = lambda data, size: [bytes(size)] * len(right(data, size))
        try:
            self.transfer(300_000, loss=0.1, repair_slices=60)
        finally:
            blocks.repair_slices = right

    def test_a_retry(self) -> None:
        self.transfer(5000, retry=True)
        self.transfer(5001, retry=True, loss=0.2)

    def test_the_line(self) -> None:
        """No seat until the client has asked for its place twice; then it is called."""

        def fill(server: serve.Server) -> None:
            server.seats, ask = 0, server.ask

            def free(*question: Any) -> int:
                place = ask(*question)
                server.seats = int(server.questions >= 2)
                return place

            server.ask = free  # type: ignore[method-assign]

        for loss in (0.0, 0.2):
            server, _ = self.transfer(5002, loss=loss, prepare=fill)
            self.assertGreaterEqual(server.questions, 3)
            self.assertFalse(server.line)

    def test_a_client_that_moves(self) -> None:
        self.transfer(1 << 20, move_after=300)

    def test_more_than_the_credit(self) -> None:
        before = fetch.CREDIT
        fetch.CREDIT = 2
        try:
            self.transfer(9 * tree.CHUNK + 5)
        finally:
            fetch.CREDIT = before

    def test_paths_of_every_size(self) -> None:
        """Probes find 8972 and 1472 bytes, and a path that shrinks is noticed (section 5.6)."""
        for carries, largest in (
            ((65_507,), 8972),
            ((1472,), 1472),
            ((1200,), 1200),
            ((8972, 1200), 8972),
            ((1472, 1300), 1472),
        ):
            _, relay = self.transfer(3 << 18, carries=carries)
            self.assertEqual(relay.largest, largest)

    def test_key_updates(self) -> None:
        before = connection.KEY_LIFE
        connection.KEY_LIFE = 0.02
        seen = set()

        def look(server: serve.Server) -> None:
            seen.update(c.sealing_number for c in list(server.by_id.values()))

        try:
            self.transfer(600_000, loss=0.05, each_turn=look)
        finally:
            connection.KEY_LIFE = before
        self.assertGreater(max(seen), 2)

    def test_a_server_that_forgot_says_so(self) -> None:
        def forget(server: serve.Server) -> None:
            for server_id, one in list(server.by_id.items()):
                if one.recovery.next_number > 100:
                    server.given_out[server_id] = None
                    server.by_id.pop(server_id, None)

        started = time.monotonic()
        with self.assertRaisesRegex(fetch.Failed, "no such connection"):
            self.transfer(1 << 20, each_turn=forget)
        self.assertLess(time.monotonic() - started, 10)

    def test_another_secret_is_refused(self) -> None:
        started = time.monotonic()
        with self.assertRaisesRegex(fetch.Failed, "refused: key"):
            self.transfer(10, ticket_secret=bytes(32))
        self.assertLess(time.monotonic() - started, 3)

    def test_another_name_is_not_found(self) -> None:
        with self.assertRaisesRegex(fetch.Failed, "no file of this name"):
            self.transfer(10, name="other")
        self.assertFalse(os.path.exists(self.path))


if __name__ == "__main__":
    unittest.main()
