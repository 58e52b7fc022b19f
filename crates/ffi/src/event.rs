//! Events: what is polled, and what it holds until it is freed.
//!
//! The invariant: the kind of an event says how many `Bytes` are in its `owned` field (`held_by`), to which
//! its pointers point; an event of kind `NONE` holds nothing. So a received block is handed on without a
//! copy, and freeing an event a second time does nothing.
//!
//! Events are filled where C wants them. They have some 300 bytes: making them elsewhere and moving them two
//! or three times took a tenth of a microsecond, a twentieth of the whole cost of a message. The part that
//! holds bytes is not cleared first, and is neither filled nor dropped for a kind without bytes, such as an
//! ack: that was a quarter of the cost of the border.

use core::ffi::c_char;
use core::mem::{MaybeUninit, align_of, offset_of, size_of};
use core::ptr::null;
use core::time::Duration;

use bytes::Bytes;
use haulier::{CloseReason, ConnectionId, Event, RefusalCode, ServerEvent, TokenClaims, TokenRate};

use crate::result::{Failure, haulier_result};
use haulier_result::HAULIER_OK;

/// What an event is. Later versions may have more kinds: ignore those that you do not know.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum haulier_event_kind {
    /// No event: written by a function that has no event. The other fields mean nothing then.
    HAULIER_EVENT_NONE = 0,
    /// At a server: a client with valid credentials asks to join. It may be sent to at once. To turn it away,
    /// close the connection. Fields: data (its request), has_token and the fields of the token.
    HAULIER_EVENT_CONNECTING = 1,
    /// The connection is there: at a client the server has let it in, at a server the client's address is
    /// validated.
    HAULIER_EVENT_CONNECTED = 2,
    /// At a client: the server has no seat, and it waits in line. Fields: place, estimate_ms.
    HAULIER_EVENT_QUEUED = 3,
    /// The connection has ended; its last event. Fields: result (why), code, text (a sentence), data (the
    /// peer's own words, if it gave any: to be shown, not to be trusted).
    HAULIER_EVENT_CLOSED = 4,
    /// The peer announced a block. Fields: block, tag, length_bytes, digest.
    HAULIER_EVENT_BLOCK_ANNOUNCED = 5,
    /// More of a block has arrived. Fields: tag, received_bytes, length_bytes, rate_bps, estimate_ms.
    HAULIER_EVENT_BLOCK_PROGRESS = 6,
    /// A block was received and verified. Fields: tag, data.
    HAULIER_EVENT_BLOCK = 7,
    /// A chunk of a block was received and verified. Fields: block, tag, offset_bytes, data.
    HAULIER_EVENT_CHUNK = 8,
    /// All chunks of a block were handed out. Fields: block, tag.
    HAULIER_EVENT_BLOCK_COMPLETE = 9,
    /// The peer announced a block that the program said it has. Fields: tag.
    HAULIER_EVENT_BLOCK_HERE = 10,
    /// The peer gave up a block that was being received. Fields: block, tag, code.
    HAULIER_EVENT_BLOCK_CANCELLED = 11,
    /// The peer has all of a block of this end. Fields: handle.
    HAULIER_EVENT_BLOCK_SENT = 12,
    /// The peer does not want a block of this end. Fields: handle, code.
    HAULIER_EVENT_BLOCK_DECLINED = 13,
    /// A message was received. Fields: channel, data.
    HAULIER_EVENT_MESSAGE = 14,
    /// A message of this end arrived; this is certain. Fields: channel, number.
    HAULIER_EVENT_MESSAGE_ACKED = 15,
    /// A channel whose queue was full has room again. Fields: channel.
    HAULIER_EVENT_MESSAGE_WRITABLE = 16,
    /// A packet was received. Fields: number, data.
    HAULIER_EVENT_PACKET = 17,
    /// A packet of this end arrived; this is certain. Fields: number.
    HAULIER_EVENT_PACKET_ACKED = 18,
    /// A packet of this end probably did not arrive. Fields: number.
    HAULIER_EVENT_PACKET_LOST = 19,
    /// The client's address has changed, and the new one is validated.
    HAULIER_EVENT_ADDRESS_CHANGED = 20,
    /// Chunks of blocks that were made with haulier_block_from_values() are wanted: call
    /// haulier_client_want_chunk() or haulier_server_want_chunk() until it returns HAULIER_NOTHING. The event
    /// comes once, and again only after that.
    HAULIER_EVENT_CHUNKS_WANTED = 21,
}

