//! `Debug` ends up in the logs of games: it says how much there is, and prints none of it.

use std::fmt::Debug;

use haulier_article::bits::{Reader, Writer};
use haulier_article::chunk::{ChunkId, ChunkReceiver, ChunkReceiverConfig, Slice, SliceCount};
use haulier_article::endpoint::{Endpoint, EndpointConfig};
use haulier_article::fragment::{FragmentPool, Reassembler, split};
use haulier_article::packet::article::ArticlePacket;
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::numbered::NumberedPacket;
use haulier_article::{ArticleConfig, ArticlePeer, Batch, Instant, PeerMachine, Sequence};
use haulier_core::DatagramBuffer;
use haulier_core::chunk::Assembly;

/// Marks a payload: 167 in a list, `\xa7` in a string of bytes.
const MARK: u8 = 0xa7;

fn hides(what: &impl Debug) {
    for text in [format!("{what:?}"), format!("{what:#?}").replace(['\n', ' '], "")] {
        for mark in ["167, 167", "167,167", "\\xa7", "a7a7"] {
            assert!(!text.contains(mark), "{}", &text[..text.len().min(400)]);
        }
        assert!(text.len() < 5_000, "{} characters: {}", text.len(), &text[..400]);
    }
}

#[test]
fn no_chunk_is_printed() {
    let chunk = vec![MARK; 5_000];
    let (now, count) = (Instant::ZERO, SliceCount::for_bytes(chunk.len()).unwrap());
    let slice = |n| Slice::of_chunk(ChunkId::new(0), count.index(n).unwrap(), &chunk).unwrap();
    hides(&slice(0));
    hides(&ArticlePacket::Slice(slice(4)));
    let (mut assembly, mut receiver) =
        (Assembly::new(count), ChunkReceiver::new(ChunkReceiverConfig::default()));
    for n in 0..5 {
        assert!(assembly.insert(&slice(n)));
        receiver.handle_slice(now, &slice(n)).unwrap();
        hides(&assembly);
        hides(&receiver);
    }

    let mut peer = ArticlePeer::new(ArticleConfig::default());
    peer.send_chunk(chunk.clone()).unwrap();
    peer.send_chunk(chunk.clone()).unwrap();
    hides(peer.sender());
    let mut datagram = Vec::new();
    assert!(peer.poll_datagram(now, &mut datagram));
    hides(peer.sender());
    hides(&peer);
    hides(&PeerMachine::new(peer));
}

#[test]
fn no_packet_is_printed() {
    let (now, packet) = (Instant::ZERO, vec![MARK; 3_000]);
    let mut pool = FragmentPool::default();
    let mut reassembler = Reassembler::new();
    for piece in split(Sequence::new(0), &packet).unwrap() {
        hides(&piece);
        hides(&FragmentPacket(piece));
        let _packet = reassembler.handle_fragment(now, &piece, &mut pool).unwrap();
        hides(&pool);
        hides(&reassembler);
    }
    hides(&NumberedPacket::Payload { sequence: Sequence::new(0), acks: None, payload: &packet });

    let mut endpoint = Endpoint::new(EndpointConfig::default()).unwrap();
    let mut peer = Endpoint::new(EndpointConfig::default()).unwrap();
    endpoint.send(now, &[MARK; 1_000]).unwrap();
    hides(&endpoint);
    let mut datagram = Vec::new();
    assert!(endpoint.poll_datagram(now, &mut datagram));
    hides(&peer.handle_datagram(now, &datagram, &mut pool).unwrap().unwrap());
}

#[test]
fn no_datagram_is_printed() {
    let mut batch = Batch::new(4);
    for _ in 0..3 {
        batch.push("192.0.2.1:9".parse::<std::net::SocketAddr>().unwrap().into(), &[MARK; 900]);
    }
    hides(&batch);
    hides(&batch.run(0, 3, 65_000).unwrap());
    let mut bytes = vec![MARK; 10];
    let mut datagram = DatagramBuffer::behind(&mut bytes);
    datagram.vec().extend([MARK; 10]);
    hides(&datagram);
    hides(&Reader::new(&[MARK; 100]));
    hides(&Writer::new(&mut [MARK; 100]));
}
