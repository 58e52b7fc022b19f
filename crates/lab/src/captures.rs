//! A scene as a capture: what the client sent and what reached it, for `inspect --pcap` and Wireshark.

use std::io::{self, Write};
use std::net::SocketAddr;

use haulier_capture::CaptureWriter;
use haulier_capture::layers::UdpDatagram;
use haulier_proto::connection::trace::TraceSecret;

use crate::scenes::Scene;

/// The port of both ends: that of the examples, which Wireshark knows nothing else of.
const PORT: u16 = 4016;

/// Plays the scene, and writes the datagrams of all senders in the order of their times. The simulation
/// begins in 1970; the client of the sender with index `n` is 10.0.n.2. Returns the keys, of which there is
/// nothing to hide: the seed has them too.
///
/// # Errors
///
/// What `out` fails with.
pub fn write(scene: &Scene, is_sealed: bool, out: impl Write) -> io::Result<Vec<TraceSecret>> {
    let (mut all, mut keys) = (Vec::new(), Vec::new());
    for (lane, &sender) in (0..).zip(&scene.senders) {
        let [server, client] = [1, 2].map(|host| SocketAddr::from(([10, 0, lane, host], PORT)));
        let captured = scene.capture(sender, is_sealed);
        keys.extend(captured.secrets);
        all.extend(captured.datagrams.into_iter().map(|captured| match captured.is_down {
            true => (captured.at, server, client, captured.datagram),
            false => (captured.at, client, server, captured.datagram),
        }));
    }
    all.sort_by_key(|captured| captured.0);
    let mut writer = CaptureWriter::new(out)?;
    for (at, source, destination, payload) in &all {
        let (traffic_class, hops) = (0, 64);
        let (source, destination) = (*source, *destination);
        let datagram = UdpDatagram { source, destination, traffic_class, hops, payload };
        writer.write(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX), &datagram)?;
    }
    writer.finish()?;
    Ok(keys)
}
