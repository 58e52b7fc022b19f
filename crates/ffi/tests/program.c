/* The interface as a program uses it: a server and its clients in one process, each feature once. It is compiled
 * as C and as C++, with every warning, and run with the sanitizers: a leak is a failure too. `cargo xtask ci
 * --only c` does that. */

#include <haulier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL_ID 7
#define PATIENCE_MS 20000

/* Says where it went wrong, and ends. */
#define CHECK(is_so) \
    do { \
        if (!(is_so)) { \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #is_so, \
                    haulier_last_error()); \
            exit(1); \
        } \
    } while (0)

static haulier_secret secret;
static haulier_secret identity;
static haulier_token_key token_key;

static haulier_server *bind_server_with(const haulier_block *first_block) {
    haulier_server_settings settings;
    haulier_connection_settings connection;
    haulier_server *server;
    CHECK(haulier_server_settings_init(&settings, sizeof settings) == HAULIER_OK);
    CHECK(haulier_connection_settings_init(&connection, sizeof connection) == HAULIER_OK);
    connection.max_channels = 4;
    settings.secret = &secret;
    settings.identity = &identity;
    settings.token_keys = &token_key;
    settings.token_key_count = 1;
    settings.accepts_earlier_tokens = 1;
    settings.connection = &connection;
    settings.first_block = first_block;
    CHECK(haulier_server_bind("127.0.0.1:0", PROTOCOL_ID, &settings, &server) == HAULIER_OK);
    return server;
}

static haulier_server *bind_server(void) {
    return bind_server_with(NULL);
}

/* The next event of a kind of a server; others are freed. */
static haulier_event hear(haulier_server *server, haulier_event_kind kind) {
    haulier_event event;
    for (;;) {
        CHECK(haulier_server_wait(server, PATIENCE_MS, &event) == HAULIER_OK);
        if (event.kind == kind)
            return event;
        CHECK(event.kind != HAULIER_EVENT_CLOSED);
        haulier_event_free(&event);
    }
}

/* The next event of a kind of a client; others are freed. */
static haulier_event hear_client(haulier_client *client, haulier_event_kind kind) {
    haulier_event event;
    for (;;) {
        CHECK(haulier_client_wait(client, PATIENCE_MS, &event) == HAULIER_OK);
        if (event.kind == kind)
            return event;
        CHECK(event.kind != HAULIER_EVENT_CLOSED);
        haulier_event_free(&event);
    }
}

static int is(const haulier_event *event, const char *text) {
    return event->data_bytes == strlen(text) && memcmp(event->data, text, event->data_bytes) == 0;
}

/* A client that joins with a ticket and a request, and its connection at the server. */
static haulier_client *join(haulier_server *server, const haulier_connection_settings *connection,
                            uint64_t *id) {
    char ticket[HAULIER_TEXT_BYTES];
    haulier_client_settings settings;
    haulier_client *client;
    haulier_event event;
    CHECK(haulier_server_ticket(server, NULL, 0, ticket, sizeof ticket) == HAULIER_OK);
    CHECK(haulier_client_settings_init(&settings, sizeof settings) == HAULIER_OK);
    settings.request = "name=alice";
    settings.request_bytes = strlen("name=alice");
    settings.connection = connection;
    CHECK(haulier_client_connect(ticket, &settings, &client) == HAULIER_OK);
    event = hear(server, HAULIER_EVENT_CONNECTING);
    CHECK(is(&event, "name=alice") && !event.has_token);
    *id = event.connection;
    haulier_event_free(&event);
    event = hear_client(client, HAULIER_EVENT_CONNECTED);
    haulier_event_free(&event);
    return client;
}

