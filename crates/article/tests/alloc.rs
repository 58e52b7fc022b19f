//! No allocation per packet: counted for the whole process, so this is a program of its own.

use haulier_article::endpoint::{Endpoint, EndpointConfig};
use haulier_article::fragment::{Fragment, FragmentPool, FragmentPoolConfig, Reassembler};
use haulier_article::{ArticleConfig, ArticlePeer, Instant, Sequence};

/// Everything that goes over this link arrives, one millisecond late.
fn step(now: Instant, from: &mut ArticlePeer, to: &mut ArticlePeer, datagram: &mut Vec<u8>) {
    from.handle_timeout(now);
    while from.poll_datagram(now, datagram) {
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
    let mut datagram = Vec::with_capacity(haulier_article::MAX_PACKET_BYTES);
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

fn carry(
    now: Instant,
    from: &mut Endpoint,
    to: &mut Endpoint,
    pool: &mut FragmentPool,
    datagram: &mut Vec<u8>,
) -> usize {
    let mut delivered = 0;
    from.handle_timeout(now);
    while from.poll_datagram(now, datagram) {
        if let Ok(Some(delivery)) = to.handle_datagram(now, datagram, pool) {
            delivery.accept();
            delivered += 1;
        }
    }
    while from.poll_event().is_some() {}
    delivered
}

/// A game of small inputs and of snapshots that are cut into fragments, some of which get lost: after its
/// first second nothing is allocated, whatever the endpoint does.
#[test]
fn an_endpoint_does_not_allocate_per_packet() {
    let endpoint = || Endpoint::new(EndpointConfig::default()).unwrap();
    let (mut server, mut client) = (endpoint(), endpoint());
    let (mut server_pool, mut client_pool) = (FragmentPool::default(), FragmentPool::default());
    let mut datagram = Vec::with_capacity(haulier_article::MAX_PACKET_BYTES);
    let snapshot = vec![7; 9_000];
    let mut frames = 0u64;
    let mut run = |count: u64| {
        let mut delivered = 0;
        for frame in frames..frames + count {
            let now = Instant::from_millis(frame * 16);
            let bytes = if frame % 3 == 0 { 9_000 } else { 600 };
            server.send(now, &snapshot[..bytes]).unwrap();
            if frame % 8 == 5 {
                // A datagram of this packet is lost: if it has nine, the other eight wait in the pool.
                assert!(server.poll_datagram(now, &mut datagram));
            }
            delivered += carry(now, &mut server, &mut client, &mut client_pool, &mut datagram);
            client.send(now, &[1; 40]).unwrap();
            delivered += carry(now, &mut client, &mut server, &mut server_pool, &mut datagram);
            let _ = (server.poll_timeout(), client.poll_timeout(), server.stats());
        }
        frames += count;
        delivered
    };
    run(2_000);
    let mut delivered = 0;
    let counted = allocation_counter::measure(|| delivered = run(10_000));
    assert!(delivered > 18_000, "{delivered}");
    assert_eq!(counted.count_total, 0, "allocations in {delivered} packets");
    assert!(client_pool.stats().used_bytes > 50_000, "no packet was left incomplete");
}

/// What an endpoint costs before anything was sent, as its documentation says.
#[test]
fn an_idle_endpoint_takes_some_twenty_kilobytes() {
    let mut endpoint = None;
    let counted = allocation_counter::measure(|| {
        endpoint = Endpoint::new(EndpointConfig::default()).ok();
    });
    let bytes = counted.bytes_current + size_of::<Endpoint>() as i64;
    assert!((10_000..24_000).contains(&bytes), "{bytes} bytes");
}

/// A driver that never sends all there is: what was sent must not stay in memory.
#[test]
fn a_queue_that_is_never_empty_does_not_grow() {
    let (payload, mut datagram) = (vec![1; 100_000], Vec::new());
    let counted = allocation_counter::measure(|| {
        let mut endpoint = Endpoint::new(EndpointConfig::default()).unwrap();
        endpoint.send(Instant::ZERO, &payload).unwrap();
        for i in 0..200 {
            endpoint.send(Instant::from_millis(i), &payload).unwrap();
            for _ in 0..98 {
                assert!(endpoint.poll_datagram(Instant::from_millis(i), &mut datagram));
            }
        }
    });
    // Twice what may wait, doubled as a vector grows; 20 MB were sent.
    assert!(counted.bytes_max < 5 << 20, "{} bytes", counted.bytes_max);
}

/// The bomb of the fragmentation article from 300 peers at once, against the real allocator: what the
/// process holds stays under the cap.
#[test]
fn a_fragment_bomb_stays_under_the_cap_as_the_allocator_sees_it() {
    let config = FragmentPoolConfig::default().with_max_bytes(8 << 20);
    let mut peers: Vec<Reassembler> = (0..300).map(|_| Reassembler::new()).collect();
    let block = [9; 1024];
    let counted = allocation_counter::measure(|| {
        let mut pool = FragmentPool::new(config).unwrap();
        for i in 0..200_000usize {
            let turn = u16::try_from(i / 300).unwrap();
            let (sequence, index) = (Sequence::new(turn), usize::from(turn) % 255);
            let fragment = Fragment::new(sequence, index, 256, &block).unwrap();
            let peer = &mut peers[i % 300];
            let _refused = peer.handle_fragment(Instant::ZERO, &fragment, &mut pool);
        }
        assert!(pool.stats().peak_bytes > 7 << 20, "the cap was never reached");
        pool.check_invariants();
    });
    let held = counted.bytes_max;
    assert!(held <= config.max_bytes as u64, "{held} bytes with a cap of {}", config.max_bytes);
}
