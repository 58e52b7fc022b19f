//! What tokens and tickets have in common: addresses, and their form as text.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base64ct::{Base64UrlUnpadded, Encoding, Error};
use zeroize::Zeroizing;

use crate::fields::{FieldError, Fields};

/// The maximum of addresses in a token or ticket.
pub(super) const MAX_ADDRESSES: usize = 8;

/// `prefix` and `bytes` in base64url, written once: text that is made in parts leaves copies behind.
pub(super) fn to_text(prefix: &str, bytes: &[u8]) -> String {
    let mut text = vec![0; prefix.len() + Base64UrlUnpadded::encoded_len(bytes)];
    let (start, rest) = text.split_at_mut(prefix.len());
    start.copy_from_slice(prefix.as_bytes());
    // It fits, and is text.
    let _written = Base64UrlUnpadded::encode(bytes, rest);
    String::from_utf8(text).unwrap_or_default()
}

/// The bytes of a text in base64url, wiped when dropped, also if only a part of it could be decoded.
pub(super) fn from_text(encoded: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    let mut bytes = Zeroizing::new(vec![0; encoded.len()]);
    let length = Base64UrlUnpadded::decode(encoded, &mut bytes)?.len();
    bytes.truncate(length);
    Ok(bytes)
}

/// Why a token or ticket could not be read: it ends too early, or a field has an invalid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadError {
    CutOff,
    Wrong,
}

impl From<FieldError> for ReadError {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::CutOff => Self::CutOff,
            FieldError::Trailing => Self::Wrong,
        }
    }
}

pub(super) fn read_address(fields: &mut Fields<'_>) -> Result<SocketAddr, ReadError> {
    let ip: IpAddr = match fields.u8()? {
        4 => Ipv4Addr::from(fields.array::<4>()?).into(),
        6 => Ipv6Addr::from(fields.array::<16>()?).into(),
        _ => return Err(ReadError::Wrong),
    };
    Ok(SocketAddr::new(ip, fields.u16()?))
}

/// A count and as many addresses.
pub(super) fn read_addresses(fields: &mut Fields<'_>) -> Result<Vec<SocketAddr>, ReadError> {
    let count = usize::from(fields.u8()?);
    if count > MAX_ADDRESSES {
        return Err(ReadError::Wrong);
    }
    (0..count).map(|_| read_address(fields)).collect()
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
        let mut fields = Fields(&bytes);
        assert_eq!(read_addresses(&mut fields), Ok(addresses));
        fields.end().unwrap();
        for length in 0..bytes.len() {
            assert_eq!(read_addresses(&mut Fields(&bytes[..length])), Err(ReadError::CutOff));
        }
    }

    #[test]
    fn invalid_addresses_are_refused() {
        assert_eq!(read_address(&mut Fields(&[5; 20])), Err(ReadError::Wrong));
        assert_eq!(read_addresses(&mut Fields(&[9; 200])), Err(ReadError::Wrong), "nine of them");
        let nine = vec![SocketAddr::from(([0; 4], 1)); 9];
        assert_eq!(write_addresses(&mut Vec::new(), &nine), None);
    }
}
