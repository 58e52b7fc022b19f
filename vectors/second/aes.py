"""AES-256-GCM (FIPS 197, SP 800-38D): suite 1. Small and slow; the vectors need it, the client does not."""

import hmac
from functools import lru_cache
from typing import List

from wire import Refused

ROUNDS = 14


def _times(a: int, b: int) -> int:
    """A product in AES's field of 256 elements."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


def _substitute(value: int) -> int:
    """The S-box: the inverse (x to the 254), then the affine map."""
    inverse = 1
    for _ in range(254):
        inverse = _times(inverse, value)
    result = 0x63
    for turn in range(5):
        result ^= (inverse << turn | inverse >> 8 - turn) & 0xFF
    return result


SBOX = bytes(_substitute(value) for value in range(256))
TWICE = bytes(_times(value, 2) for value in range(256))


@lru_cache(maxsize=16)
def _round_keys(key: bytes) -> List[bytes]:
    words = [key[at : at + 4] for at in range(0, 32, 4)]
    constant = 1
    for i in range(8, 4 * (ROUNDS + 1)):
        word = words[-1]
        if i % 8 == 0:
            word = (word[1:] + word[:1]).translate(SBOX)
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = TWICE[constant]
        elif i % 8 == 4:
            word = word.translate(SBOX)
        words.append(bytes(a ^ b for a, b in zip(word, words[-8])))
    return [b"".join(words[at : at + 4]) for at in range(0, len(words), 4)]


def encrypt_block(key: bytes, block: bytes) -> bytes:
    keys = _round_keys(key)
    state = bytes(a ^ b for a, b in zip(block, keys[0]))
    for number in range(1, ROUNDS + 1):
        state = state.translate(SBOX)
        s = bytes(state[(i + 4 * (i % 4)) % 16] for i in range(16))  # ShiftRows
        if number < ROUNDS:  # MixColumns
            mixed = bytearray()
            for c in range(0, 16, 4):
                every = s[c] ^ s[c + 1] ^ s[c + 2] ^ s[c + 3]
                mixed += bytes(s[c + i] ^ every ^ TWICE[s[c + i] ^ s[c + (i + 1) % 4]] for i in range(4))
            s = bytes(mixed)
        state = bytes(a ^ b for a, b in zip(s, keys[number]))
    return state


def _ghash(h: int, data: bytes) -> int:
    total = 0
    for at in range(0, len(data), 16):
        total ^= int.from_bytes(data[at : at + 16], "big")
        product, v = 0, h
        for bit in range(127, -1, -1):
            if total >> bit & 1:
                product ^= v
            v = v >> 1 ^ (0xE1 << 120 if v & 1 else 0)
        total = product
    return total


def _crypt(key: bytes, nonce: bytes, data: bytes) -> bytes:
    count = (len(data) + 15) // 16
    stream = b"".join(encrypt_block(key, nonce + (i + 2).to_bytes(4, "big")) for i in range(count))
    return bytes(a ^ b for a, b in zip(data, stream))


def _tag(key: bytes, nonce: bytes, associated: bytes, ciphertext: bytes) -> bytes:
    h = int.from_bytes(encrypt_block(key, bytes(16)), "big")
    padded = associated + bytes(-len(associated) % 16) + ciphertext + bytes(-len(ciphertext) % 16)
    lengths = (8 * len(associated)).to_bytes(8, "big") + (8 * len(ciphertext)).to_bytes(8, "big")
    mask = int.from_bytes(encrypt_block(key, nonce + (1).to_bytes(4, "big")), "big")
    return (_ghash(h, padded + lengths) ^ mask).to_bytes(16, "big")


def seal(key: bytes, nonce: bytes, associated: bytes, plaintext: bytes) -> bytes:
    """The ciphertext and, after it, the tag of 16 bytes."""
    ciphertext = _crypt(key, nonce, plaintext)
    return ciphertext + _tag(key, nonce, associated, ciphertext)


def open_sealed(key: bytes, nonce: bytes, associated: bytes, sealed: bytes) -> bytes:
    """The plaintext, or `Refused` ("bad_seal")."""
    if len(sealed) < 16:
        raise Refused("truncated", "no tag")
    if not hmac.compare_digest(sealed[-16:], _tag(key, nonce, associated, sealed[:-16])):
        raise Refused("bad_seal")
    return _crypt(key, nonce, sealed[:-16])
