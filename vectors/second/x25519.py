"""X25519 (RFC 7748). Not in constant time: for tests and tools, not for a server that guards anything."""

P = 2**255 - 19
BASE = (9).to_bytes(32, "little")


def x25519(scalar: bytes, point: bytes) -> bytes:
    """The Montgomery ladder of RFC 7748, section 5."""
    k = int.from_bytes(scalar, "little") & ((1 << 254) - 8) | 1 << 254
    x1 = int.from_bytes(point, "little") & (1 << 255) - 1
    x2, z2, x3, z3, swapped = 1, 0, x1, 1, 0
    for bit in range(254, -1, -1):
        if swapped ^ (k >> bit & 1):
            x2, x3, z2, z3 = x3, x2, z3, z2
        swapped = k >> bit & 1
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % P, b * b % P, d * a % P, c * b % P
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def public(private: bytes) -> bytes:
    return x25519(private, BASE)