/* A world comes whole and verified, and is one that was freed after it was sent. */
static void test_blocks(haulier_server *server) {
    enum { WORLD_BYTES = 3000000 };
    uint64_t id;
    uint32_t handle, other;
    uint8_t digest[32];
    haulier_progress progress;
    haulier_event event;
    haulier_block *world, *upload;
    haulier_buffer *buffer;
    haulier_client *client = join(server, NULL, &id);

    CHECK(haulier_buffer_new(WORLD_BYTES, &buffer) == HAULIER_OK);
    memset(haulier_buffer_data(buffer), 'w', WORLD_BYTES);
    CHECK(haulier_block_from_buffer(1, &buffer, &world) == HAULIER_OK && buffer == NULL);
    CHECK(haulier_block_length(world) == WORLD_BYTES);
    CHECK(haulier_block_digest(world, digest) == HAULIER_OK);
    CHECK(haulier_server_send_block(server, id, world, &handle) == HAULIER_OK);
    haulier_block_free(world);
    for (;;) {
        CHECK(haulier_client_wait(client, PATIENCE_MS, &event) == HAULIER_OK);
        if (event.kind == HAULIER_EVENT_BLOCK)
            break;
        if (event.kind == HAULIER_EVENT_BLOCK_ANNOUNCED)
            CHECK(event.tag == 1 && memcmp(event.digest, digest, sizeof digest) == 0);
        if (event.kind == HAULIER_EVENT_BLOCK_PROGRESS)
            CHECK(event.length_bytes == WORLD_BYTES && event.received_bytes <= WORLD_BYTES);
        haulier_event_free(&event);
    }
    CHECK(event.tag == 1 && event.data_bytes == WORLD_BYTES);
    CHECK(event.data[0] == 'w' && event.data[WORLD_BYTES - 1] == 'w');
    haulier_event_free(&event);
    haulier_event_free(&event); /* the second time it holds nothing */
    CHECK(event.kind == HAULIER_EVENT_NONE && event.data == NULL);
    event = hear(server, HAULIER_EVENT_BLOCK_SENT);
    CHECK(event.connection == id && event.handle == handle);
    haulier_event_free(&event);
    CHECK(haulier_server_sending(server, id, &progress) == HAULIER_NOTHING);
    CHECK(haulier_server_cancel_block(server, id, handle, 1) == HAULIER_NOTHING);

    /* Upwards: the server has one of them, and the other is given up before it begins. */
    CHECK(haulier_block_new(2, "upload", 6, &upload) == HAULIER_OK);
    CHECK(haulier_block_digest(upload, digest) == HAULIER_OK);
    CHECK(haulier_server_have_block(server, id, digest) == HAULIER_OK);
    CHECK(haulier_client_send_block_with(client, upload, 1, 0, HAULIER_URGENCY_DURING_PLAY, &other)
          == HAULIER_OK);
    event = hear(server, HAULIER_EVENT_BLOCK_HERE);
    CHECK(event.tag == 2);
    haulier_event_free(&event);
    haulier_block_free(upload);
    CHECK(haulier_client_pause_block(client, 4000) == HAULIER_NOTHING);
    CHECK(haulier_client_prefer_range(client, 4000, 0, 1) == HAULIER_NOTHING);
    CHECK(haulier_client_set_block_priority(client, 4000, 1) == HAULIER_NOTHING);
    CHECK(haulier_client_finish(client, PATIENCE_MS) == HAULIER_OK);
    CHECK(haulier_client_is_closed(client));
    haulier_client_free(client);
}

/* The world goes with the answer to a request: the program has freed it, and does not look at its server. */
static void test_first_block(void) {
    char ticket[HAULIER_TEXT_BYTES];
    haulier_event event;
    haulier_block *world;
    haulier_server *server;
    haulier_client *client;
    CHECK(haulier_block_new(9, "the world", 9, &world) == HAULIER_OK);
    server = bind_server_with(world);
    haulier_block_free(world);
    CHECK(haulier_server_ticket(server, NULL, 0, ticket, sizeof ticket) == HAULIER_OK);
    CHECK(haulier_client_connect(ticket, NULL, &client) == HAULIER_OK);
    event = hear_client(client, HAULIER_EVENT_BLOCK);
    CHECK(event.tag == 9 && is(&event, "the world"));
    haulier_event_free(&event);
    event = hear(server, HAULIER_EVENT_BLOCK_SENT);
    haulier_event_free(&event);
    haulier_client_free(client);
    haulier_server_free(server);
}

