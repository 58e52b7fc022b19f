//! The common ground of tokens and tickets: a reader that runs out instead of panicking, and addresses.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The most addresses in a token or ticket.
pub const MAX_ADDRESSES: usize = 8;

/// Why bytes could not be read: they end too early, or cannot be what they stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadError {
    CutOff,
    Wrong,
}

/// Reads from the front.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn slice(&mut self, length: usize) -> Result<&'a [u8], ReadError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ReadError::CutOff)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(ReadError::CutOff)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ReadError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, ReadError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, ReadError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, ReadError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn address(&mut self) -> Result<SocketAddr, ReadError> {
        let ip: IpAddr = match self.byte()? {
            4 => Ipv4Addr::from(self.array::<4>()?).into(),
            6 => Ipv6Addr::from(self.array::<16>()?).into(),
            _ => return Err(ReadError::Wrong),
        };
        Ok(SocketAddr::new(ip, self.u16()?))
    }

    /// A count and as many addresses.
    pub(super) fn addresses(&mut self) -> Result<Vec<SocketAddr>, ReadError> {
        let count = usize::from(self.byte()?);
        if count > MAX_ADDRESSES {
            return Err(ReadError::Wrong);
        }
        (0..count).map(|_| self.address()).collect()
    }

    /// That everything was read.
    pub(super) const fn finish(self) -> Result<(), ReadError> {
        if self.0.is_empty() { Ok(()) } else { Err(ReadError::Wrong) }
    }
}

pub(super) fn write_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend(ip.octets());
        }
    }
    out.extend(address.port().to_le_bytes());
}

/// A count and the addresses, or `None` if there are more than [`MAX_ADDRESSES`].
pub(super) fn write_addresses(out: &mut Vec<u8>, addresses: &[SocketAddr]) -> Option<()> {
    let count = u8::try_from(addresses.len()).ok().filter(|&n| usize::from(n) <= MAX_ADDRESSES)?;
    out.push(count);
    addresses.iter().for_each(|&address| write_address(out, address));
    Some(())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn addresses_come_back() {
        let addresses: Vec<SocketAddr> =
            ["192.0.2.1:4000", "[2001:db8::1]:65535"].map(|text| text.parse().unwrap()).into();
        let mut bytes = Vec::new();
        write_addresses(&mut bytes, &addresses).unwrap();
        assert_eq!(bytes.len(), 1 + 7 + 19);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.addresses(), Ok(addresses));
        reader.finish().unwrap();
        for length in 0..bytes.len() {
            assert_eq!(Reader::new(&bytes[..length]).addresses(), Err(ReadError::CutOff));
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        assert_eq!(Reader::new(&[5; 20]).address(), Err(ReadError::Wrong));
        assert_eq!(Reader::new(&[9; 200]).addresses(), Err(ReadError::Wrong), "nine of them");
        let nine = vec![SocketAddr::from(([0; 4], 1)); 9];
        assert_eq!(write_addresses(&mut Vec::new(), &nine), None);
    }
}