use haulier_event_kind::*;

/// Why a connection was closed: the code of HAULIER_EVENT_CLOSED with HAULIER_ERROR_CLOSED. From
/// HAULIER_CLOSE_APPLICATION on the codes are the program's own, up to 2^32 - 1.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum haulier_close_code {
    /// No error.
    HAULIER_CLOSE_DONE = 0,
    /// The peer violated a rule of the wire.
    HAULIER_CLOSE_PROTOCOL = 1,
    /// A block made no progress, or too little.
    HAULIER_CLOSE_NO_PROGRESS = 2,
    /// A block is larger than the receiver accepts.
    HAULIER_CLOSE_BLOCK_TOO_LARGE = 3,
    /// A block's bytes are not those that were announced.
    HAULIER_CLOSE_BLOCK_DAMAGED = 4,
    /// The program is shutting down.
    HAULIER_CLOSE_SHUTTING_DOWN = 5,
    /// The program at the server turned the client away.
    HAULIER_CLOSE_NOT_ACCEPTED = 6,
    /// The peer's share of memory is used up.
    HAULIER_CLOSE_RESOURCES = 7,
    /// Nothing was received for the idle timeout.
    HAULIER_CLOSE_TIMED_OUT = 8,
    /// The number of forged datagrams has reached the limit: a further one might pass.
    HAULIER_CLOSE_AEAD_LIMIT = 9,
    /// The peer sent more of blocks than it may.
    HAULIER_CLOSE_CREDIT = 10,
    /// The first of the program's own codes.
    HAULIER_CLOSE_APPLICATION = 256,
}

/// Why a server refused a request: the code of HAULIER_EVENT_CLOSED with HAULIER_ERROR_REFUSED.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum haulier_refusal {
    /// It does not speak the request's version.
    HAULIER_REFUSAL_VERSION = 1,
    /// It has another secret, or does not offer the mode.
    HAULIER_REFUSAL_KEY = 2,
    /// It has as many connections as it accepts.
    HAULIER_REFUSAL_FULL = 3,
    /// It is shutting down.
    HAULIER_REFUSAL_SHUTTING_DOWN = 4,
    /// The token has expired.
    HAULIER_REFUSAL_TOKEN_EXPIRED = 5,
    /// The token was used before, or is older than the server's start.
    HAULIER_REFUSAL_TOKEN_USED = 6,
    /// The token is for another server.
    HAULIER_REFUSAL_WRONG_SERVER = 7,
    /// The client offered a version that the server prefers to that of the request: it was downgraded on the
    /// way.
    HAULIER_REFUSAL_DOWNGRADE = 8,
    /// The program rejected the request.
    HAULIER_REFUSAL_NOT_ACCEPTED = 9,
}

/// What keeps the bytes of an event: of the library alone.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_owned {
    /// Not to be touched. Nothing is there unless the kind of the event brings bytes.
    pub words: [MaybeUninit<usize>; 8],
}

// Two of them are kept in it.
const _: () = assert!(2 * size_of::<Bytes>() <= size_of::<haulier_owned>());
const _: () = assert!(align_of::<Bytes>() <= align_of::<haulier_owned>());

