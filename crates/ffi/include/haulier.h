/* haulier: large blocks over UDP, quickly and reliably: a world for every player who joins.
 *
 * This file is made by `cargo xtask c --header` of the sources of haulier-ffi; change those. The page for its
 * users is docs/C.md.
 *
 * What holds for every function:
 *
 * Errors     What can fail returns a haulier_result: HAULIER_OK, HAULIER_NOTHING, or an error below 0, for
 *            which haulier_last_error() has a sentence. Any of them may be HAULIER_ERROR_USAGE, for a null
 *            pointer or a number that makes no sense, or HAULIER_ERROR_INTERNAL, for a bug of haulier. After
 *            an error nothing was done, and nothing was written but where a comment says so.
 * Ownership  haulier_client, haulier_server, haulier_block and haulier_buffer are made by the library, and
 *            freed once with the _free function of their name. What the program passes stays its own, and is
 *            copied if it is needed after the call. What an event points to is the event's, until
 *            haulier_event_free(). Nothing else is to be freed.
 * Threads    Any thread may call any function, several at the same time too, on the same object too, but for
 *            one: no other thread may use an object while it is freed. Settings, claims and events are plain
 *            memory of the program's. There are no callbacks, and there is no global state but the sentence
 *            of the last error, which each thread has for itself.
 * Waiting    Only _wait and _finish functions wait, and those that take an address, if it is a name.
 * Structs    A struct that begins with struct_size is filled by its _init function, and then changed: so a
 *            program works with a later library, which has more fields. Fields that are 0 or 1 are numbers.
 * Units      They are in the names: _bytes, _bps (bits per second), _ms, _us, _s.
 * Text       Of the program: UTF-8 that ends with a 0. Of the library: the same, and in English.
 */

#ifndef HAULIER_H
#define HAULIER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The version of the interface that this header describes. It changes when a program that was compiled with
// another header would not work any more; the shared library has it in its name (libhaulier.so.1).
#define HAULIER_ABI_VERSION 1

// Bytes of each chunk of a block except the last, which has the remaining ones.
#define HAULIER_CHUNK_BYTES 262144

// For haulier_client_send_block_with(): the urgency of the connection's settings.
#define HAULIER_URGENCY_OF_CONNECTION 2

// Enough bytes for each text that the library writes: addresses, tickets, tokens, warnings.
#define HAULIER_TEXT_BYTES 2048

// The result of a call. 0 is success, 1 is no error either, and a number below 0 is an error:
// haulier_last_error() has the sentence for it. Later versions may add errors at the end.
enum haulier_result
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It is done.
  HAULIER_OK = 0,
  // There is nothing now: no event, no such block on its way, no connection yet. Not an error.
  HAULIER_NOTHING = 1,
  // The program asked for something that makes no sense, such as a null pointer. Mend the program.
  HAULIER_ERROR_USAGE = -1,
  // The text is no ticket and no connect token, or one that this version does not know. Copy all of it.
  HAULIER_ERROR_CREDENTIALS = -2,
  // Nobody listens there, or there is no route. Start the server; look at the address.
  HAULIER_ERROR_UNREACHABLE = -3,
  // No answer to the request, in the time for one: a firewall, or a wrong address.
  HAULIER_ERROR_NO_ANSWER = -4,
  // The server refused the request; the code of the event says why (haulier_refusal).
  HAULIER_ERROR_REFUSED = -5,
  // An open connection fell silent, or a call did not finish in its time. Try again.
  HAULIER_ERROR_TIMEOUT = -6,
  // This end or the peer closed the connection; the code of the event says why (haulier_close_code). It is
  // so also where nothing went wrong (HAULIER_CLOSE_DONE).
  HAULIER_ERROR_CLOSED = -7,
  // The server does not know the connection any more: it was restarted. Join again.
  HAULIER_ERROR_LOST = -8,
  // The connection is not open: not yet, or not any more. Wait for HAULIER_EVENT_CONNECTED, or join again.
  HAULIER_ERROR_NOT_OPEN = -9,
  // Too much is waiting to be sent, and this was not taken: try again after an event, such as
  // HAULIER_EVENT_MESSAGE_WRITABLE. haulier_last_error() names the limit.
  HAULIER_ERROR_FULL = -10,
  // A socket, a name that does not resolve, memory, the system.
  HAULIER_ERROR_IO = -11,
  // A bug of haulier. Report it, with what it has printed.
  HAULIER_ERROR_INTERNAL = -12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_result haulier_result;
#else
typedef int32_t haulier_result;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What an event is. Later versions may have more kinds: ignore those that you do not know.
enum haulier_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // No event: written by a function that has no event. The other fields mean nothing then.
  HAULIER_EVENT_NONE = 0,
  // At a server: a client with valid credentials asks to join. It may be sent to at once. To turn it away,
  // close the connection. Fields: data (its request), has_token and the fields of the token.
  HAULIER_EVENT_CONNECTING = 1,
  // The connection is there: at a client the server has let it in, at a server the client's address is
  // validated.
  HAULIER_EVENT_CONNECTED = 2,
  // At a client: the server has no seat, and it waits in line. Fields: place, estimate_ms.
  HAULIER_EVENT_QUEUED = 3,
  // The connection has ended; its last event. Fields: result (why), code, text (a sentence), data (the
  // peer's own words, if it gave any: to be shown, not to be trusted).
  HAULIER_EVENT_CLOSED = 4,
  // The peer announced a block. Fields: block, tag, length_bytes, digest.
  HAULIER_EVENT_BLOCK_ANNOUNCED = 5,
  // More of a block has arrived. Fields: tag, received_bytes, length_bytes, rate_bps, estimate_ms.
  HAULIER_EVENT_BLOCK_PROGRESS = 6,
  // A block was received and verified. Fields: tag, data.
  HAULIER_EVENT_BLOCK = 7,
  // A chunk of a block was received and verified. Fields: block, tag, offset_bytes, data.
  HAULIER_EVENT_CHUNK = 8,
  // All chunks of a block were handed out. Fields: block, tag.
  HAULIER_EVENT_BLOCK_COMPLETE = 9,
  // The peer announced a block that the program said it has. Fields: tag.
  HAULIER_EVENT_BLOCK_HERE = 10,
  // The peer gave up a block that was being received. Fields: block, tag, code.
  HAULIER_EVENT_BLOCK_CANCELLED = 11,
  // The peer has all of a block of this end. Fields: handle.
  HAULIER_EVENT_BLOCK_SENT = 12,
  // The peer does not want a block of this end. Fields: handle, code.
  HAULIER_EVENT_BLOCK_DECLINED = 13,
  // A message was received. Fields: channel, data.
  HAULIER_EVENT_MESSAGE = 14,
  // A message of this end arrived; this is certain. Fields: channel, number.
  HAULIER_EVENT_MESSAGE_ACKED = 15,
  // A channel whose queue was full has room again. Fields: channel.
  HAULIER_EVENT_MESSAGE_WRITABLE = 16,
  // A packet was received. Fields: number, data.
  HAULIER_EVENT_PACKET = 17,
  // A packet of this end arrived; this is certain. Fields: number.
  HAULIER_EVENT_PACKET_ACKED = 18,
  // A packet of this end probably did not arrive. Fields: number.
  HAULIER_EVENT_PACKET_LOST = 19,
  // The client's address has changed, and the new one is validated.
  HAULIER_EVENT_ADDRESS_CHANGED = 20,
  // Chunks of blocks that were made with haulier_block_from_values() are wanted: call
  // haulier_client_want_chunk() or haulier_server_want_chunk() until it returns HAULIER_NOTHING. The event
  // comes once, and again only after that.
  HAULIER_EVENT_CHUNKS_WANTED = 21,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_event_kind haulier_event_kind;
#else
typedef int32_t haulier_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The state of a connection.
enum haulier_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // There is no connection yet, or it is not known any more.
  HAULIER_STATE_NONE = 0,
  // At a server: it has answered, and the client's address is not validated yet.
  HAULIER_STATE_RESPONDING = 1,
  // At a client: the server has let it in, and does not know yet that the client knows.
  HAULIER_STATE_CONFIRMING = 2,
  // Both ends have received data from each other.
  HAULIER_STATE_CONNECTED = 3,
  // It has ended, and the close is being sent.
  HAULIER_STATE_CLOSING = 4,
  // It has ended, and nothing is sent any more.
  HAULIER_STATE_CLOSED = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_state haulier_state;