/* Chunks in their order, for a program that writes them to a disk. */
static void test_chunks(haulier_server *server) {
    enum { BYTES = 600000 };
    uint64_t id, read = 0;
    haulier_connection_settings connection;
    haulier_event event;
    haulier_block *block;
    haulier_client *client;
    char *world = (char *)calloc(BYTES, 1);
    CHECK(haulier_connection_settings_init(&connection, sizeof connection) == HAULIER_OK);
    connection.delivery = HAULIER_DELIVERY_IN_ORDER;
    connection.max_unread_block_bytes = 8 << 20;
    client = join(server, &connection, &id);
    CHECK(world && haulier_block_new(3, world, BYTES, &block) == HAULIER_OK);
    free(world);
    CHECK(haulier_server_send_block(server, id, block, NULL) == HAULIER_OK);
    haulier_block_free(block);
    while (read < BYTES) {
        event = hear_client(client, HAULIER_EVENT_CHUNK);
        CHECK(event.tag == 3 && event.offset_bytes == read && event.data_bytes > 0);
        read += event.data_bytes;
        haulier_event_free(&event);
    }
    event = hear_client(client, HAULIER_EVENT_BLOCK_COMPLETE);
    CHECK(event.tag == 3);
    haulier_event_free(&event);
    haulier_client_free(client);
}

/* The bytes of a file that is not there: byte n of it. */
static void read_file(char *to, uint64_t begin, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        to[i] = (char)((begin + i) * 7 + ((begin + i) >> 13));
}

