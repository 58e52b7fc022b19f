"""Noise `NNpsk0` and `NKpsk0` with 25519, ChaChaPoly and BLAKE2s (sections 3.1 and 3.2)."""

import hmac
from hashlib import blake2s
from typing import Optional, Tuple

import chacha
from wire import u64
from x25519 import public, x25519


class Handshake:
    """One end's symmetric state, and the two messages it writes or reads.

    `identity` is the server's public key, for pattern NK; None is pattern NN. The server also gives its
    `private`. The ephemeral key is given, so that a row of the vectors can be made again.
    """

    def __init__(
        self,
        psk: bytes,
        prologue: bytes,
        ephemeral: bytes,
        identity: Optional[bytes] = None,
        private: Optional[bytes] = None,
    ) -> None:
        name = f"Noise_{'NN' if identity is None else 'NK'}psk0_25519_ChaChaPoly_BLAKE2s".encode()
        self.chaining = self.hash = blake2s(name).digest()  # longer than 32 bytes, so hashed
        self.key, self.nonce = b"", 0
        self.psk, self.ephemeral, self.identity, self.private = psk, ephemeral, identity, private
        self.theirs = b""
        self._mix_hash(prologue)
        if identity is not None:
            self._mix_hash(identity)

    def write_request(self, payload: bytes) -> bytes:
        """Message 1, by the client: psk, e, and in NK es."""
        self._mix_psk()
        start = self._send_ephemeral()
        if self.identity is not None:
            self._mix_key(x25519(self.ephemeral, self.identity))
        return start + self._encrypt(payload)

    def read_request(self, message: bytes) -> bytes:
        """Message 1, by the server; `Refused` if it was not made with this secret or identity."""
        self._mix_psk()
        self._receive_ephemeral(message[:32])
        if self.private is not None:
            self._mix_key(x25519(self.private, self.theirs))
        return self._decrypt(message[32:])

    def write_response(self, payload: bytes) -> bytes:
        """Message 2, by the server: e, ee."""
        start = self._send_ephemeral()
        self._mix_key(x25519(self.ephemeral, self.theirs))
        return start + self._encrypt(payload)

    def read_response(self, message: bytes) -> bytes:
        """Message 2, by the client. A refused message leaves this as it was: a forged one may come first."""
        before = self.chaining, self.hash, self.key, self.nonce, self.theirs
        try:
            self._receive_ephemeral(message[:32])
            self._mix_key(x25519(self.ephemeral, self.theirs))
            return self._decrypt(message[32:])
        except Exception:
            self.chaining, self.hash, self.key, self.nonce, self.theirs = before
            raise

    def split(self) -> Tuple[bytes, bytes]:
        """The secrets client to server, server to client."""
        first, second, _ = self._derive(b"")
        return first, second

    def _derive(self, material: bytes) -> Tuple[bytes, bytes, bytes]:
        """HKDF of Noise, section 4.3."""
        extracted = hmac.new(self.chaining, material, blake2s).digest()
        one = hmac.new(extracted, b"\1", blake2s).digest()
        two = hmac.new(extracted, one + b"\2", blake2s).digest()
        return one, two, hmac.new(extracted, two + b"\3", blake2s).digest()

    def _mix_hash(self, data: bytes) -> None:
        self.hash = blake2s(self.hash + data).digest()

    def _mix_key(self, material: bytes) -> None:
        self.chaining, self.key, _ = self._derive(material)
        self.nonce = 0

    def _mix_psk(self) -> None:
        self.chaining, hashed, self.key = self._derive(self.psk)
        self._mix_hash(hashed)
        self.nonce = 0

    def _send_ephemeral(self) -> bytes:
        key = public(self.ephemeral)
        self._mix_hash(key)
        self._mix_key(key)  # as every handshake with a psk does
        return key

    def _receive_ephemeral(self, key: bytes) -> None:
        self.theirs = key
        self._mix_hash(key)
        self._mix_key(key)

    def _encrypt(self, payload: bytes) -> bytes:
        sealed = chacha.seal(self.key, bytes(4) + u64(self.nonce), self.hash, payload)
        self.nonce += 1
        self._mix_hash(sealed)
        return sealed

    def _decrypt(self, sealed: bytes) -> bytes:
        payload = chacha.open_sealed(self.key, bytes(4) + u64(self.nonce), self.hash, sealed)
        self.nonce += 1
        self._mix_hash(sealed)
        return payload