#else
typedef int32_t haulier_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a connection was closed: the code of HAULIER_EVENT_CLOSED with HAULIER_ERROR_CLOSED. From
// HAULIER_CLOSE_APPLICATION on the codes are the program's own, up to 2^32 - 1.
enum haulier_close_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // No error.
  HAULIER_CLOSE_DONE = 0,
  // The peer violated a rule of the wire.
  HAULIER_CLOSE_PROTOCOL = 1,
  // A block made no progress, or too little.
  HAULIER_CLOSE_NO_PROGRESS = 2,
  // A block is larger than the receiver accepts.
  HAULIER_CLOSE_BLOCK_TOO_LARGE = 3,
  // A block's bytes are not those that were announced.
  HAULIER_CLOSE_BLOCK_DAMAGED = 4,
  // The program is shutting down.
  HAULIER_CLOSE_SHUTTING_DOWN = 5,
  // The program at the server turned the client away.
  HAULIER_CLOSE_NOT_ACCEPTED = 6,
  // The peer's share of memory is used up.
  HAULIER_CLOSE_RESOURCES = 7,
  // Nothing was received for the idle timeout.
  HAULIER_CLOSE_TIMED_OUT = 8,
  // The number of forged datagrams has reached the limit: a further one might pass.
  HAULIER_CLOSE_AEAD_LIMIT = 9,
  // The peer sent more of blocks than it may.
  HAULIER_CLOSE_CREDIT = 10,
  // The first of the program's own codes.
  HAULIER_CLOSE_APPLICATION = 256,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_close_code haulier_close_code;
#else
typedef uint32_t haulier_close_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// In which form received blocks are handed out.
enum haulier_delivery
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Whole: HAULIER_EVENT_BLOCK. The memory is that of the largest block.
  HAULIER_DELIVERY_BLOCKS = 0,
  // Each chunk of 256 KiB when it is verified, in any order: HAULIER_EVENT_CHUNK, and at last
  // HAULIER_EVENT_BLOCK_COMPLETE. The memory is a window, however large the block.
  HAULIER_DELIVERY_CHUNKS = 1,
  // As HAULIER_DELIVERY_CHUNKS, with the chunks of each block in their order.
  HAULIER_DELIVERY_IN_ORDER = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_delivery haulier_delivery;
#else
typedef int32_t haulier_delivery;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What drives a client or a server.
enum haulier_drive
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // A thread of its own, also while the program is busy.
  HAULIER_DRIVE_THREAD = 0,
  // No thread: it works only while one of its _poll and _wait functions runs. Call one often: a client
  // that is not polled for the idle timeout is disconnected.
  HAULIER_DRIVE_INLINE = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_drive haulier_drive;
#else
typedef int32_t haulier_drive;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The order of a message on its channel.
enum haulier_order
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // After all ordered messages that were sent before it on its channel.
  HAULIER_ORDERED = 0,
  // As soon as it has arrived.
  HAULIER_UNORDERED = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_order haulier_order;
#else
typedef int32_t haulier_order;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a server refused a request: the code of HAULIER_EVENT_CLOSED with HAULIER_ERROR_REFUSED.
enum haulier_refusal
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It does not speak the request's version.
  HAULIER_REFUSAL_VERSION = 1,
  // It has another secret, or does not offer the mode.
  HAULIER_REFUSAL_KEY = 2,
  // It has as many connections as it accepts.
  HAULIER_REFUSAL_FULL = 3,
  // It is shutting down.
  HAULIER_REFUSAL_SHUTTING_DOWN = 4,
  // The token has expired.
  HAULIER_REFUSAL_TOKEN_EXPIRED = 5,
  // The token was used before, or is older than the server's start.
  HAULIER_REFUSAL_TOKEN_USED = 6,
  // The token is for another server.
  HAULIER_REFUSAL_WRONG_SERVER = 7,
  // The client offered a version that the server prefers to that of the request: it was downgraded on the
  // way.
  HAULIER_REFUSAL_DOWNGRADE = 8,
  // The program rejected the request.
  HAULIER_REFUSAL_NOT_ACCEPTED = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_refusal haulier_refusal;
#else
typedef uint32_t haulier_refusal;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a lane is set for.
enum haulier_source
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Packets. By default of priority 192.
  HAULIER_SOURCE_PACKETS = 0,
  // The messages of a channel. By default of priority 128.
  HAULIER_SOURCE_CHANNEL = 1,
  // Blocks. By default of priority 64.
  HAULIER_SOURCE_BLOCKS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_source haulier_source;
#else
typedef int32_t haulier_source;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How much of the link blocks may take.
enum haulier_urgency
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // They fill the link, with some milliseconds of delay: for a join, during a load screen.
  HAULIER_URGENCY_LOAD_SCREEN = 0,
  // They yield to the game's own packets: for blocks that are sent during play.
  HAULIER_URGENCY_DURING_PLAY = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haulier_urgency haulier_urgency;
#else
typedef int32_t haulier_urgency;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A block: bytes of any size that arrive whole and verified, with a tag of the program's. It is made once,
// which hashes it, and may be sent to any number of clients at the same time, by any thread.
typedef struct haulier_block haulier_block;

// Memory that a block is made of without a copy.
typedef struct haulier_buffer haulier_buffer;

// A client, and its connection to a server. A network thread does the work. Any thread may use it, several
// at the same time too; each event goes to one of them.
typedef struct haulier_client haulier_client;

// A server and all its clients, at one address. A network thread does the work. Any thread may use it,
// several at the same time too; each event goes to one of them. A connection is a number: that of the event
// that brought it. A call with the number of a connection that has ended does nothing, and says so.
typedef struct haulier_server haulier_server;

// 32 secret bytes: a server's secret, a token key, the private key of an identity. The program keeps them
// safe, and wipes what it does not need any more (haulier_secret_wipe()).
typedef struct haulier_secret {
  // The bytes: 32 random ones.
  uint8_t bytes[32];
} haulier_secret;

// What a matchmaker says about a client, sealed for the server. Fill it with haulier_token_claims_init().
typedef struct haulier_token_claims {
  // sizeof(haulier_token_claims); set by haulier_token_claims_init().
  size_t struct_size;
  // When the token is issued, in seconds since 1970. A server that was started later refuses it.
  uint64_t issued_unix_s;
  // When it expires, in seconds since 1970: from that second on it is refused.
  uint64_t expiry_unix_s;
  // The program's name for the player, which the server reads in the token. 0, the default: no name.
  uint64_t client_id;
  // The addresses of the servers that accept it, as text, up to 8. None, the default: every server with
  // the key, and the client needs an address from elsewhere (haulier_client_settings, servers).
  const char *const *servers;
  // How many servers there are.
  size_t server_count;
  // The address at which the matchmaker knows the client, which saves a round trip, as text with a port,
  // which is not compared. Null, the default: not known.
  const char *client_address;
  // Data for the server, up to 256 bytes. None, the default.
  const void *user_data;
  // How many bytes of it there are.
  size_t user_data_bytes;
  // The public key of the server (haulier_identity_public()), 32 bytes, which the client then requires.
  // Null, the default: none.
  const uint8_t *server_identity;
  // The highest rate of blocks for this client, in bit/s, up to 34 Gbit/s. 0, the default: no limit.
  uint64_t max_rate_bps;
  // A lowest rate for this client, in bit/s, for the server's program: the connection ignores it. 0, the
  // default: not set.
  uint64_t min_rate_bps;
} haulier_token_claims;

// A key that a matchmaker shares with its servers.
typedef struct haulier_token_key {
  // The key.
  struct haulier_secret key;
  // Names the key, so that servers can have the next one before a matchmaker uses it.
  uint32_t id;
} haulier_token_key;