/// An event. The comment of its kind says which fields have a meaning; the others are 0.
///
/// The program has the memory of the struct, and the library what it points to: haulier_event_free() frees
/// that, and every event that was polled has to be freed once. The struct may be copied, if then only one of
/// the copies is used. It may be handed to another thread.
#[repr(C)]
pub struct haulier_event {
    /// What it is.
    pub kind: haulier_event_kind,
    /// Why the connection has ended, as an error.
    pub result: haulier_result,
    /// At a server: which connection. Never 0, and never used for another one.
    pub connection: u64,
    /// The bytes that the event brought. Null if it has no bytes.
    pub data: *const u8,
    /// The number of these bytes.
    pub data_bytes: usize,
    /// A sentence for a person, which ends with a 0; null except for HAULIER_EVENT_CLOSED.
    pub text: *const c_char,
    /// The tag that the sender gave the block.
    pub tag: u64,
    /// Bytes of the block that were received.
    pub received_bytes: u64,
    /// The length of the block, in bytes.
    pub length_bytes: u64,
    /// Where the chunk begins in the block, in bytes.
    pub offset_bytes: u64,
    /// How fast the block comes, in bit/s: the mean of about a second. 0: not known yet.
    pub rate_bps: u64,
    /// How long it may still take, in ms. UINT64_MAX: not known.
    pub estimate_ms: u64,
    /// The number of a message on its channel, as haulier_client_send_message_on() gave it, or of a packet,
    /// as haulier_client_send_packet() did. Those of packets have 16 bits, and 0 follows 65535: of two, a is
    /// the newer one if (int16_t)(a - b) is above 0.
    pub number: u64,
    /// The client's id in its token; 0: none.
    pub client_id: u64,
    /// The highest rate of blocks that its token allows, in bit/s; 0: no limit.
    pub max_rate_bps: u64,
    /// The lowest rate that its token names, in bit/s; 0: not set.
    pub min_rate_bps: u64,
    /// The matchmaker's data in its token. Null if the token has no data.
    pub user_data: *const u8,
    /// The number of these bytes.
    pub user_data_bytes: usize,
    /// Which block of the peer's it is: for haulier_client_decline_block().
    pub block: u32,
    /// Which block of this end it is, as haulier_client_send_block() gave it.
    pub handle: u32,
    /// The reason, as a number: a haulier_close_code, a haulier_refusal, or the peer's code for a block.
    pub code: u32,
    /// The place in line: 1 is the next. 0: even the line is full.
    pub place: u32,
    /// The channel of the message, 0 to 255.
    pub channel: u32,
    /// 1 if the client has a token.
    pub has_token: u32,
    /// The BLAKE3 of the block.
    pub digest: [u8; 32],
    /// For fields of later versions.
    pub reserved: [u64; 4],
    /// The library's.
    pub owned: haulier_owned,
}

/// Frees what an event holds, and makes it one of kind HAULIER_EVENT_NONE; a second time does nothing. Null
/// is allowed. An event that was never polled may be given if it is all zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_event_free(event: *mut haulier_event) {
    if event.is_null() {
        return;
    }
    // SAFETY: not null, and an event of this thread's, as the caller promises. The kind is read as a number,
    // because C may have written any. What the event holds is dropped once, because its kind is then NONE.
    // Dropping bytes does not panic, so this needs no border.
    unsafe {
        let kind = (&raw mut (*event).kind).cast::<i32>();
        if kind.read() == HAULIER_EVENT_NONE as i32 {
            return;
        }
        let held = held_by(kind.read());
        kind.write(HAULIER_EVENT_NONE as i32);
        (*event).data = null();
        (*event).data_bytes = 0;
        let owned = (&raw mut (*event).owned).cast::<Bytes>();
        if held > 1 {
            owned.add(1).drop_in_place();
        }
        if held > 0 {
            owned.drop_in_place();
        }
    }
}

/// How many bytes an event of this kind has in `owned`: its data, and what else it points to.
const fn held_by(kind: i32) -> usize {
    const TWO: u32 = 1 << HAULIER_EVENT_CONNECTING as i32 | 1 << HAULIER_EVENT_CLOSED as i32;
    const ONE: u32 = 1 << HAULIER_EVENT_BLOCK as i32
        | 1 << HAULIER_EVENT_CHUNK as i32
        | 1 << HAULIER_EVENT_MESSAGE as i32
        | 1 << HAULIER_EVENT_PACKET as i32;
    match kind {
        0..32 if TWO >> kind & 1 == 1 => 2,
        0..32 if ONE >> kind & 1 == 1 => 1,
        _ => 0,
    }
}

