//! Datagrams as a pcap of raw IP, with the times, addresses and marks that they had.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use crate::layers::UdpDatagram;

/// The link type of packets that begin with their IP header.
const RAW_IP: u32 = 101;

/// Begins a pcap whose times are in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;

/// The longest packet that programs take.
const SNAP_BYTES: u32 = 262_144;

const UDP: u8 = 17;
const UDP_HEADER_BYTES: usize = 8;

/// Writes a pcap.
pub struct CaptureWriter<W> {
    to: W,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(mut to: W) -> io::Result<Self> {
        let mut header = Vec::new();
        header.extend(MAGIC.to_le_bytes());
        header.extend([2, 0, 4, 0]);
        header.extend([0; 8]);
        header.extend(SNAP_BYTES.to_le_bytes());
        header.extend(RAW_IP.to_le_bytes());
        to.write_all(&header)?;
        Ok(Self { to })
    }

    /// Appends a datagram at this time, in nanoseconds since 1970.
    ///
    /// # Errors
    /// Those of the writer; [`io::ErrorKind::InvalidInput`] if its addresses are of two families, or it is
    /// longer than UDP carries.
    pub fn write(&mut self, at_ns: u64, datagram: &UdpDatagram<'_>) -> io::Result<()> {
        let packet = packet(datagram).ok_or(io::ErrorKind::InvalidInput)?;
        let length = u32::try_from(packet.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // The format ends in 2106.
        let seconds = u32::try_from(at_ns / 1_000_000_000).unwrap_or(u32::MAX);
        let nanos = u32::try_from(at_ns % 1_000_000_000).unwrap_or_default();
        let record = [seconds, nanos, length, length].map(u32::to_le_bytes);
        self.to.write_all(record.as_flattened())?;
        self.to.write_all(&packet)
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn packet(datagram: &UdpDatagram<'_>) -> Option<Vec<u8>> {
    let UdpDatagram { source, destination, traffic_class, hops, payload } = *datagram;
    let udp_bytes = u16::try_from(UDP_HEADER_BYTES + payload.len()).ok()?;
    let (header, pseudo) = match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let length = udp_bytes.checked_add(20)?.to_be_bytes();
            let mut header =
                vec![0x45, traffic_class, length[0], length[1], 0, 0, 0x40, 0, hops, UDP, 0, 0];
            header.extend(from.octets());
            header.extend(to.octets());
            let checksum = checksum(&[&header]).to_be_bytes();
            header[10..12].copy_from_slice(&checksum);
            (header, [&from.octets()[..], &to.octets()].concat())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let [high, low] = [0x60 | traffic_class >> 4, traffic_class << 4];
            let length = udp_bytes.to_be_bytes();
            let mut header = vec![high, low, 0, 0, length[0], length[1], UDP, hops];
            header.extend(from.octets());
            header.extend(to.octets());
            (header, [&from.octets()[..], &to.octets()].concat())
        }
        _ => return None,
    };
    let mut packet = header;
    let udp = udp_header(source, destination, udp_bytes);
    let protocol = [0, UDP];
    // A checksum of 0 would mean that the datagram has no checksum (RFC 768).
    let sum = match checksum(&[&pseudo, &protocol, &udp_bytes.to_be_bytes(), &udp, payload]) {
        0 => 0xffff,
        sum => sum,
    };
    packet.extend(&udp[..6]);
    packet.extend(sum.to_be_bytes());
    packet.extend(payload);
    Some(packet)
}

fn udp_header(source: SocketAddr, destination: SocketAddr, bytes: u16) -> [u8; 8] {
    let fields = [source.port(), destination.port(), bytes, 0].map(u16::to_be_bytes);
    let mut header = [0; 8];
    header.copy_from_slice(fields.as_flattened());
    header
}

/// The checksum of the Internet over parts of an even length, the last one of any.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |word: &[u8]| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0));
    let mut sum: u64 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !u16::try_from(sum).unwrap_or_default()
}

#[cfg(test)]
mod tests;