// The settings of a connection. Fill them with haulier_connection_settings_init(), then change some.
typedef struct haulier_connection_settings {
  // sizeof(haulier_connection_settings); set by haulier_connection_settings_init().
  size_t struct_size;
  // The highest rate at which this end sends blocks, in bit/s. Default UINT64_MAX, no limit: the sender
  // finds out what the link has. At least 4000.
  uint64_t max_rate_bps;
  // The lowest rate of blocks, in bit/s, whatever the delay and loss. Default 200000; at most 10000000.
  uint64_t min_rate_bps;
  // The largest block that is accepted, in bytes. Default 64 MiB; 0: no blocks are accepted.
  uint64_t max_block_bytes;
  // Bytes of received blocks that may wait to be read. Default 64 MiB; beyond it the peer waits.
  uint64_t max_unread_block_bytes;
  // Bytes of received packets that may wait to be read. Default 1 MiB; beyond it the oldest are dropped.
  uint64_t max_unread_packet_bytes;
  // Bytes of packets that may wait to be sent. Default 1 MiB.
  uint64_t max_queued_packet_bytes;
  // Bytes of received messages that a channel may hold unread. Default 131072, which is the least.
  uint64_t max_channel_bytes;
  // A block that takes more than 60 s longer than its size at this rate, in bit/s, closes the connection.
  // Default 16000; 0: no limit.
  uint64_t min_block_rate_bps;
  // Bytes of messages that may wait to be sent or acknowledged on each channel. Default 256 KiB.
  uint32_t max_queued_message_bytes;
  // Blocks that may wait to be sent. Default 64; at least 1.
  uint32_t max_queued_blocks;
  // Channels of messages that are accepted, 1 to 256. Default 16.
  uint32_t max_channels;
  // The largest datagram, in bytes of UDP payload, 1200 to 65507. Default 1200, which stands for what the
  // system can send; 1201 keeps it at that.
  uint32_t max_datagram_bytes;
  // Silence after which the connection ends, in ms. Default 15000; at least 1000.
  uint32_t idle_timeout_ms;
  // How long a handshake may take, in ms. Default 10000; not 0.
  uint32_t handshake_timeout_ms;
  // A block that makes no progress for this time closes the connection, in ms. Default 15000.
  uint32_t no_progress_timeout_ms;
  // A haulier_urgency: how much of the link blocks may take. Default HAULIER_URGENCY_LOAD_SCREEN.
  uint32_t urgency;
  // A haulier_delivery: in which form blocks are received. Default HAULIER_DELIVERY_BLOCKS.
  uint32_t delivery;
} haulier_connection_settings;

// The settings of a client. Fill them with haulier_client_settings_init(), then change some. What they point
// to is copied by the call that they are given to.
typedef struct haulier_client_settings {
  // sizeof(haulier_client_settings); set by haulier_client_settings_init().
  size_t struct_size;
  // What the program asks the server for, up to 400 bytes, such as the name of its player: it may be
  // replayed, and is not secret. None, the default.
  const void *request;
  // How many bytes of it there are.
  size_t request_bytes;
  // Further addresses of the server, as text, the likeliest first: needed with a token that names none.
  // The first to accept the client wins. None, the default.
  const char *const *servers;
  // How many there are.
  size_t server_count;
  // The settings of the connection. Null, the default: its defaults.
  const struct haulier_connection_settings *connection;
  // The path of a file that is written with what the connection does, datagram by datagram, as qlog, the
  // format of QUIC's tools; an existing file is replaced. It has no secrets. Null, the default: no file.
  const char *qlog_path;
  // The path of a file to which the keys of the connection are appended, for `haulier inspect` and
  // Wireshark: whoever has it can read all of the connection. Null, the default: none.
  const char *key_log_path;
  // How long to wait in line while the server has no seat, in ms. Default 600000.
  uint32_t max_time_in_line_ms;
  // Copies of the request that are sent at once, 1 to 10. Default 4.
  uint32_t request_copies;
  // A haulier_drive. Default HAULIER_DRIVE_THREAD.
  uint32_t drive;
} haulier_client_settings;

// The settings of a server. Fill them with haulier_server_settings_init(), then say whom it lets in: with
// secret, token_keys or is_open. What they point to is copied by the call that they are given to.
typedef struct haulier_server_settings {
  // sizeof(haulier_server_settings); set by haulier_server_settings_init().
  size_t struct_size;
  // Clients with this secret, which is in its ticket, are let in. Null, the default: none are by a secret.
  const struct haulier_secret *secret;
  // The private key by which the server proves itself to clients that require it. Null, the default: none.
  const struct haulier_secret *identity;
  // Lets clients notice at once that the server was restarted: kept by it, and by no other. Null, the
  // default: they notice by the idle timeout.
  const struct haulier_secret *reset_secret;
  // Clients with a token of one of these keys are let in. None, the default.
  const struct haulier_token_key *token_keys;
  // How many there are.
  size_t token_key_count;
  // Addresses of the server that tokens may name beside the one it listens at, as text: those of a router
  // in front of it. None, the default.
  const char *const *addresses;
  // How many there are.
  size_t address_count;
  // The settings of its connections. Null, the default: their defaults.
  const struct haulier_connection_settings *connection;
  // The path of a file that is written with what all connections do, datagram by datagram, as qlog, the
  // format of QUIC's tools; an existing file is replaced. It has no secrets. Null, the default: no file.
  const char *qlog_path;
  // The path of a file to which the keys of all connections are appended, for `haulier inspect` and
  // Wireshark: whoever has it can read all of them. Null, the default: none.
  const char *key_log_path;
  // What it sends in all, in bit/s, at least 100000: what its own uplink has. Clients take turns with
  // blocks, packets go before them. Default UINT64_MAX, no limit.
  uint64_t max_uplink_bps;
  // Bytes that all clients together may make it hold. Default 1 GiB.
  uint64_t max_memory_bytes;
  // Connections, handshakes among them. Default 0: one for each 64 KiB of max_memory_bytes.
  uint32_t max_connections;
  // Clients that wait in line while all seats are taken. Default 16384.
  uint32_t max_in_line;
  // Connections from one source prefix, such as a house. Default 256.
  uint32_t max_connections_per_prefix;
  // Handshakes in progress. Default 12288.
  uint32_t max_handshakes;
  // Handshakes in progress from one source prefix. Default 64.
  uint32_t max_handshakes_per_prefix;
  // Its threads, each with a part of the connections, 1 to 256. Default 1; more on Linux and Android only.
  uint32_t workers;
  // A haulier_drive. Default HAULIER_DRIVE_THREAD.
  uint32_t drive;
  // Not 0: every client is let in, without encryption. For a LAN and for tests. Default 0.
  uint32_t is_open;
  // Not 0: tokens are accepted whatever server they name, as behind a load balancer. Default 0.
  uint32_t accepts_any_token;
  // Not 0: tokens that were issued before the server was started are accepted. Default 0.
  uint32_t accepts_earlier_tokens;
  // Not 0: without max_uplink_bps the server finds out what its uplink has. Default 0: each connection
  // finds out what its own link has.
  uint32_t finds_out_uplink;
  // A block that each client is sent with the answer to its request, whenever the program looks: the world
  // that players join. It is not copied, and may be freed after the call. A client that accepts only
  // smaller blocks is closed with HAULIER_CLOSE_NOT_ACCEPTED. Null, the default: none.
  const struct haulier_block *first_block;
} haulier_server_settings;

// What keeps the bytes of an event: of the library alone.
typedef struct haulier_owned {
  // Not to be touched. Nothing is there unless the kind of the event brings bytes.
  size_t words[8];
} haulier_owned;

// An event. The comment of its kind says which fields have a meaning; the others are 0.
//
// The program has the memory of the struct, and the library what it points to: haulier_event_free() frees
// that, and every event that was polled has to be freed once. The struct may be copied, if then only one of
// the copies is used. It may be handed to another thread.
typedef struct haulier_event {
  // What it is.
  haulier_event_kind kind;
  // Why the connection has ended, as an error.
  haulier_result result;
  // At a server: which connection. Never 0, and never used for another one.
  uint64_t connection;
  // The bytes that the event brought. Null if it has no bytes.
  const uint8_t *data;
  // The number of these bytes.
  size_t data_bytes;
  // A sentence for a person, which ends with a 0; null except for HAULIER_EVENT_CLOSED.
  const char *text;
  // The tag that the sender gave the block.
  uint64_t tag;
  // Bytes of the block that were received.
  uint64_t received_bytes;
  // The length of the block, in bytes.
  uint64_t length_bytes;
  // Where the chunk begins in the block, in bytes.
  uint64_t offset_bytes;
  // How fast the block comes, in bit/s: the mean of about a second. 0: not known yet.
  uint64_t rate_bps;
  // How long it may still take, in ms. UINT64_MAX: not known.
  uint64_t estimate_ms;
  // The number of a message on its channel, as haulier_client_send_message_on() gave it, or of a packet,
  // as haulier_client_send_packet() did. Those of packets have 16 bits, and 0 follows 65535: of two, a is
  // the newer one if (int16_t)(a - b) is above 0.
  uint64_t number;
  // The client's id in its token; 0: none.
  uint64_t client_id;
  // The highest rate of blocks that its token allows, in bit/s; 0: no limit.
  uint64_t max_rate_bps;
  // The lowest rate that its token names, in bit/s; 0: not set.
  uint64_t min_rate_bps;
  // The matchmaker's data in its token. Null if the token has no data.
  const uint8_t *user_data;
  // The number of these bytes.
  size_t user_data_bytes;
  // Which block of the peer's it is: for haulier_client_decline_block().
  uint32_t block;
  // Which block of this end it is, as haulier_client_send_block() gave it.
  uint32_t handle;
  // The reason, as a number: a haulier_close_code, a haulier_refusal, or the peer's code for a block.
  uint32_t code;
  // The place in line: 1 is the next. 0: even the line is full.
  uint32_t place;
  // The channel of the message, 0 to 255.
  uint32_t channel;
  // 1 if the client has a token.
  uint32_t has_token;
  // The BLAKE3 of the block.
  uint8_t digest[32];
  // For fields of later versions.
  uint64_t reserved[4];
  // The library's.
  struct haulier_owned owned;
} haulier_event;