impl haulier_event {
    /// The request of a client.
    fn connecting(&mut self, request: Bytes, token: Option<TokenClaims>) {
        self.kind = HAULIER_EVENT_CONNECTING;
        let rate = |rate: Option<TokenRate>| rate.map_or(0, TokenRate::bps);
        let mut user_data = Bytes::new();
        if let Some(claims) = token {
            self.has_token = 1;
            self.client_id = u64::from_le_bytes(claims.client_id);
            (self.max_rate_bps, self.min_rate_bps) = (rate(claims.max_rate), rate(claims.min_rate));
            user_data = claims.user_data.into();
            (self.user_data, self.user_data_bytes) = pointer(&user_data);
        }
        self.hold_beside(user_data);
        self.hold(request);
    }

    /// An event of a connection. It is read where the call that polled it has left it, if this is inlined.
    #[inline(always)]
    fn of(&mut self, event: Event) {
        let to = self;
        match event {
            Event::Connected => to.kind = HAULIER_EVENT_CONNECTED,
            Event::Queued { place, estimate } => {
                to.kind = HAULIER_EVENT_QUEUED;
                (to.place, to.estimate_ms) = (place.unwrap_or(0), ms(estimate));
            }
            Event::Closed(reason) => to.closed(&reason),
            Event::BlockAnnounced { block, tag, length, digest } => {
                to.kind = HAULIER_EVENT_BLOCK_ANNOUNCED;
                (to.block, to.tag, to.length_bytes) = (block.to_bits(), tag, length);
                to.digest = digest;
            }
            Event::BlockProgress { tag, received, length, rate_bps, estimate } => {
                to.kind = HAULIER_EVENT_BLOCK_PROGRESS;
                (to.tag, to.received_bytes, to.length_bytes) = (tag, received, length);
                (to.rate_bps, to.estimate_ms) = (rate_bps, ms(estimate));
            }
            Event::Block { tag, data } => {
                (to.kind, to.tag) = (HAULIER_EVENT_BLOCK, tag);
                to.hold(data);
            }
            Event::Chunk { block, tag, offset, data, .. } => {
                to.kind = HAULIER_EVENT_CHUNK;
                (to.block, to.tag, to.offset_bytes) = (block.to_bits(), tag, offset);
                to.hold(data);
            }
            Event::BlockComplete { block, tag } => {
                to.kind = HAULIER_EVENT_BLOCK_COMPLETE;
                (to.block, to.tag) = (block.to_bits(), tag);
            }
            Event::BlockHere { tag } => (to.kind, to.tag) = (HAULIER_EVENT_BLOCK_HERE, tag),
            Event::BlockCancelled { block, tag, code } => {
                to.kind = HAULIER_EVENT_BLOCK_CANCELLED;
                (to.block, to.tag, to.code) = (block.to_bits(), tag, code);
            }
            Event::BlockSent { handle } => {
                (to.kind, to.handle) = (HAULIER_EVENT_BLOCK_SENT, handle.to_bits());
            }
            Event::BlockDeclined { handle, code } => {
                to.kind = HAULIER_EVENT_BLOCK_DECLINED;
                (to.handle, to.code) = (handle.to_bits(), code);
            }
            Event::Message { channel, data } => {
                (to.kind, to.channel) = (HAULIER_EVENT_MESSAGE, channel.into());
                to.hold(data);
            }
            Event::MessageAcked { channel, number } => {
                to.kind = HAULIER_EVENT_MESSAGE_ACKED;
                (to.channel, to.number) = (channel.into(), number);
            }
            Event::MessageWritable { channel } => {
                (to.kind, to.channel) = (HAULIER_EVENT_MESSAGE_WRITABLE, channel.into());
            }
            Event::Packet { sequence, data } => {
                (to.kind, to.number) = (HAULIER_EVENT_PACKET, sequence.get().into());
                to.hold(data);
            }
            Event::PacketAcked { sequence } => {
                (to.kind, to.number) = (HAULIER_EVENT_PACKET_ACKED, sequence.get().into());
            }
            Event::PacketLost { sequence } => {
                (to.kind, to.number) = (HAULIER_EVENT_PACKET_LOST, sequence.get().into());
            }
            Event::AddressChanged => to.kind = HAULIER_EVENT_ADDRESS_CHANGED,
            Event::ChunksWanted => to.kind = HAULIER_EVENT_CHUNKS_WANTED,
            // One that this interface has no kind for yet.
            _ => {}
        }
    }

