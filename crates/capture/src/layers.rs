//! The UDP datagram in a captured packet, through the headers of its link and of IP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A UDP datagram, and the kept fields of the headers before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// From where.
    pub source: SocketAddr,
    /// To where.
    pub destination: SocketAddr,
    /// The traffic class, whose two lowest bits are ECN.
    pub traffic_class: u8,
    /// Hops that are left.
    pub hops: u8,
    /// The payload.
    pub payload: &'a [u8],
}

/// Why there is no datagram to read in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skipped {
    /// It is of another protocol than UDP over IP.
    NotUdp,
    /// It is a fragment of an IP packet; fragments are not put together.
    IpFragment,
    /// Less of it was captured than was sent.
    Cut,
    /// Its headers contradict themselves.
    Malformed,
    /// Its link type is not read.
    UnknownLink,
}

impl Skipped {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotUdp => "not_udp",
            Self::IpFragment => "ip_fragment",
            Self::Cut => "cut",
            Self::Malformed => "malformed",
            Self::UnknownLink => "unknown_link",
        }
    }
}

/// Link types of <https://www.tcpdump.org/linktypes.html>.
mod link {
    pub(super) const NULL: i32 = 0;
    pub(super) const ETHERNET: i32 = 1;
    /// What some systems call raw IP in their files.
    pub(super) const RAW_OF_BSD: [i32; 2] = [12, 14];
    pub(super) const RAW: i32 = 101;
    pub(super) const LOOP: i32 = 108;
    pub(super) const LINUX_SLL: i32 = 113;
    pub(super) const IPV4: i32 = 228;
    pub(super) const IPV6: i32 = 229;
    pub(super) const LINUX_SLL2: i32 = 276;
}

/// Types of what is in an Ethernet frame.
const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;

/// Tags of virtual networks: 802.1Q, 802.1ad, and what was used before that.
const VLANS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// The maximum number of tags, and of extension headers of IPv6: no real packet has as many.
const MAX_NESTED: usize = 8;

/// Protocol numbers of IP.
const UDP: u8 = 17;
const FRAGMENT: u8 = 44;

/// The datagram in a packet with this link type.
///
/// # Errors
/// [`Skipped`] if the packet has no datagram that can be read.
pub fn udp(link: i32, packet: &[u8]) -> Result<UdpDatagram<'_>, Skipped> {
    match link {
        link::ETHERNET => {
            let kind = big16(packet, 12)?;
            of_ether(kind, rest(packet, 14)?)
        }
        link::LINUX_SLL => of_ether(big16(packet, 14)?, rest(packet, 16)?),
        link::LINUX_SLL2 => of_ether(big16(packet, 0)?, rest(packet, 20)?),
        // The family of addresses has another number on each system; the IP header says which it is.
        link::NULL | link::LOOP => ip(rest(packet, 4)?),
        link::RAW | link::IPV4 | link::IPV6 => ip(packet),
        raw if link::RAW_OF_BSD.contains(&raw) => ip(packet),
        _ => Err(Skipped::UnknownLink),
    }
}

fn of_ether(mut kind: u16, mut packet: &[u8]) -> Result<UdpDatagram<'_>, Skipped> {
    for _ in 0..MAX_NESTED {
        if !VLANS.contains(&kind) {
            break;
        }
        kind = big16(packet, 2)?;
        packet = rest(packet, 4)?;
    }
    match kind {
        ETHER_IPV4 | ETHER_IPV6 => ip(packet),
        _ => Err(Skipped::NotUdp),
    }
}

fn ip(packet: &[u8]) -> Result<UdpDatagram<'_>, Skipped> {
    match packet.first().ok_or(Skipped::Cut)? >> 4 {
        4 => ipv4(packet),
        6 => ipv6(packet),
        _ => Err(Skipped::NotUdp),
    }
}

fn ipv4(packet: &[u8]) -> Result<UdpDatagram<'_>, Skipped> {
    let header = part(packet, 0, 20)?;
    let header_bytes = usize::from(header[0] & 15) * 4;
    let whole = usize::from(big16(header, 2)?);
    if header_bytes < 20 {
        return Err(Skipped::Malformed);
    }
    if header[9] != UDP {
        return Err(Skipped::NotUdp);
    }
    // The offset, and whether more follow.
    if big16(header, 6)? & 0x3fff != 0 {
        return Err(Skipped::IpFragment);
    }
    // What a card divides, or the loopback never divides, is captured before it has a length.
    let whole = if whole == 0 { packet.len() } else { whole };
    if whole < header_bytes {
        return Err(Skipped::Malformed);
    }
    let address =
        |at| -> Result<IpAddr, Skipped> { Ok(Ipv4Addr::from(array::<4>(packet, at)?).into()) };
    let addresses = (address(12)?, address(16)?);
    let inner = &packet[..whole.min(packet.len())];
    inside((header[1], header[8]), addresses, rest(inner, header_bytes)?)
}

fn ipv6(packet: &[u8]) -> Result<UdpDatagram<'_>, Skipped> {
    let header = part(packet, 0, 40)?;
    let traffic_class = header[0] << 4 | header[1] >> 4;
    let address =
        |at| -> Result<IpAddr, Skipped> { Ok(Ipv6Addr::from(array::<16>(packet, at)?).into()) };
    let addresses = (address(8)?, address(24)?);
    let whole = match usize::from(big16(header, 4)?) {
        0 => packet.len(),
        payload => 40 + payload,
    };
    let mut next = header[6];
    let mut inner = rest(&packet[..whole.min(packet.len())], 40)?;
    for _ in 0..MAX_NESTED {
        match next {
            UDP => return inside((traffic_class, header[7]), addresses, inner),
            FRAGMENT => {
                // One that is whole has this header too (RFC 6946).
                if big16(inner, 2)? & 0xfff9 != 0 {
                    return Err(Skipped::IpFragment);
                }
                next = inner[0];
                inner = rest(inner, 8)?;
            }
            // Hop-by-hop, routing, destination options, mobility, HIP, shim6: a length in 8 bytes less one.
            0 | 43 | 60 | 135 | 139 | 140 => {
                let [following, length] = array::<2>(inner, 0)?;
                next = following;
                inner = rest(inner, (usize::from(length) + 1) * 8)?;
            }
            _ => return Err(Skipped::NotUdp),
        }
    }
    Err(Skipped::Malformed)
}

/// The datagram behind the IP header.
fn inside(
    (traffic_class, hops): (u8, u8),
    (from, to): (IpAddr, IpAddr),
    udp: &[u8],
) -> Result<UdpDatagram<'_>, Skipped> {
    let source = SocketAddr::new(from, big16(udp, 0)?);
    let destination = SocketAddr::new(to, big16(udp, 2)?);
    let whole = match usize::from(big16(udp, 4)?) {
        0 => udp.len(),
        whole => whole,
    };
    if whole < 8 {
        return Err(Skipped::Malformed);
    }
    let payload = part(udp, 8, whole - 8)?;
    Ok(UdpDatagram { source, destination, traffic_class, hops, payload })
}

fn part(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], Skipped> {
    rest(bytes, at)?.get(..length).ok_or(Skipped::Cut)
}

fn rest(bytes: &[u8], at: usize) -> Result<&[u8], Skipped> {
    bytes.get(at..).ok_or(Skipped::Cut)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Skipped> {
    rest(bytes, at)?.first_chunk().copied().ok_or(Skipped::Cut)
}

fn big16(bytes: &[u8], at: usize) -> Result<u16, Skipped> {
    array(bytes, at).map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests;