// A chunk that is to be provided.
typedef struct haulier_wanted_chunk {
  // The tag of its block.
  uint64_t tag;
  // Where it begins in the block, in bytes.
  uint64_t offset_bytes;
  // The length of the chunk, in bytes.
  size_t length_bytes;
  // Its block, as haulier_client_send_block() gave it.
  uint32_t handle;
  // Which chunk of the block it is, from 0.
  uint32_t index;
} haulier_wanted_chunk;

// What one end of a connection counts, and what it has measured of the path.
typedef struct haulier_connection_stats {
  // What the program gave as sizeof(haulier_connection_stats).
  size_t struct_size;
  // Datagrams sent.
  uint64_t datagrams_sent;
  // Bytes in them, without UDP and IP.
  uint64_t bytes_sent;
  // Datagrams received and verified.
  uint64_t datagrams_received;
  // Bytes in them, without UDP and IP.
  uint64_t bytes_received;
  // Datagrams received that could not be verified, were duplicates, or violated a rule of the wire.
  uint64_t datagrams_refused;
  // Datagrams sent and declared lost.
  uint64_t datagrams_lost;
  // Ack-eliciting datagrams in flight.
  uint64_t datagrams_in_flight;
  // Slices of blocks sent, with those below.
  uint64_t slices_sent;
  // Repair slices among them.
  uint64_t repair_slices_sent;
  // Slices sent for the second or a later time.
  uint64_t slices_resent;
  // Packets received and dropped because the program did not read them.
  uint64_t packets_dropped;
  // Acks that reported congestion by ECN.
  uint64_t congestion_marks;
  // The bandwidth of the path to the peer, in bit/s; 0: not known.
  uint64_t bandwidth_bps;
  // The smoothed round trip, in microseconds; 0: not measured.
  uint64_t rtt_us;
  // The shortest round trip, in microseconds; 0: not measured.
  uint64_t min_rtt_us;
  // The variation of the round trip, in microseconds; 0: not measured.
  uint64_t rtt_variation_us;
  // The share of datagrams lost on that path, 0 to 0.6; 0.02 before anything was measured.
  double loss;
  // The largest datagram that the path is known to carry, in bytes of UDP payload.
  uint32_t max_datagram_bytes;
  // 1 if the connection is encrypted.
  uint32_t is_encrypted;
} haulier_connection_stats;

// The progress of the block that is being sent or received.
typedef struct haulier_progress {
  // Its tag.
  uint64_t tag;
  // Bytes received or acknowledged.
  uint64_t done_bytes;
  // Its length, in bytes.
  uint64_t length_bytes;
} haulier_progress;

// What a server counts since it was started, and what it holds now.
typedef struct haulier_server_counters {
  // What the program gave as sizeof(haulier_server_counters).
  size_t struct_size;
  // Connections now, handshakes among them.
  uint64_t connections;
  // Handshakes in progress.
  uint64_t handshakes;
  // Clients that wait in line for a seat, now.
  uint64_t in_line;
  // Bytes that clients make it hold now.
  uint64_t memory_bytes;
  // Requests that became a connection.
  uint64_t requests;
  // Of these, handshakes that were completed.
  uint64_t accepted;
  // Connections that have ended.
  uint64_t closed;
  // Refusals sent.
  uint64_t refused;
  // Datagrams received, from clients and strangers.
  uint64_t datagrams_received;
  // Bytes in them.
  uint64_t bytes_received;
  // Datagrams sent.
  uint64_t datagrams_sent;
  // Bytes in them.
  uint64_t bytes_sent;
} haulier_server_counters;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the interface of the library that runs: HAULIER_ABI_VERSION of its own header.
uint32_t haulier_abi_version(void);

// Compares the header with the library. Call it first, with HAULIER_ABI_VERSION:
//
//     if (haulier_check_abi(HAULIER_ABI_VERSION) != HAULIER_OK)
//         fprintf(stderr, "%s\n", haulier_last_error());
//
// Returns HAULIER_OK if they fit, and HAULIER_ERROR_USAGE otherwise: then nothing else may be called.
haulier_result haulier_check_abi(uint32_t header);

// Returns the version of the library as text, such as "0.1.0". It is never freed.
const char *haulier_version(void);

// Returns the sentence for the last call of this thread that did not return HAULIER_OK or HAULIER_NOTHING:
// in English, for a log or a developer. Never null; empty if there was none. It is valid until the next
// such call on the same thread, and is never freed.
const char *haulier_last_error(void);

// Returns the name of a result, such as "no-answer" for HAULIER_ERROR_NO_ANSWER: the words are the same in
// every language that haulier is used from. It is never freed.
const char *haulier_result_name(int32_t result);

// Makes a new secret, of random bytes of the system.
//
// Returns HAULIER_ERROR_IO if the system has none.
haulier_result haulier_secret_random(struct haulier_secret *secret);

// Overwrites a secret with zeros, which no compiler leaves out. Null is allowed.
void haulier_secret_wipe(struct haulier_secret *secret);

// Writes the public key of an identity, 32 bytes, against which clients check the server. Tickets contain
// it; a program puts it into a token, and gives it to a client that connects by address.
//
// identity: the private key, 32 random bytes.
haulier_result haulier_identity_public(const struct haulier_secret *identity,
                                       uint8_t *public_key);

// Fills the claims of a token with their defaults. struct_size: sizeof(haulier_token_claims).
haulier_result haulier_token_claims_init(struct haulier_token_claims *claims, size_t struct_size);

// Makes a connect token, as a matchmaker does: text that lets one player join, once, for
// haulier_client_connect(). It is a secret of that player's.
//
// key: the key and its name, as the servers have them. protocol_id: the program's number, as the servers
// have it. text: where the token goes, with its 0; HAULIER_TEXT_BYTES are always enough.
//
// Returns HAULIER_ERROR_USAGE for claims that break a limit, HAULIER_ERROR_IO if the system has no random
// bytes or an address is a name that it does not know.
haulier_result haulier_token_issue(const struct haulier_token_key *key,
                                   uint64_t protocol_id,
                                   const struct haulier_token_claims *claims,
                                   char *text,
                                   size_t text_bytes);

// Fills the settings of a connection with their defaults. struct_size: sizeof(haulier_connection_settings).
//
// Returns HAULIER_ERROR_USAGE if the library knows no struct of that size.
haulier_result haulier_connection_settings_init(struct haulier_connection_settings *settings,
                                                size_t struct_size);

// Fills the settings of a client with their defaults. struct_size: sizeof(haulier_client_settings).
//
// Returns HAULIER_ERROR_USAGE if the library knows no struct of that size.
haulier_result haulier_client_settings_init(struct haulier_client_settings *settings,
                                            size_t struct_size);

// Fills the settings of a server with their defaults, which let nobody in. struct_size:
// sizeof(haulier_server_settings).
//
// Returns HAULIER_ERROR_USAGE if the library knows no struct of that size.
haulier_result haulier_server_settings_init(struct haulier_server_settings *settings,
                                            size_t struct_size);

// Frees what an event holds, and makes it one of kind HAULIER_EVENT_NONE; a second time does nothing. Null
// is allowed. An event that was never polled may be given if it is all zeros.
void haulier_event_free(struct haulier_event *event);