    #[cold]
    fn closed(&mut self, reason: &CloseReason) {
        self.kind = HAULIER_EVENT_CLOSED;
        self.result = reason.kind().into();
        let mut words = Bytes::new();
        match reason {
            CloseReason::Here(code) => self.code = code.0,
            CloseReason::There { code, reason } => {
                (self.code, words) = (code.0, reason.clone().into());
            }
            CloseReason::Refused(code) => self.code = refusal(*code),
            _ => {}
        }
        let sentence = Bytes::from(reason.to_string().replace('\0', " ") + "\0");
        self.text = sentence.as_ptr().cast();
        self.hold_beside(sentence);
        self.hold(words);
    }

    /// Keeps the bytes that are its data.
    fn hold(&mut self, data: Bytes) {
        (self.data, self.data_bytes) = pointer(&data);
        // SAFETY: there is room for it, and the place is aligned for it: see the assertions.
        unsafe { (&raw mut self.owned).cast::<Bytes>().write(data) };
    }

    /// Keeps other bytes, for the kinds that hold two ([`held_by`]).
    fn hold_beside(&mut self, other: Bytes) {
        // SAFETY: as in `hold`, in the second place.
        unsafe { (&raw mut self.owned).cast::<Bytes>().add(1).write(other) };
    }
}

/// Writes an event of a client to the caller's memory, or one of kind NONE.
///
/// # Safety
/// An event can be written to `to`.
#[inline(always)]
pub(crate) unsafe fn put_event(to: *mut haulier_event, event: Option<Event>) -> haulier_result {
    // SAFETY: the caller's promise.
    unsafe { put(to, event, |to, event| to.of(event)) }
}

/// Writes an event of a server to the caller's memory, or one of kind NONE.
///
/// # Safety
/// An event can be written to `to`.
#[inline(always)]
pub(crate) unsafe fn put_server_event(
    to: *mut haulier_event,
    event: Option<(ConnectionId, ServerEvent)>,
) -> haulier_result {
    let fill = |to: &mut haulier_event, (id, event): (ConnectionId, ServerEvent)| {
        to.connection = id.to_bits();
        match event {
            ServerEvent::Connecting { request, token } => to.connecting(request, token),
            ServerEvent::Connection(event) => to.of(event),
            // One that this interface has no kind for yet.
            _ => {}
        }
    };
    // SAFETY: the caller's promise.
    unsafe { put(to, event, fill) }
}

/// # Safety
/// As for [`put_event`].
#[inline(always)]
unsafe fn put<T>(
    to: *mut haulier_event,
    event: Option<T>,
    fill: impl FnOnce(&mut haulier_event, T),
) -> haulier_result {
    let Some(event) = event else {
        // SAFETY: the caller's promise.
        unsafe { (&raw mut (*to).kind).write(HAULIER_EVENT_NONE) };
        return haulier_result::HAULIER_NOTHING;
    };
    // SAFETY: the caller's promise; and zeros are an event: NONE and OK are 0, the rest is numbers and null.
    // What owns, the last field, may be anything.
    let to = unsafe {
        to.cast::<u8>().write_bytes(0, offset_of!(haulier_event, owned));
        &mut *to
    };
    fill(to, event);
    HAULIER_OK
}

/// Where an event goes must be there before one is taken, or it would be lost.
pub(crate) fn check_event(to: *const haulier_event) -> Result<(), Failure> {
    if to.is_null() { Err(Failure::usage("`event` is a null pointer")) } else { Ok(()) }
}

fn pointer(bytes: &Bytes) -> (*const u8, usize) {
    if bytes.is_empty() { (null(), 0) } else { (bytes.as_ptr(), bytes.len()) }
}

fn ms(estimate: Option<Duration>) -> u64 {
    estimate.map_or(u64::MAX, |estimate| u64::try_from(estimate.as_millis()).unwrap_or(u64::MAX))
}

/// Its number, as on the wire; 0 for one that is newer than this list.
fn refusal(code: RefusalCode) -> u32 {
    let place = RefusalCode::ALL.iter().position(|other| *other == code);
    place.and_then(|place| u32::try_from(place + 1).ok()).unwrap_or(0)
}
