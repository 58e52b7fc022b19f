//! What the tests share: data, slices and moments.

use haulier_article::chunk::{
    Ack, ChunkId, ChunkReceiver, ChunkReceiverConfig, ChunkSender, ChunkSenderConfig, Slice,
    SliceCount, SliceSet,
};
use haulier_article::fragment::MAX_FRAGMENTED_BYTES;
use haulier_article::packet::{self, Packet};
use haulier_article::{Instant, ProtocolId};

/// The data formula of the vectors: byte `offset` of chunk `id`.
pub fn byte(id: usize, offset: usize) -> u8 {
    (offset * 167 + (offset >> 8) * 13 + id * 29 + 7) as u8
}

pub fn data(id: usize, len: usize) -> Vec<u8> {
    (0..len).map(|offset| byte(id, offset)).collect()
}

pub fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A slice of a chunk with these bytes.
pub fn slice(id: u16, index: usize, chunk: &[u8]) -> Slice<'_> {
    let count = SliceCount::for_bytes(chunk.len()).unwrap();
    Slice::of_chunk(ChunkId::new(id), count.index(index).unwrap(), chunk).unwrap()
}

/// An ack for the slices with these numbers.
pub fn ack(id: u16, count: usize, slices: impl IntoIterator<Item = usize>) -> Ack {
    let count = SliceCount::new(count).unwrap();
    let mut received = SliceSet::empty(count);
    for index in slices {
        received.insert(count.index(index).unwrap());
    }
    Ack { chunk_id: ChunkId::new(id), received }
}

/// A packet of any size, written with its frame.
pub fn framed<'p>(packet: impl Packet<'p>, protocol: ProtocolId) -> Vec<u8> {
    let mut out = vec![0; MAX_FRAGMENTED_BYTES];
    let length = packet::write(packet, protocol, &mut out).unwrap();
    out.truncate(length);
    out
}

/// A sender that is limited by nothing but its resend delay.
pub fn eager_sender() -> ChunkSender {
    ChunkSender::new(ChunkSenderConfig::default().with_rate_bps(1_000_000_000).with_burst(false))
}

/// A sender that has just sent all of a chunk of `slices` full slices, at time 0.
pub fn sent(slices: usize) -> ChunkSender {
    let mut sender = eager_sender();
    sender.send_chunk(data(0, slices * 1024)).unwrap();
    assert!(poll_all(&mut sender, ms(0)).into_iter().eq(0..slices));
    sender
}

pub fn receiver() -> ChunkReceiver {
    ChunkReceiver::new(ChunkReceiverConfig::default())
}

/// Nothing to send.
pub const NONE: [usize; 0] = [];

/// The indices that a sender wants to send now.
pub fn poll_all(sender: &mut ChunkSender, now: Instant) -> Vec<usize> {
    std::iter::from_fn(|| sender.poll_slice(now).map(|slice| slice.index().get())).collect()
}