// Makes a block of a copy of these bytes, and hashes it: about a millisecond for a megabyte on one core.
//
// tag: the program's, up to 2^62 - 1; the receiver is given it. data: may be freed after the call; may be
// null if data_bytes is 0. block: where the new block goes, to be freed with haulier_block_free(), which
// may be done at once when it has been sent: what is on its way keeps its bytes.
//
// Returns HAULIER_ERROR_USAGE for null pointers, or a tag that is too large.
haulier_result haulier_block_new(uint64_t tag,
                                 const void *data,
                                 size_t data_bytes,
                                 struct haulier_block **block);

// Makes memory for a block of this many bytes, all of them 0. Fill it (haulier_buffer_data()), and make a
// block of it with haulier_block_from_buffer(): that copies nothing.
//
// buffer: where the new one goes. It is freed with haulier_buffer_free(), or becomes a block.
//
// Returns HAULIER_ERROR_IO if the system does not have this memory.
haulier_result haulier_buffer_new(size_t data_bytes,
                                  struct haulier_buffer **buffer);

// Returns where the bytes of the buffer are: as many as it was made with, to be written by one thread at a
// time. Null for a null buffer. Valid until the buffer is freed or becomes a block.
uint8_t *haulier_buffer_data(struct haulier_buffer *buffer);

// Frees a buffer that has not become a block. Null is allowed.
void haulier_buffer_free(struct haulier_buffer *buffer);

// Makes a block of a buffer, without a copy, and hashes it. The buffer is the block's from then on, and the
// caller's pointer to it is set to null; if the call fails, all is as before.
//
// tag, block: as for haulier_block_new(). buffer: points to the pointer that haulier_buffer_new() gave.
haulier_result haulier_block_from_buffer(uint64_t tag,
                                         struct haulier_buffer **buffer,
                                         struct haulier_block **block);

// Frees a block. Sending it goes on. Null is allowed.
void haulier_block_free(struct haulier_block *block);

// Returns the length of a block in bytes; 0 for null.
uint64_t haulier_block_length(const struct haulier_block *block);

// Writes the BLAKE3 of a block's bytes, 32 bytes: what haulier_client_have_block() takes at the other end.
haulier_result haulier_block_digest(const struct haulier_block *block,
                                    uint8_t *digest);

// Writes the value of a chunk, 32 bytes: what is kept of it to make its block with
// haulier_block_from_values(). Values may be computed in any order and by any number of threads, and kept
// beside the file.
//
// block_bytes: the length of the whole block. index: which chunk of it this is, from 0. chunk: its
// HAULIER_CHUNK_BYTES, or fewer of the last one. value: 32 bytes.
//
// Returns HAULIER_ERROR_USAGE if the chunk with this index of such a block has another length, or does not
// exist.
haulier_result haulier_chunk_value(uint64_t block_bytes,
                                   uint32_t index,
                                   const void *chunk,
                                   size_t chunk_bytes,
                                   uint8_t *value);

// Makes a block whose bytes are somewhere else, for example on a disk, and never all in memory. It is sent
// as any other, and HAULIER_EVENT_CHUNKS_WANTED says when its chunks are to be provided:
//
//     haulier_wanted_chunk wanted;
//     while (haulier_server_want_chunk(server, connection, &wanted) == HAULIER_OK) {
//         ... read wanted.length_bytes from wanted.offset_bytes on ...
//         haulier_server_provide_chunk(server, connection, wanted.handle, wanted.index, bytes,
//                                      wanted.length_bytes);
//     }
//
// tag, block: as for haulier_block_new(). block_bytes: its length. values: 32 bytes for each chunk of
// HAULIER_CHUNK_BYTES, as haulier_chunk_value() wrote them, in the order of the chunks; copied. value_count:
// how many chunks there are; 0 for a block of no bytes.
//
// Returns HAULIER_ERROR_USAGE if such a block has not as many chunks.
haulier_result haulier_block_from_values(uint64_t tag,
                                         uint64_t block_bytes,
                                         const uint8_t *values,
                                         size_t value_count,
                                         struct haulier_block **block);

// Whether these are the bytes of this chunk of a block: for a file that may have changed since its values
// were computed. False for null.
//
// block: of any kind. index, chunk, chunk_bytes: as for haulier_chunk_value().
bool haulier_block_is_chunk(const struct haulier_block *block,
                            uint32_t index,
                            const void *chunk,
                            size_t chunk_bytes);

// Starts to connect with the text of a ticket ("haulier1:...") or of a connect token ("haulier-token1:..."),
// and returns at once: HAULIER_EVENT_CONNECTED or HAULIER_EVENT_CLOSED reports the result.
//
// ticket: white space around it is ignored. settings: null for the defaults. client: where the new client
// goes, to be freed with haulier_client_free(); null is written there if the call fails.
//
// Returns HAULIER_ERROR_CREDENTIALS for a text that is neither, HAULIER_ERROR_USAGE for settings that cannot
// work, HAULIER_ERROR_UNREACHABLE if no network leads there, HAULIER_ERROR_IO if the system gives no socket.
haulier_result haulier_client_connect(const char *ticket,
                                      const struct haulier_client_settings *settings,
                                      struct haulier_client **client);

// Starts to connect to an address, without a ticket, and returns as haulier_client_connect() does.
//
// address: "192.0.2.7:4016", "[2001:db8::7]:4016" or "example.org:4016"; the system resolves a name, which
// may take seconds, and all its addresses are tried. protocol_id: the program's number, which both ends
// have. secret: the server's; null for a server that is open, without encryption. identity: the public key
// that the server must prove to have, 32 bytes, with a secret only; null for none. settings, client: as for
// haulier_client_connect().
//
// Returns what haulier_client_connect() does, and HAULIER_ERROR_IO for a name that is not known.
haulier_result haulier_client_connect_to(const char *address,
                                         uint64_t protocol_id,
                                         const struct haulier_secret *secret,
                                         const uint8_t *identity,
                                         const struct haulier_client_settings *settings,
                                         struct haulier_client **client);

// Frees a client. If it is still connected its connection is closed with HAULIER_CLOSE_DONE, and what was
// not acknowledged may be lost: haulier_client_finish() waits for it. No other thread may use it any more.
// Its events stay valid. Null is allowed.
void haulier_client_free(struct haulier_client *client);

// Takes the next event, without waiting. Call it once a frame, until it returns something else:
//
//     haulier_event event;
//     while (haulier_client_poll(client, &event) == HAULIER_OK) {
//         switch (event.kind) { ... }
//         haulier_event_free(&event);
//     }
//
// event: what was in it is overwritten, not freed.
//
// Returns HAULIER_OK with an event, HAULIER_NOTHING if no event is ready, and an error once the network
// thread has ended and all events are taken.
haulier_result haulier_client_poll(const struct haulier_client *client,
                                   struct haulier_event *event);

// Takes the next event, and waits for it up to max_ms milliseconds.
//
// Returns as haulier_client_poll() does; HAULIER_NOTHING also after haulier_client_wake(), and when the
// client is closed and there are no more events.
haulier_result haulier_client_wait(const struct haulier_client *client,
                                   uint32_t max_ms,
                                   struct haulier_event *event);

// Ends a haulier_client_wait() without an event: the one under way, or else the next. For other threads of
// the program, whose results its network loop takes up. It does not wait for the network.
haulier_result haulier_client_wake(const struct haulier_client *client);

// Closes the connection. Nothing is received after that, except HAULIER_EVENT_CLOSED.
//
// code: HAULIER_CLOSE_DONE, or one of the program's own, from HAULIER_CLOSE_APPLICATION on. reason: up to
// 255 bytes of text for the server; null for none.
haulier_result haulier_client_close(const struct haulier_client *client,
                                    uint32_t code,
                                    const char *reason);

// Whether the connection is closed, and the peer was sent the close: there will be no more events. True for
// null.
bool haulier_client_is_closed(const struct haulier_client *client);

// Closes gracefully: waits until all blocks and messages that were sent are acknowledged, closes with
// HAULIER_CLOSE_DONE, and waits until that is sent, all within max_ms milliseconds. Events in that time are
// dropped. The client is still to be freed.
//
// Returns HAULIER_ERROR_TIMEOUT if not all was acknowledged in time; it is closed nevertheless.
haulier_result haulier_client_finish(const struct haulier_client *client,
                                     uint32_t max_ms);

