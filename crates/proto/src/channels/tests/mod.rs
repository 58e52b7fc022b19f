//! Messages between a sender and a receiver, and what a peer can try on either.

#![allow(clippy::cast_possible_truncation, reason = "numbers and lengths of a test are small")]

use alloc::vec::Vec;

use bytes::Bytes;

use super::*;
use crate::transit::SentPart;
use crate::wire::frames::{ChannelLimitFrame, Frame, Frames, MessageFrame, MessagePart};

mod hostile;
mod link;
mod receiver;
mod sender;

/// A window that is twice the largest message.
const WINDOW: u64 = 131_072;

/// A message of this many bytes.
fn message(bytes: usize) -> Bytes {
    (0..bytes).map(|n| (n * 7 % 251) as u8).collect()
}

/// A whole message, ordered.
const fn whole(channel: u8, number: u64, data: &[u8]) -> MessageFrame<'_> {
    MessageFrame { channel, is_unordered: false, number, part: None, data }
}

/// A part of an ordered message of `whole` bytes.
const fn part(number: u64, whole: u32, offset: u32, data: &[u8]) -> MessageFrame<'_> {
    let part = Some(MessagePart { whole, offset });
    MessageFrame { channel: 0, is_unordered: false, number, part, data }
}

const fn unordered(frame: MessageFrame<'_>) -> MessageFrame<'_> {
    MessageFrame { is_unordered: true, ..frame }
}

/// The messages that can be read.
fn read(receiver: &mut MessageReceiver) -> Vec<(u8, Bytes)> {
    core::iter::from_fn(|| receiver.pop()).collect()
}

/// All that a sender sends on a channel in datagrams of `room` bytes.
fn polled(sender: &mut MessageSender, channel: u8, room: usize) -> Vec<SentPart> {
    core::iter::from_fn(|| {
        let mut out = Vec::new();
        let sent = sender.poll(channel, room, &mut out);
        assert!(out.len() <= room);
        sender.check_invariants();
        sent
    })
    .collect()
}
