"""Numbers, lists and addresses, as every section writes them (sections 1 and 6).

Integers are little endian, but for the varint, which is RFC 9000's and big endian. A reader of bytes that
others sent raises `Refused` with the class of what is wrong, and nothing else.
"""

import ipaddress
from typing import Optional, Tuple

Address = Tuple[str, int]

MAX_VARINT = 2**62 - 1


class Refused(Exception):
    """Bytes that the page does not allow; `reason` is one word, the class."""

    def __init__(self, reason: str, what: str = "") -> None:
        super().__init__(f"{reason}: {what}" if what else reason)
        self.reason = reason


def u8(value: int) -> bytes:
    return value.to_bytes(1, "little")


def u16(value: int) -> bytes:
    return value.to_bytes(2, "little")


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


def varint(value: int, size: int = 0) -> bytes:
    """A number of RFC 9000, section 16, in `size` bytes; 0: in as few as it takes."""
    for power, limit in enumerate((1 << 6, 1 << 14, 1 << 30, 1 << 62)):
        if value < limit and (1 << power) >= size:
            return (value | power << (8 * (1 << power) - 2)).to_bytes(1 << power, "big")
    raise ValueError("above 2^62 - 1")


class Reader:
    """Takes bytes from the front; what is not there is `truncated`."""

    def __init__(self, data: bytes, start: int = 0) -> None:
        self.data = data
        self.at = start

    def __len__(self) -> int:
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        if count > len(self):
            raise Refused("truncated", f"{count} bytes at {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def rest(self) -> bytes:
        return self.take(len(self))

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def varint(self) -> int:
        first = self.integer(1)
        more = self.take((1 << (first >> 6)) - 1)
        return int.from_bytes(bytes([first & 63]) + more, "big")

    def within(self, value: int, least: int, most: int) -> int:
        if not least <= value <= most:
            raise Refused("out_of_range", f"{value} is not in {least} to {most}")
        return value


def address_bytes(address: Address) -> bytes:
    """`4` ‖ IPv4 ‖ port, or `6` ‖ IPv6 ‖ port (section 6)."""
    ip = ipaddress.ip_address(address[0])
    return u8(ip.version) + ip.packed + u16(address[1])


def read_address(reader: Reader) -> Address:
    kind = reader.integer(1)
    if kind not in (4, 6):
        raise Refused("out_of_range", f"an address of kind {kind}")
    ip = ipaddress.ip_address(reader.take(4 if kind == 4 else 16))
    return str(ip), reader.integer(2)


def mapped(address: Address) -> bytes:
    """16 bytes, IPv4 mapped ‖ port: what a cookie is computed over (section 3.6)."""
    ip = ipaddress.ip_address(address[0])
    packed = ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed
    return packed + u16(address[1])


def address_text(address: Address) -> str:
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"


def bit_map(bits: "list[bool]", size: Optional[int] = None) -> bytes:
    """A map (section 4): the lowest bit of each byte first."""
    value = sum(1 << i for i, bit in enumerate(bits) if bit)
    return value.to_bytes((len(bits) + 7) // 8 if size is None else size, "little")


def read_map(data: bytes) -> "list[bool]":
    value = int.from_bytes(data, "little")
    return [bool(value >> i & 1) for i in range(8 * len(data))]
