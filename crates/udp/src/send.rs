//! Sending several datagrams with one call on Linux, where the system does not split one buffer (GSO) or they
//! go to several addresses.
//!
//! The call sends them one after the other and returns the number that were sent. An error of a later
//! datagram is reported by the next call, so that an error is always that of the first datagram offered.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use haulier_core::Run;
use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};

/// Sends these, each a datagram, to `remote` or each to its own address. They have one ECN field, which is
/// `ecn`, one address of ours, and one version of IP. Returns the number sent, from the first on.
pub(crate) fn send(
    socket: &UdpSocket,
    datagrams: &[Run<'_>],
    remote: Option<SocketAddr>,
    ecn: u8,
) -> io::Result<usize> {
    let Some(first) = datagrams.first() else { return Ok(0) };
    let to = remote.unwrap_or(first.path.remote);
    let local = first.path.local.filter(|_| remote.is_none());
    let is_v4 = to.ip().to_canonical().is_ipv4();
    let (v4, v6) = (local.and_then(v4_source), local.and_then(v6_source));
    let class = i32::from(ecn);
    let mut said = vec![match is_v4 {
        true => ControlMessage::Ipv4Tos(&ecn),
        false => ControlMessage::Ipv6TClass(&class),
    }];
    said.extend(v4.as_ref().map(ControlMessage::Ipv4PacketInfo));
    said.extend(v6.as_ref().map(ControlMessage::Ipv6PacketInfo));
    // Room for exactly what is said: the system reads all of it.
    let room = match (is_v4, local) {
        (true, None) => nix::cmsg_space!(u8),
        (true, Some(IpAddr::V4(_))) => nix::cmsg_space!(u8, libc::in_pktinfo),
        (true, Some(IpAddr::V6(_))) => nix::cmsg_space!(u8, libc::in6_pktinfo),
        (false, None) => nix::cmsg_space!(libc::c_int),
        (false, Some(IpAddr::V4(_))) => nix::cmsg_space!(libc::c_int, libc::in_pktinfo),
        (false, Some(IpAddr::V6(_))) => nix::cmsg_space!(libc::c_int, libc::in6_pktinfo),
    };
    let mut headers = MultiHeaders::preallocate(datagrams.len(), Some(room));
    let slices: Vec<_> = datagrams.iter().map(|it| [IoSlice::new(it.bytes)]).collect();
    // A connected socket has its address.
    let address = |it: &Run<'_>| remote.is_none().then(|| SockaddrStorage::from(it.path.remote));
    let addresses: Vec<_> = datagrams.iter().map(address).collect();
    let flags = MsgFlags::MSG_DONTWAIT;
    let sent = sendmmsg(socket.as_raw_fd(), &mut headers, &slices, &addresses, &said, flags)?;
    Ok(sent.count())
}

const fn v4_source(local: IpAddr) -> Option<libc::in_pktinfo> {
    let IpAddr::V4(v4) = local else { return None };
    let source = libc::in_addr { s_addr: u32::from_ne_bytes(v4.octets()) };
    let any = libc::in_addr { s_addr: 0 };
    Some(libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: any })
}

const fn v6_source(local: IpAddr) -> Option<libc::in6_pktinfo> {
    let IpAddr::V6(v6) = local else { return None };
    let source = libc::in6_addr { s6_addr: v6.octets() };
    Some(libc::in6_pktinfo { ipi6_addr: source, ipi6_ifindex: 0 })
}