/* Blocks whose bytes are somewhere else, down and up: each chunk is read when it is wanted. */
static void test_sources(haulier_server *server) {
    enum { BYTES = 2000000, CHUNKS = (BYTES + HAULIER_CHUNK_BYTES - 1) / HAULIER_CHUNK_BYTES };
    static char chunk[HAULIER_CHUNK_BYTES], whole[BYTES];
    static uint8_t values[CHUNKS * 32];
    uint64_t id;
    uint32_t handle, i, provided = 0;
    haulier_wanted_chunk wanted;
    haulier_event event;
    haulier_block *block;
    haulier_client *client = join(server, NULL, &id);

    for (i = 0; i < CHUNKS; i++) {
        uint64_t begin = (uint64_t)i * HAULIER_CHUNK_BYTES;
        size_t count = BYTES - begin < HAULIER_CHUNK_BYTES ? BYTES - begin : HAULIER_CHUNK_BYTES;
        read_file(chunk, begin, count);
        CHECK(haulier_chunk_value(BYTES, i, chunk, count, values + 32 * i) == HAULIER_OK);
    }
    CHECK(haulier_block_from_values(5, BYTES, values, CHUNKS, &block) == HAULIER_OK);
    CHECK(haulier_server_send_block(server, id, block, &handle) == HAULIER_OK);
    CHECK(haulier_server_provide_chunk(server, id, handle, 0, chunk, 1) == HAULIER_ERROR_USAGE);
    CHECK(haulier_server_provide_chunk(server, id, handle + 1, 0, chunk, 1) == HAULIER_NOTHING);
    while (provided < CHUNKS) {
        event = hear(server, HAULIER_EVENT_CHUNKS_WANTED);
        CHECK(event.connection == id && event.data == NULL);
        haulier_event_free(&event);
        CHECK(event.kind == HAULIER_EVENT_NONE);
        while (haulier_server_want_chunk(server, id, &wanted) == HAULIER_OK) {
            CHECK(wanted.tag == 5 && wanted.handle == handle);
            CHECK(wanted.offset_bytes == (uint64_t)wanted.index * HAULIER_CHUNK_BYTES);
            read_file(chunk, wanted.offset_bytes, wanted.length_bytes);
            CHECK(haulier_block_is_chunk(block, wanted.index, chunk, wanted.length_bytes));
            CHECK(haulier_server_provide_chunk(server, id, handle, wanted.index, chunk,
                                               wanted.length_bytes - 1)
                  == HAULIER_ERROR_USAGE);
            CHECK(haulier_server_provide_chunk(server, id, handle, wanted.index, chunk,
                                               wanted.length_bytes)
                  == HAULIER_OK);
            memset(chunk, 0, sizeof chunk); /* it was copied */
            if (provided++ == 0) { /* The others are not there yet, so progress has to come. */
                event = hear_client(client, HAULIER_EVENT_BLOCK_PROGRESS);
                CHECK(event.tag == 5 && event.length_bytes == BYTES);
                CHECK(0 < event.received_bytes && event.received_bytes <= HAULIER_CHUNK_BYTES);
                haulier_event_free(&event);
            }
        }
    }
    haulier_block_free(block);
    event = hear_client(client, HAULIER_EVENT_BLOCK);
    read_file(whole, 0, BYTES);
    CHECK(event.tag == 5 && event.data_bytes == BYTES && memcmp(event.data, whole, BYTES) == 0);
    haulier_event_free(&event);
    event = hear(server, HAULIER_EVENT_BLOCK_SENT);
    CHECK(event.handle == handle);
    haulier_event_free(&event);

    /* Upwards, one chunk; a file that cannot be read is given up. */
    read_file(chunk, 0, 1000);
    CHECK(haulier_chunk_value(1000, 0, chunk, 1000, values) == HAULIER_OK);
    CHECK(haulier_block_from_values(6, 1000, values, 1, &block) == HAULIER_OK);
    CHECK(haulier_client_send_block(client, block, &handle) == HAULIER_OK);
    event = hear_client(client, HAULIER_EVENT_CHUNKS_WANTED);
    haulier_event_free(&event);
    CHECK(haulier_client_want_chunk(client, &wanted) == HAULIER_OK && wanted.length_bytes == 1000);
    CHECK(haulier_client_want_chunk(client, &wanted) == HAULIER_NOTHING);
    CHECK(haulier_client_provide_chunk(client, handle, 0, chunk, 1000) == HAULIER_OK);
    CHECK(haulier_client_provide_chunk(client, handle, 0, chunk, 1000) != HAULIER_OK);
    event = hear(server, HAULIER_EVENT_BLOCK);
    CHECK(event.tag == 6 && event.data_bytes == 1000 && memcmp(event.data, chunk, 1000) == 0);
    haulier_event_free(&event);
    CHECK(haulier_client_send_block(client, block, &handle) == HAULIER_OK);
    event = hear_client(client, HAULIER_EVENT_CHUNKS_WANTED);
    haulier_event_free(&event);
    CHECK(haulier_client_cancel_block(client, handle, 9) == HAULIER_OK);
    CHECK(haulier_client_provide_chunk(client, handle, 0, chunk, 1000) == HAULIER_NOTHING);
    haulier_block_free(block);
    haulier_client_free(client);
}

/* Whether a file has these words. */
static int has_words(const char *path, const char *words) {
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t count;
    CHECK(file != NULL);
    count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[count] = 0;
    return strstr(text + 1, words) != NULL; /* the first byte separates records */
}

/* What a connection did is in files afterwards. */
static void test_traces(const char *directory) {
    char qlog[512], keys[512], address[HAULIER_TEXT_BYTES];
    haulier_server *server = bind_server();
    haulier_client_settings settings;
    haulier_client *client;
    haulier_event event;
    snprintf(qlog, sizeof qlog, "%s/trace.sqlog", directory);
    snprintf(keys, sizeof keys, "%s/trace.keys", directory);
    remove(keys);
    CHECK(haulier_server_local_address(server, address, sizeof address) == HAULIER_OK);
    CHECK(haulier_client_settings_init(&settings, sizeof settings) == HAULIER_OK);
    settings.qlog_path = qlog;
    settings.key_log_path = keys;
    CHECK(haulier_client_connect_to(address, PROTOCOL_ID, &secret, NULL, &settings, &client)
          == HAULIER_OK);
    event = hear_client(client, HAULIER_EVENT_CONNECTED);
    haulier_event_free(&event);
    CHECK(haulier_client_finish(client, PATIENCE_MS) == HAULIER_OK);
    haulier_client_free(client);
    haulier_server_free(server);
    CHECK(has_words(qlog, "\"client\"") && has_words(qlog, "transport:packet_sent"));
    CHECK(has_words(keys, "CLIENT "));
    remove(qlog);
    remove(keys);
}

