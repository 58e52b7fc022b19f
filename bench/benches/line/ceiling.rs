//! UDP without a protocol: one thread sends full buffers that the system splits (GSO), another one receives
//! them joined (GRO), and reports the number of bytes received. The bytes in flight fit into its buffer, so
//! none are lost.

use std::io::{ErrorKind, IoSliceMut};
use std::net::UdpSocket;
use std::time::Instant;

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};

use crate::table::{Crossing, cpu_of, spawn};

/// Bytes in flight at most: half of what a buffer of 4 MiB holds.
const MAX_ON_THE_WAY: u64 = 2 << 20;

const CALL_BYTES: usize = 65_507;

pub(crate) fn run(bytes: u64, datagram_bytes: usize) -> Crossing {
    let (from, to) = (socket(), socket());
    from.connect(to.local_addr().unwrap()).unwrap();
    to.connect(from.local_addr().unwrap()).unwrap();
    let begun = Instant::now();
    let receiver = spawn("line-receiver", move || {
        let mut received = 0;
        receive(&to, bytes, |now| {
            received += now;
            to.send(&u64::to_le_bytes(received)).unwrap();
            received
        });
        cpu_of("line-receiver")
    });
    let sender = spawn("line-sender", move || {
        send(&from, bytes, datagram_bytes);
        cpu_of("line-sender")
    });
    let (sender, receiver) = (sender.join().unwrap(), receiver.join().unwrap());
    Crossing { bytes, wall: begun.elapsed(), sender, receiver }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(4 << 20).unwrap();
    options.set_send_buffer_size(4 << 20).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

fn wait(socket: &UdpSocket, flags: PollFlags) {
    poll(&mut [PollFd::new(socket, flags)], None).unwrap();
}

fn send(socket: &UdpSocket, bytes: u64, datagram_bytes: usize) {
    let state = UdpSocketState::new(socket.into()).unwrap();
    let segments = (CALL_BYTES / datagram_bytes).min(state.max_gso_segments());
    let buffer = vec![7; segments * datagram_bytes];
    let destination = socket.peer_addr().unwrap();
    // Answers are joined too: the last of them says all.
    let (mut sent, mut heard, mut answers) = (0, 0, [0; 8192]);
    loop {
        while let Ok(length) = socket.recv(&mut answers) {
            let last = answers[..length].last_chunk().copied().unwrap_or_default();
            heard = heard.max(u64::from_le_bytes(last));
        }
        if heard >= bytes {
            return;
        }
        if sent >= bytes || sent - heard >= MAX_ON_THE_WAY {
            wait(socket, PollFlags::IN);
            continue;
        }
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: &buffer,
            segment_size: Some(datagram_bytes),
            src_ip: None,
        };
        match state.try_send(socket.into(), &transmit) {
            Ok(()) => sent += buffer.len() as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(socket, PollFlags::OUT),
            Err(error) => panic!("{error}"),
        }
    }
}

fn receive(socket: &UdpSocket, bytes: u64, mut report: impl FnMut(u64) -> u64) {
    const BUFFERS: usize = 16;
    let state = UdpSocketState::new(socket.into()).unwrap();
    let mut buffers = vec![0; BUFFERS * 65_536];
    let mut metas = [RecvMeta::default(); BUFFERS];
    loop {
        let mut parts = buffers.chunks_mut(65_536);
        let mut slices: [_; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap()));
        match state.recv(socket.into(), &mut slices, &mut metas) {
            Ok(filled) => {
                let now: usize = metas[..filled].iter().map(|meta| meta.len).sum();
                if report(now as u64) >= bytes {
                    return;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(socket, PollFlags::IN),
            Err(error) => panic!("{error}"),
        }
    }
}