// Moves the connection to a new socket, where it goes on: call it when the network has changed, for example
// from Wi-Fi to mobile. No effect before there is a connection.
//
// Returns HAULIER_ERROR_IO if the system gives no socket; the old one is kept then.
haulier_result haulier_client_rebind(const struct haulier_client *client);

// Sends a block, which arrives whole: HAULIER_EVENT_BLOCK_SENT says so. Its bytes are not copied, and it may
// be freed at once.
//
// handle: where its number goes, which names it in events and below; may be null.
//
// Returns HAULIER_ERROR_NOT_OPEN before HAULIER_EVENT_CONNECTED and after the end, HAULIER_ERROR_FULL,
// HAULIER_ERROR_USAGE if it is larger than what the server accepts.
haulier_result haulier_client_send_block(const struct haulier_client *client,
                                         const struct haulier_block *block,
                                         uint32_t *handle);

// Sends a block beside others.
//
// priority: 0 to 255; the highest goes first. weight: the share beside others of its priority, 0 to 65535;
// 0: after those that have none either. urgency: a haulier_urgency, or HAULIER_URGENCY_OF_CONNECTION.
// handle: as for haulier_client_send_block().
//
// Returns as haulier_client_send_block() does.
haulier_result haulier_client_send_block_with(const struct haulier_client *client,
                                              const struct haulier_block *block,
                                              uint32_t priority,
                                              uint32_t weight,
                                              uint32_t urgency,
                                              uint32_t *handle);

// Takes the next chunk that is wanted of a block that was made with haulier_block_from_values(): each is
// wanted once, and a few ahead of the chunk that is being sent. Any thread may ask, read and provide: the
// network does not wait for it.
//
// chunk: where it goes.
//
// Returns HAULIER_NOTHING if no more are wanted now: HAULIER_EVENT_CHUNKS_WANTED says when more are wanted.
haulier_result haulier_client_want_chunk(const struct haulier_client *client,
                                         struct haulier_wanted_chunk *chunk);

// Provides a chunk that was wanted, in any order and at any time. The program must provide the right bytes:
// with others the server closes the connection (haulier_block_is_chunk()). A program that cannot provide one
// gives the block up, with haulier_client_cancel_block().
//
// handle, index: of the wanted chunk. data: copied; as many bytes as were wanted.
//
// Returns HAULIER_NOTHING if the chunk is not needed any more: the server has the block, or declined it, or
// the connection is gone. HAULIER_ERROR_USAGE for a chunk that was not wanted, was provided before, or has
// another length.
haulier_result haulier_client_provide_chunk(const struct haulier_client *client,
                                            uint32_t handle,
                                            uint32_t index,
                                            const void *data,
                                            size_t data_bytes);

// Gives a block up. The server receives the code, which is the program's own. There is no event.
//
// Returns HAULIER_NOTHING if it was not on its way.
haulier_result haulier_client_cancel_block(const struct haulier_client *client,
                                           uint32_t handle,
                                           uint32_t code);

// Pauses a block: no further chunk of it is begun, and it has no time limit.
//
// Returns HAULIER_NOTHING if it is not on its way.
haulier_result haulier_client_pause_block(const struct haulier_client *client, uint32_t handle);

// Goes on with a block that was paused.
//
// Returns HAULIER_NOTHING if it is not on its way.
haulier_result haulier_client_resume_block(const struct haulier_client *client, uint32_t handle);

// Sets which bytes of a block are sent first, as far as chunks may be open (256 MiB); the others follow. It
// can be changed at any time.
//
// begin_bytes, end_bytes: the first byte, and the one after the last; the usual order if they are equal.
//
// Returns HAULIER_NOTHING if it is not on its way.
haulier_result haulier_client_prefer_range(const struct haulier_client *client,
                                           uint32_t handle,
                                           uint64_t begin_bytes,
                                           uint64_t end_bytes);

// Changes the priority of a block, 0 to 255, from now on.
//
// Returns HAULIER_NOTHING if it is not on its way.
haulier_result haulier_client_set_block_priority(const struct haulier_client *client,
                                                 uint32_t handle,
                                                 uint32_t priority);

// Declines the rest of a block that the server announced, and sends it the code, which is the program's own.
//
// block: from HAULIER_EVENT_BLOCK_ANNOUNCED.
//
// Returns HAULIER_NOTHING if it was not being received.
haulier_result haulier_client_decline_block(const struct haulier_client *client,
                                            uint32_t block,
                                            uint32_t code);

// Says that the program has a block already, for example on its disk: when the server announces it,
// HAULIER_EVENT_BLOCK_HERE takes the place of HAULIER_EVENT_BLOCK, and its bytes are not sent.
//
// digest: the BLAKE3 of the block, 32 bytes.
//
// Returns HAULIER_NOTHING if it is not remembered: at most 64 are, once there is a connection.
haulier_result haulier_client_have_block(const struct haulier_client *client,
                                         const uint8_t *digest);

// Says that the program has some chunks of a block already, verified: only the others are sent and handed
// out. With HAULIER_DELIVERY_CHUNKS and HAULIER_DELIVERY_IN_ORDER.
//
// digest: the BLAKE3 of the block, 32 bytes. map: bit i, the lowest of each byte first, is the chunk from
// byte i * 262144 on; copied.
//
// Returns HAULIER_NOTHING if it is not remembered.
haulier_result haulier_client_have_chunks(const struct haulier_client *client,
                                          const uint8_t *digest,
                                          const uint8_t *map,
                                          size_t map_bytes);

// Returns the state of the connection; HAULIER_STATE_NONE before there is one, and for null.
haulier_state haulier_client_state(const struct haulier_client *client);

// Whether every block and message that was sent is acknowledged. True for null.
bool haulier_client_all_acked(const struct haulier_client *client);

// Writes what the connection counts, and what it has measured of the path. struct_size:
// sizeof(haulier_connection_stats).
//
// Returns HAULIER_NOTHING before there is a connection.
haulier_result haulier_client_stats(const struct haulier_client *client,
                                    struct haulier_connection_stats *stats,
                                    size_t struct_size);

// Writes the progress of the block that is being sent.
//
// Returns HAULIER_NOTHING if no block is being sent.
haulier_result haulier_client_sending(const struct haulier_client *client,
                                      struct haulier_progress *progress);

// Writes the progress of the block that is being received.
//
// Returns HAULIER_NOTHING if no block is being received.
haulier_result haulier_client_receiving(const struct haulier_client *client,
                                        struct haulier_progress *progress);

// Writes the address of the server as text; one of several while it connects. HAULIER_TEXT_BYTES are always
// enough.
haulier_result haulier_client_server_address(const struct haulier_client *client,
                                             char *text,
                                             size_t text_bytes);

// Writes the local address of its socket as text. HAULIER_TEXT_BYTES are always enough.
haulier_result haulier_client_local_address(const struct haulier_client *client,
                                            char *text,
                                            size_t text_bytes);

// Writes a warning for the user if the system gives the socket too little buffer memory, with what to do.
// HAULIER_TEXT_BYTES are always enough.
//
// Returns HAULIER_NOTHING if there is no warning.
haulier_result haulier_client_buffer_warning(const struct haulier_client *client,
                                             char *text,
                                             size_t text_bytes);

// Sends a packet of up to 256 KiB, once: it is in time or lost. HAULIER_EVENT_PACKET_ACKED or
// HAULIER_EVENT_PACKET_LOST says which.
//
// data: copied; may be null if data_bytes is 0. number: where its number goes, for those events; may be
// null.
//
// Returns HAULIER_ERROR_NOT_OPEN before HAULIER_EVENT_CONNECTED and after the end, HAULIER_ERROR_FULL,
// HAULIER_ERROR_USAGE if it is too large.
haulier_result haulier_client_send_packet(const struct haulier_client *client,
                                          const void *data,
                                          size_t data_bytes,
                                          uint64_t *number);

// Sends a message of up to 64 KiB on channel 0: it arrives, once, in order.
//
// data: copied; may be null if data_bytes is 0.
//
// Returns HAULIER_ERROR_NOT_OPEN before HAULIER_EVENT_CONNECTED and after the end, HAULIER_ERROR_FULL,
// HAULIER_ERROR_USAGE if it is too large.
haulier_result haulier_client_send_message(const struct haulier_client *client,
                                           const void *data,
                                           size_t data_bytes);