/* Messages and packets, with what becomes of them. */
static void test_messages(haulier_server *server) {
    uint64_t id, number, sequence;
    haulier_connection_stats stats;
    haulier_server_counters counters;
    haulier_event event;
    size_t count;
    uint64_t connections[8];
    char text[HAULIER_TEXT_BYTES];
    haulier_client *client = join(server, NULL, &id);

    CHECK(haulier_client_send_message(client, "hello", 5) == HAULIER_OK);
    event = hear(server, HAULIER_EVENT_MESSAGE);
    CHECK(event.connection == id && event.channel == 0 && is(&event, "hello"));
    haulier_event_free(&event);
    CHECK(haulier_server_send_message_on(server, id, 3, HAULIER_UNORDERED, "", 0, &number)
          == HAULIER_OK);
    event = hear_client(client, HAULIER_EVENT_MESSAGE);
    CHECK(event.channel == 3 && event.data_bytes == 0 && event.data == NULL);
    haulier_event_free(&event);
    event = hear(server, HAULIER_EVENT_MESSAGE_ACKED);
    CHECK(event.channel == 3 && event.number == number);
    haulier_event_free(&event);
    /* The server has said that it takes four channels. */
    CHECK(haulier_client_send_message_on(client, 4, HAULIER_ORDERED, "x", 1, NULL)
          == HAULIER_ERROR_USAGE);

    CHECK(haulier_client_send_packet(client, "input", 5, &sequence) == HAULIER_OK);
    event = hear(server, HAULIER_EVENT_PACKET);
    CHECK(event.number == sequence && is(&event, "input"));
    haulier_event_free(&event);
    event = hear_client(client, HAULIER_EVENT_PACKET_ACKED);
    CHECK(event.number == sequence);
    haulier_event_free(&event);

    CHECK(haulier_client_stats(client, &stats, sizeof stats) == HAULIER_OK);
    CHECK(stats.struct_size == sizeof stats && stats.is_encrypted && stats.rtt_us > 0);
    CHECK(haulier_server_connection_stats(server, id, &stats, sizeof stats) == HAULIER_OK);
    CHECK(haulier_server_stats(server, &counters, sizeof counters) == HAULIER_OK);
    CHECK(counters.connections >= 1 && counters.accepted >= 1);
    CHECK(haulier_server_connections(server, connections, 8, &count) == HAULIER_OK && count >= 1);
    CHECK(haulier_server_client_address(server, id, text, sizeof text) == HAULIER_OK);
    CHECK(haulier_client_state(client) == HAULIER_STATE_CONNECTED);
    CHECK(haulier_server_set_lane(server, id, HAULIER_SOURCE_CHANNEL, 1, 10, 2) == HAULIER_OK);
    CHECK(haulier_server_set_urgency(server, id, HAULIER_URGENCY_DURING_PLAY) == HAULIER_OK);
    CHECK(haulier_server_set_max_rate_bps(server, id, 1000000) == HAULIER_OK);

    /* The code and the words of the end that closes reach the other end. */
    CHECK(haulier_server_close(server, id, HAULIER_CLOSE_APPLICATION + 3, "kicked") == HAULIER_OK);
    do {
        CHECK(haulier_client_wait(client, PATIENCE_MS, &event) == HAULIER_OK);
        if (event.kind == HAULIER_EVENT_CLOSED)
            break;
        haulier_event_free(&event);
    } while (1);
    CHECK(event.result == HAULIER_ERROR_CLOSED && event.code == HAULIER_CLOSE_APPLICATION + 3);
    CHECK(is(&event, "kicked") && strstr(event.text, "kicked") != NULL);
    haulier_event_free(&event);
    CHECK(haulier_client_send_message(client, "late", 4) == HAULIER_ERROR_NOT_OPEN);
    CHECK(haulier_client_poll(client, &event) == HAULIER_NOTHING);
    CHECK(event.kind == HAULIER_EVENT_NONE);
    haulier_client_free(client);
}

