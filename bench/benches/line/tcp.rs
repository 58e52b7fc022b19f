//! TCP, as the kernel has it: 64 KiB a call.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use crate::table::{Crossing, cpu_of, spawn};

pub(crate) fn run(bytes: u64) -> Crossing {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let begun = Instant::now();
    let sender = spawn("line-sender", move || {
        let (mut stream, _) = listener.accept().unwrap();
        let buffer = vec![7; 65_536];
        let mut left = bytes as usize;
        while left > 0 {
            left -= stream.write(&buffer[..left.min(buffer.len())]).unwrap();
        }
        cpu_of("line-sender")
    });
    let receiver = spawn("line-receiver", move || {
        let mut stream = TcpStream::connect(to).unwrap();
        let (mut buffer, mut left) = (vec![0; 65_536], bytes as usize);
        while left > 0 {
            left -= stream.read(&mut buffer).unwrap();
        }
        cpu_of("line-receiver")
    });
    let (sender, receiver) = (sender.join().unwrap(), receiver.join().unwrap());
    Crossing { bytes, wall: begun.elapsed(), sender, receiver }
}
