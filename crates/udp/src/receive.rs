//! Receiving many datagrams with one call on Linux, with everything that the system says about each.
//!
//! `quinn-udp` (0.6.3) offers the system 96 bytes for what it reports. With the time of arrival these are too
//! few for datagrams that were joined: time, size of each, our address and ECN field are 112
//! bytes, 120 with IPv6, and the system leaves the last one out, which is the ECN field. A receiver then
//! counts no marks, and the sender takes the path for one that clears the field. So the call is made here,
//! with room for all; its options are still `quinn-udp`'s. The invariant: nothing that the system has to say
//! is cut off.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg,
};
use nix::sys::time::TimeSpec;
use quinn_udp::{EcnCodepoint, RecvMeta};

/// Fills the buffers, and describes the content of each. Returns the number of buffers filled.
pub(crate) fn receive(
    socket: &UdpSocket,
    buffers: &mut [IoSliceMut<'_>],
    metas: &mut [RecvMeta],
) -> io::Result<usize> {
    // The time of arrival, our address, the size of joined datagrams, the ECN field. For each call anew: used
    // twice, it has only the room that the call before needed.
    let said = nix::cmsg_space!(TimeSpec, libc::in6_pktinfo, libc::c_int, libc::c_int);
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(buffers.len(), Some(said));
    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
    let flags = MsgFlags::MSG_DONTWAIT;
    let received = recvmmsg(socket.as_raw_fd(), &mut headers, &mut slices, flags, None)?;
    let mut filled = 0;
    for (message, meta) in received.zip(metas) {
        // A buffer that cannot be described counts as empty, without a sender: the others were received too,
        // and an error would lose them.
        *meta = decode(&message).unwrap_or_default();
        filled += 1;
    }
    Ok(filled)
}

/// What the system said about what is in one buffer.
fn decode(message: &RecvMsg<'_, '_, SockaddrStorage>) -> io::Result<RecvMeta> {
    let mut meta = RecvMeta::default();
    meta.addr = message.address.as_ref().and_then(address).ok_or(io::ErrorKind::InvalidData)?;
    (meta.len, meta.stride) = (message.bytes, message.bytes);
    for said in message.cmsgs()? {
        match said {
            ControlMessageOwned::ScmTimestampns(time) => {
                let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
                let nanos = u32::try_from(time.tv_nsec()).unwrap_or(0);
                meta.timestamp = Some(Duration::new(seconds, nanos));
            }
            ControlMessageOwned::UdpGroSegments(bytes) => {
                meta.stride = usize::try_from(bytes).unwrap_or(message.bytes);
            }
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                meta.dst_ip = Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                meta.dst_ip = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            ControlMessageOwned::Ipv4Tos(field) => meta.ecn = EcnCodepoint::from_bits(field),
            ControlMessageOwned::Ipv6TClass(field) => {
                meta.ecn = EcnCodepoint::from_bits(field.to_le_bytes()[0]);
            }
            _ => {}
        }
    }
    Ok(meta)
}

fn address(of: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = of.as_sockaddr_in().map(|&v4| SocketAddr::V4(v4.into()));
    v4.or_else(|| of.as_sockaddr_in6().map(|&v6| SocketAddr::V6(v6.into())))
}