/* A matchmaker's token says who it is, and is good once. */
static void test_tokens(haulier_server *server) {
    char address[HAULIER_TEXT_BYTES], token[HAULIER_TEXT_BYTES];
    const char *addresses[1];
    uint8_t public_key[32];
    haulier_token_claims claims;
    haulier_client *client;
    haulier_event event;
    addresses[0] = address;
    CHECK(haulier_server_local_address(server, address, sizeof address) == HAULIER_OK);
    CHECK(haulier_identity_public(&identity, public_key) == HAULIER_OK);
    CHECK(haulier_token_claims_init(&claims, sizeof claims) == HAULIER_OK);
    claims.issued_unix_s = 1800000000;
    claims.expiry_unix_s = 4000000000;
    claims.client_id = 42;
    claims.servers = addresses;
    claims.server_count = 1;
    claims.user_data = "red team";
    claims.user_data_bytes = strlen("red team");
    claims.max_rate_bps = 8000000;
    claims.server_identity = public_key;
    CHECK(haulier_token_issue(&token_key, PROTOCOL_ID, &claims, token, sizeof token) == HAULIER_OK);
    CHECK(haulier_client_connect(token, NULL, &client) == HAULIER_OK);
    event = hear(server, HAULIER_EVENT_CONNECTING);
    CHECK(event.has_token && event.client_id == 42 && event.max_rate_bps == 8000000);
    CHECK(event.user_data_bytes == 8 && memcmp(event.user_data, "red team", 8) == 0);
    haulier_event_free(&event);
    event = hear_client(client, HAULIER_EVENT_CONNECTED);
    haulier_event_free(&event);
    CHECK(haulier_client_finish(client, PATIENCE_MS) == HAULIER_OK);
    haulier_client_free(client);

    CHECK(haulier_client_connect(token, NULL, &client) == HAULIER_OK);
    do {
        haulier_event_free(&event);
        CHECK(haulier_client_wait(client, PATIENCE_MS, &event) == HAULIER_OK);
    } while (event.kind != HAULIER_EVENT_CLOSED);
    CHECK(event.result == HAULIER_ERROR_REFUSED && event.code == HAULIER_REFUSAL_TOKEN_USED);
    haulier_event_free(&event);
    haulier_client_free(client);
}

/* By address, with the secret; and where nobody listens. */
static void test_addresses(haulier_server *server) {
    char address[HAULIER_TEXT_BYTES];
    uint8_t public_key[32];
    haulier_client *client;
    haulier_event event;
    CHECK(haulier_server_local_address(server, address, sizeof address) == HAULIER_OK);
    CHECK(haulier_identity_public(&identity, public_key) == HAULIER_OK);
    CHECK(haulier_client_connect_to(address, PROTOCOL_ID, NULL, public_key, NULL, &client)
          == HAULIER_ERROR_USAGE);
    CHECK(haulier_client_connect_to(address, PROTOCOL_ID, &secret, public_key, NULL, &client)
          == HAULIER_OK);
    event = hear_client(client, HAULIER_EVENT_CONNECTED);
    haulier_event_free(&event);
    CHECK(haulier_client_rebind(client) == HAULIER_OK);
    haulier_client_free(client);

    CHECK(haulier_client_connect_to("127.0.0.1:1", PROTOCOL_ID, NULL, NULL, NULL, &client)
          == HAULIER_OK);
    CHECK(haulier_client_wait(client, PATIENCE_MS, &event) == HAULIER_OK);
    CHECK(event.kind == HAULIER_EVENT_CLOSED && event.result == HAULIER_ERROR_UNREACHABLE);
    CHECK(strcmp(haulier_result_name(event.result), "unreachable") == 0);
    CHECK(strlen(event.text) > 0); /* its end is in the event's memory */
    haulier_event_free(&event);
    haulier_client_free(client);
}