// Sends a message of up to 64 KiB on a channel: it arrives, once. A message that is missing on one channel
// delays no other channel.
//
// channel: 0 to 255, and less than the server's max_channels. order: a haulier_order. data: copied; may be
// null if data_bytes is 0. number: where its number on the channel goes, for HAULIER_EVENT_MESSAGE_ACKED;
// may be null.
//
// Returns as haulier_client_send_message() does; HAULIER_ERROR_USAGE also for a channel that the server does
// not accept.
haulier_result haulier_client_send_message_on(const struct haulier_client *client,
                                              uint32_t channel,
                                              uint32_t order,
                                              const void *data,
                                              size_t data_bytes,
                                              uint64_t *number);

// Sets the priority and the weight of a source of this client's data. Of the sources that have data to send,
// the one with the highest priority goes first; within a priority each has its weight's share of the bytes.
// No effect before HAULIER_EVENT_CONNECTED.
//
// source: a haulier_source. channel: which channel, with HAULIER_SOURCE_CHANNEL. priority: 0 to 255.
// weight: 1 to 65535.
haulier_result haulier_client_set_lane(const struct haulier_client *client,
                                       uint32_t source,
                                       uint32_t channel,
                                       uint32_t priority,
                                       uint32_t weight);

// Limits the rate of the blocks that this client sends, in bit/s; less than 4000 counts as 4000.
haulier_result haulier_client_set_max_rate_bps(const struct haulier_client *client,
                                               uint64_t max_rate_bps);

// Changes how much of the link this client's blocks may take, at once. urgency: a haulier_urgency.
haulier_result haulier_client_set_urgency(const struct haulier_client *client, uint32_t urgency);

// Binds an address, and starts.
//
// address: "0.0.0.0:4016" or "[::]:4016" for all addresses of the host; with port 0 the system chooses one
// (haulier_server_local_address()). protocol_id: the program's number, which both ends have. settings: they
// say whom it lets in. server: where the new server goes, to be freed with haulier_server_free(); null is
// written there if the call fails.
//
// Returns HAULIER_ERROR_IO if the address cannot be bound, HAULIER_ERROR_USAGE for settings that cannot
// work.
haulier_result haulier_server_bind(const char *address,
                                   uint64_t protocol_id,
                                   const struct haulier_server_settings *settings,
                                   struct haulier_server **server);

// Makes another handle of the server, with the events of only one of its workers (haulier_server_settings,
// workers): for a program that has a thread for each worker. All other functions work on all connections, as
// with the first handle. Each event goes to one handle, so a program polls either these or the server
// itself.
//
// number: which worker, from 0. worker: where the new one goes, to be freed with haulier_server_free(), in
// any order with the server; null is written there if the call does not return HAULIER_OK.
//
// Returns HAULIER_NOTHING if there is no worker with this number: some systems have one, whatever the
// settings say.
haulier_result haulier_server_worker(const struct haulier_server *server,
                                     uint32_t number,
                                     struct haulier_server **worker);

// Frees a server. All connections that are left are closed with HAULIER_CLOSE_SHUTTING_DOWN:
// haulier_server_finish() waits until that is sent. With haulier_server_worker() the server ends when the
// last handle is freed. No other thread may use it any more. Its events stay valid. Null is allowed.
void haulier_server_free(struct haulier_server *server);

// Takes the next event of any client, without waiting. Call it once a frame, until it returns something else
// than HAULIER_OK. event: what was in it is overwritten, not freed; free each event.
//
// Returns HAULIER_OK with an event, HAULIER_NOTHING if no event is ready, and an error once the network
// thread has ended and all events are taken.
haulier_result haulier_server_poll(const struct haulier_server *server,
                                   struct haulier_event *event);

// Takes the next event of any client, and waits for it up to max_ms milliseconds.
//
// Returns as haulier_server_poll() does; HAULIER_NOTHING also after haulier_server_wake(), and when the
// server is shut down.
haulier_result haulier_server_wait(const struct haulier_server *server,
                                   uint32_t max_ms,
                                   struct haulier_event *event);

// Ends a haulier_server_wait() without an event: the one under way, or else the next. For other threads of
// the program, whose results its network loop takes up. It does not wait for the network.
haulier_result haulier_server_wake(const struct haulier_server *server);

// Writes the text of a ticket to this server: its addresses, and its secret and identity if it has them. It
// is a secret, unless the server is open.
//
// addresses: those at which clients reach the server, as text, the likeliest first, up to 8. Null, with a
// count of 0, is the one that it listens at. text: where the ticket goes, with its 0; HAULIER_TEXT_BYTES are
// always enough.
//
// Returns HAULIER_NOTHING if the server accepts only tokens, HAULIER_ERROR_USAGE for an address that clients
// cannot reach, such as "0.0.0.0:4016".
haulier_result haulier_server_ticket(const struct haulier_server *server,
                                     const char *const *addresses,
                                     size_t address_count,
                                     char *text,
                                     size_t text_bytes);

// Closes a connection. To turn a client away, close it at HAULIER_EVENT_CONNECTING: it receives both,
// the code and the reason.
//
// code: HAULIER_CLOSE_DONE, HAULIER_CLOSE_NOT_ACCEPTED, or one of the program's own, from
// HAULIER_CLOSE_APPLICATION on. reason: up to 255 bytes of text for the client; null for none.
haulier_result haulier_server_close(const struct haulier_server *server,
                                    uint64_t connection,
                                    uint32_t code,
                                    const char *reason);

// Starts to shut down: closes all connections with HAULIER_CLOSE_SHUTTING_DOWN, and accepts no more. Poll
// until haulier_server_is_shut_down(), so that the closes are sent.
haulier_result haulier_server_shut_down(const struct haulier_server *server);

// Whether it was shut down, and no connection is left. True for null.
bool haulier_server_is_shut_down(const struct haulier_server *server);

// Shuts down, and waits up to max_ms milliseconds until every close is sent. Events in that time are
// dropped. The server is still to be freed.
//
// Returns HAULIER_ERROR_TIMEOUT if not every close was sent in time.
haulier_result haulier_server_finish(const struct haulier_server *server,
                                     uint32_t max_ms);

// Sends a block, which arrives whole: HAULIER_EVENT_BLOCK_SENT says so. Its bytes are not copied, and it may
// be freed at once.
//
// handle: where its number goes, which names it in events and below; may be null.
//
// Returns HAULIER_ERROR_NOT_OPEN for a connection that is gone, HAULIER_ERROR_FULL,
// HAULIER_ERROR_USAGE if it is larger than what the client accepts.
haulier_result haulier_server_send_block(const struct haulier_server *server,
                                         uint64_t connection,
                                         const struct haulier_block *block,
                                         uint32_t *handle);

// Sends a block beside others.
//
// priority: 0 to 255; the highest goes first. weight: the share beside others of its priority, 0 to 65535;
// 0: after those that have none either. urgency: a haulier_urgency, or HAULIER_URGENCY_OF_CONNECTION.
// handle: as for haulier_server_send_block().
//
// Returns as haulier_server_send_block() does.
haulier_result haulier_server_send_block_with(const struct haulier_server *server,
                                              uint64_t connection,
                                              const struct haulier_block *block,
                                              uint32_t priority,
                                              uint32_t weight,
                                              uint32_t urgency,
                                              uint32_t *handle);

// Takes the next chunk that is wanted of a block that was made with haulier_block_from_values(): each is
// wanted once, and a few ahead of the chunk that is being sent. Any thread may ask, read and provide: the
// network does not wait for it.
//
// chunk: where it goes.
//
// Returns HAULIER_NOTHING if no more are wanted now: HAULIER_EVENT_CHUNKS_WANTED says when more are wanted.
haulier_result haulier_server_want_chunk(const struct haulier_server *server,
                                         uint64_t connection,
                                         struct haulier_wanted_chunk *chunk);

// Provides a chunk that was wanted, in any order and at any time. The program must provide the right bytes:
// with others the client closes the connection (haulier_block_is_chunk()). A program that cannot provide one
// gives the block up, with haulier_server_cancel_block().
//
// handle, index: of the wanted chunk. data: copied; as many bytes as were wanted.
//
// Returns HAULIER_NOTHING if the chunk is not needed any more: the client has the block, or declined it, or
// the connection is gone. HAULIER_ERROR_USAGE for a chunk that was not wanted, was provided before, or has
// another length.
haulier_result haulier_server_provide_chunk(const struct haulier_server *server,
                                            uint64_t connection,
                                            uint32_t handle,
                                            uint32_t index,
                                            const void *data,
                                            size_t data_bytes);

