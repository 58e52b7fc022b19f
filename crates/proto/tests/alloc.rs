//! No allocation per packet: counted for the whole process, so this is a program of its own.

use haulier_proto::{ArticleConfig, ArticlePeer, Instant};

/// Everything that goes over this link arrives, one millisecond late.
fn step(now: Instant, from: &mut ArticlePeer, to: &mut ArticlePeer, datagram: &mut Vec<u8>) {
    from.handle_timeout(now);
    while from.poll_transmit(now, datagram) {
        let _refused = to.handle_datagram(now, datagram);
    }
}

/// In the middle of a chunk, after the receiver's memory has taken its last step (at 128 of 256 slices),
/// sending, receiving, acking and timing cost no allocation at all.
#[test]
fn sender_and_receiver_do_not_allocate_per_packet() {
    let mut config = ArticleConfig::default();
    config.sender.burst = false;
    config.sender.rate_bps = 8_000_000;
    let (mut server, mut client) = (ArticlePeer::new(config.clone()), ArticlePeer::new(config));
    let mut datagram = Vec::with_capacity(haulier_proto::MAX_PACKET_BYTES);
    server.send_chunk(vec![5; 256 * 1024]).unwrap();

    let mut millis = 0;
    let mut run_until = |received: usize, server: &mut ArticlePeer, client: &mut ArticlePeer| {
        while client.receiver().progress().is_none_or(|p| p.received.len() < received) {
            millis += 1;
            let now = Instant::from_millis(millis);
            step(now, server, client, &mut datagram);
            step(now, client, server, &mut datagram);
            let _ = (server.poll_timeout(), client.poll_timeout());
        }
    };
    run_until(130, &mut server, &mut client);
    let before = server.sender().stats().slices_sent;
    let counted = allocation_counter::measure(|| run_until(250, &mut server, &mut client));
    let sent = server.sender().stats().slices_sent - before;
    assert!(sent >= 120, "only {sent} slices were sent while counting");
    assert_eq!(counted.count_total, 0, "allocations in {sent} slices and their acks");
}