static void *wake(void *server) {
    CHECK(haulier_server_wake((const haulier_server *)server) == HAULIER_OK);
    return NULL;
}

/* Another thread ends a wait, which would take seven weeks. */
static void test_waking(void) {
    pthread_t thread;
    haulier_event event;
    haulier_server *server = bind_server();
    CHECK(pthread_create(&thread, NULL, wake, server) == 0);
    CHECK(haulier_server_wait(server, 0xffffffff, &event) == HAULIER_NOTHING);
    CHECK(pthread_join(thread, NULL) == 0);
    haulier_server_free(server);
}

/* Without threads of the library's, all happens in poll. */
static void test_inline(void) {
    haulier_server_settings settings;
    haulier_client_settings client_settings;
    haulier_server *server;
    haulier_client *client;
    haulier_event event;
    char address[HAULIER_TEXT_BYTES];
    int is_connected = 0;
    CHECK(haulier_server_settings_init(&settings, sizeof settings) == HAULIER_OK);
    CHECK(haulier_client_settings_init(&client_settings, sizeof client_settings) == HAULIER_OK);
    settings.is_open = 1;
    settings.drive = HAULIER_DRIVE_INLINE;
    client_settings.drive = HAULIER_DRIVE_INLINE;
    CHECK(haulier_server_bind("127.0.0.1:0", 1, &settings, &server) == HAULIER_OK);
    CHECK(haulier_server_local_address(server, address, sizeof address) == HAULIER_OK);
    CHECK(haulier_client_connect_to(address, 1, NULL, NULL, &client_settings, &client)
          == HAULIER_OK);
    while (!is_connected) {
        while (haulier_server_poll(server, &event) == HAULIER_OK)
            haulier_event_free(&event);
        while (haulier_client_wait(client, 1, &event) == HAULIER_OK) {
            is_connected |= event.kind == HAULIER_EVENT_CONNECTED;
            CHECK(event.kind != HAULIER_EVENT_CLOSED);
            haulier_event_free(&event);
        }
    }
    haulier_client_free(client);
    haulier_server_free(server);
}

int main(int count, char **arguments) {
    haulier_server *server;
    CHECK(count == 2); /* a directory for files */
    CHECK(haulier_check_abi(HAULIER_ABI_VERSION) == HAULIER_OK);
    CHECK(haulier_check_abi(HAULIER_ABI_VERSION + 1) == HAULIER_ERROR_USAGE);
    CHECK(haulier_secret_random(&secret) == HAULIER_OK);
    CHECK(haulier_secret_random(&identity) == HAULIER_OK);
    CHECK(haulier_secret_random(&token_key.key) == HAULIER_OK);
    CHECK(memcmp(&secret, &identity, sizeof secret) != 0);
    token_key.id = 1;
    server = bind_server();
    test_messages(server);
    haulier_server_free(server);
    server = bind_server();
    test_blocks(server);
    haulier_server_free(server);
    test_first_block();
    server = bind_server();
    test_chunks(server);
    haulier_server_free(server);
    server = bind_server();
    test_sources(server);
    haulier_server_free(server);
    test_traces(arguments[1]);
    server = bind_server();
    test_tokens(server);
    haulier_server_free(server);
    server = bind_server();
    test_addresses(server);
    CHECK(haulier_server_finish(server, PATIENCE_MS) == HAULIER_OK);
    CHECK(haulier_server_is_shut_down(server));
    haulier_server_free(server);
    test_waking();
    test_inline();
    haulier_secret_wipe(&secret);
    CHECK(secret.bytes[0] == 0 && secret.bytes[31] == 0);
    puts("the C interface: all as it should be");
    return 0;
}