// Gives a block up. The client receives the code, which is the program's own. There is no event.
//
// Returns HAULIER_NOTHING if it was not on its way.
haulier_result haulier_server_cancel_block(const struct haulier_server *server,
                                           uint64_t connection,
                                           uint32_t handle,
                                           uint32_t code);

// Pauses a block: no further chunk of it is begun, and it has no time limit.
//
// Returns HAULIER_NOTHING if it is not on its way.
haulier_result haulier_server_pause_block(const struct haulier_server *server,
                                          uint64_t connection,
                                          uint32_t handle);

// Goes on with a block that was paused.
//
// Returns HAULIER_NOTHING if it is not on its way.
haulier_result haulier_server_resume_block(const struct haulier_server *server,
                                           uint64_t connection,
                                           uint32_t handle);

// Sets which bytes of a block are sent first, as far as chunks may be open (256 MiB); the others follow. It
// can be changed at any time.
//
// begin_bytes, end_bytes: the first byte, and the one after the last; the usual order if they are equal.
//
// Returns HAULIER_NOTHING if it is not on its way.
haulier_result haulier_server_prefer_range(const struct haulier_server *server,
                                           uint64_t connection,
                                           uint32_t handle,
                                           uint64_t begin_bytes,
                                           uint64_t end_bytes);

// Changes the priority of a block, 0 to 255, from now on.
//
// Returns HAULIER_NOTHING if it is not on its way.
haulier_result haulier_server_set_block_priority(const struct haulier_server *server,
                                                 uint64_t connection,
                                                 uint32_t handle,
                                                 uint32_t priority);

// Declines the rest of a block that the client announced, and sends it the code, which is the program's own.
//
// block: from HAULIER_EVENT_BLOCK_ANNOUNCED.
//
// Returns HAULIER_NOTHING if it was not being received.
haulier_result haulier_server_decline_block(const struct haulier_server *server,
                                            uint64_t connection,
                                            uint32_t block,
                                            uint32_t code);

// Says that the program has a block already, for example on its disk: when the client announces it,
// HAULIER_EVENT_BLOCK_HERE takes the place of HAULIER_EVENT_BLOCK, and its bytes are not sent.
//
// digest: the BLAKE3 of the block, 32 bytes.
//
// Returns HAULIER_NOTHING if it is not remembered: at most 64 are, once there is a connection.
haulier_result haulier_server_have_block(const struct haulier_server *server,
                                         uint64_t connection,
                                         const uint8_t *digest);

// Says that the program has some chunks of a block already, verified: only the others are sent and handed
// out. With HAULIER_DELIVERY_CHUNKS and HAULIER_DELIVERY_IN_ORDER.
//
// digest: the BLAKE3 of the block, 32 bytes. map: bit i, the lowest of each byte first, is the chunk from
// byte i * 262144 on; copied.
//
// Returns HAULIER_NOTHING if it is not remembered.
haulier_result haulier_server_have_chunks(const struct haulier_server *server,
                                          uint64_t connection,
                                          const uint8_t *digest,
                                          const uint8_t *map,
                                          size_t map_bytes);

// Returns the state of a connection; HAULIER_STATE_NONE for one that is gone, and for null.
haulier_state haulier_server_state(const struct haulier_server *server, uint64_t connection);

// Writes what the connection counts, and what it has measured of the path. struct_size:
// sizeof(haulier_connection_stats).
//
// Returns HAULIER_NOTHING for a connection that is gone.
haulier_result haulier_server_connection_stats(const struct haulier_server *server,
                                               uint64_t connection,
                                               struct haulier_connection_stats *stats,
                                               size_t struct_size);

// Writes the progress of the block that is being sent.
//
// Returns HAULIER_NOTHING if no block is being sent.
haulier_result haulier_server_sending(const struct haulier_server *server,
                                      uint64_t connection,
                                      struct haulier_progress *progress);

// Writes the progress of the block that is being received.
//
// Returns HAULIER_NOTHING if no block is being received.
haulier_result haulier_server_receiving(const struct haulier_server *server,
                                        uint64_t connection,
                                        struct haulier_progress *progress);

// Writes the address of a connection's client as text. HAULIER_TEXT_BYTES are always enough.
//
// Returns HAULIER_NOTHING for a connection that is gone.
haulier_result haulier_server_client_address(const struct haulier_server *server,
                                             uint64_t connection,
                                             char *text,
                                             size_t text_bytes);

// Writes what the server counts, for all its clients together. struct_size: sizeof(haulier_server_counters).
haulier_result haulier_server_stats(const struct haulier_server *server,
                                    struct haulier_server_counters *stats,
                                    size_t struct_size);

// Writes the connections that there are, those in their handshake too.
//
// connections: room for capacity numbers; may be null if that is 0. count: where the number of connections
// goes, which may be more than capacity: then the others were not written.
haulier_result haulier_server_connections(const struct haulier_server *server,
                                          uint64_t *connections,
                                          size_t capacity,
                                          size_t *count);

// Whether every block and message that was sent to a client is acknowledged. True for null, and for a
// connection that is gone.
bool haulier_server_all_acked(const struct haulier_server *server,
                              uint64_t connection);

// Writes the address that the server listens at as text, with the port that the system has chosen.
// HAULIER_TEXT_BYTES are always enough.
haulier_result haulier_server_local_address(const struct haulier_server *server,
                                            char *text,
                                            size_t text_bytes);

// Sends a packet of up to 256 KiB, once: it is in time or lost. HAULIER_EVENT_PACKET_ACKED or
// HAULIER_EVENT_PACKET_LOST says which.
//
// data: copied; may be null if data_bytes is 0. number: where its number goes, for those events; may be
// null.
//
// Returns HAULIER_ERROR_NOT_OPEN for a connection that is gone, HAULIER_ERROR_FULL,
// HAULIER_ERROR_USAGE if it is too large.
haulier_result haulier_server_send_packet(const struct haulier_server *server,
                                          uint64_t connection,
                                          const void *data,
                                          size_t data_bytes,
                                          uint64_t *number);

// Sends a message of up to 64 KiB on channel 0: it arrives, once, in order.
//
// data: copied; may be null if data_bytes is 0.
//
// Returns HAULIER_ERROR_NOT_OPEN for a connection that is gone, HAULIER_ERROR_FULL,
// HAULIER_ERROR_USAGE if it is too large.
haulier_result haulier_server_send_message(const struct haulier_server *server,
                                           uint64_t connection,
                                           const void *data,
                                           size_t data_bytes);

// Sends a message of up to 64 KiB on a channel: it arrives, once. A message that is missing on one channel
// delays no other channel.
//
// channel: 0 to 255, and less than the client's max_channels. order: a haulier_order. data: copied; may be
// null if data_bytes is 0. number: where its number on the channel goes, for HAULIER_EVENT_MESSAGE_ACKED;
// may be null.
//
// Returns as haulier_server_send_message() does; HAULIER_ERROR_USAGE also for a channel that the client does
// not accept.
haulier_result haulier_server_send_message_on(const struct haulier_server *server,
                                              uint64_t connection,
                                              uint32_t channel,
                                              uint32_t order,
                                              const void *data,
                                              size_t data_bytes,
                                              uint64_t *number);

// Sets the priority and the weight of a source of data to a client. Of the sources that have data to send,
// the one with the highest priority goes first; within a priority each has its weight's share of the bytes.
//
// source: a haulier_source. channel: which channel, with HAULIER_SOURCE_CHANNEL. priority: 0 to 255.
// weight: 1 to 65535.
haulier_result haulier_server_set_lane(const struct haulier_server *server,
                                       uint64_t connection,
                                       uint32_t source,
                                       uint32_t channel,
                                       uint32_t priority,
                                       uint32_t weight);

// Limits the rate of the blocks that are sent to a client, in bit/s; less than 4000 counts as 4000.
haulier_result haulier_server_set_max_rate_bps(const struct haulier_server *server,
                                               uint64_t connection,
                                               uint64_t max_rate_bps);

// Changes how much of the link a client's blocks may take, at once. urgency: a haulier_urgency.
haulier_result haulier_server_set_urgency(const struct haulier_server *server,
                                          uint64_t connection,
                                          uint32_t urgency);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAULIER_H */

/* Made of sources with the sum 23de65b491c47b73; the lines above have 999bd166b445f138. */
