/* haulier_enet.h, in terms of haulier.h.
 *
 * | ENet                        | haulier                                                       |
 * | reliable, up to 64 KiB      | an ordered message on its channel                             |
 * | reliable, larger            | a block, whose tag is the channel                             |
 * | unreliable, unsequenced     | a packet, after two bytes: channel, and whether it is sequenced |
 * | the data of a connect       | the request                                                   |
 * | the data of a disconnect    | the code, from HAULIER_CLOSE_APPLICATION on                   |
 */

#define _POSIX_C_SOURCE 199309L

#include "haulier_enet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Both ends have it; games that should not meet have different ones. */
#define PROTOCOL_ID 0x656e6574
#define HEAD_BYTES 2
#define MESSAGE_BYTES 65536
/* How long a host with several connections of its own waits for one before it looks at the others, in ms. */
#define TURN_MS 1

int hnet_initialize(void) {
    return haulier_check_abi(HAULIER_ABI_VERSION) == HAULIER_OK ? 0 : -1;
}

void hnet_deinitialize(void) {}

int hnet_address_set_host(HNetAddress *address, const char *name) {
    if (strlen(name) >= sizeof address->host)
        return -1;
    strcpy(address->host, name);
    return 0;
}

int hnet_address_set_host_ip(HNetAddress *address, const char *ip) {
    return hnet_address_set_host(address, ip);
}

int hnet_address_get_host_ip(const HNetAddress *address, char *ip, size_t bytes) {
    if (strlen(address->host) >= bytes)
        return -1;
    strcpy(ip, address->host);
    return 0;
}

/* "HOST:PORT"; an IPv6 address goes in brackets. */
static void address_text(const HNetAddress *address, char *text, size_t bytes) {
    const char *host = address->host[0] ? address->host : "0.0.0.0";
    int is_v6 = strchr(host, ':') != NULL;
    snprintf(text, bytes, is_v6 ? "[%s]:%u" : "%s:%u", host, (unsigned)address->port);
}

static uint64_t rate_of(uint32_t bandwidth) {
    return bandwidth ? 8 * (uint64_t)bandwidth : UINT64_MAX;
}

static size_t channels_of(size_t limit) {
    return limit && limit < HNET_CHANNELS ? limit : HNET_CHANNELS;
}

static void settings_of(const HNetHost *host, haulier_connection_settings *settings) {
    haulier_connection_settings_init(settings, sizeof *settings);
    settings->max_channels = (uint32_t)host->channelLimit;
    settings->max_rate_bps = host->max_rate_bps;
}

HNetHost *hnet_host_create(const HNetAddress *address, size_t peerCount, size_t channelLimit,
                           uint32_t incomingBandwidth, uint32_t outgoingBandwidth) {
    return hnet_host_create_secure(address, peerCount, channelLimit, incomingBandwidth,
                                   outgoingBandwidth, NULL);
}

HNetHost *hnet_host_create_secure(const HNetAddress *address, size_t peerCount,
                                  size_t channelLimit, uint32_t incomingBandwidth,
                                  uint32_t outgoingBandwidth, const haulier_secret *secret) {
    char text[300];
    haulier_connection_settings connection;
    haulier_server_settings settings;
    HNetHost *host = (HNetHost *)calloc(1, sizeof *host);
    (void)incomingBandwidth;
    if (!host || !(host->peers = (HNetPeer *)calloc(peerCount, sizeof *host->peers))) {
        free(host);
        return NULL;
    }
    host->peerCount = peerCount;
    host->channelLimit = channels_of(channelLimit);
    host->max_rate_bps = rate_of(outgoingBandwidth);
    host->is_secure = secret != NULL;
    if (secret)
        host->secret = *secret;
    if (!address)
        return host;
    settings_of(host, &connection);
    haulier_server_settings_init(&settings, sizeof settings);
    settings.connection = &connection;
    settings.secret = secret;
    settings.is_open = !secret;
    settings.max_connections = (uint32_t)peerCount;
    settings.max_in_line = 0;
    if (outgoingBandwidth)
        settings.max_uplink_bps = host->max_rate_bps;
    address_text(address, text, sizeof text);
    if (haulier_server_bind(text, PROTOCOL_ID, &settings, &host->server)) {
        hnet_host_destroy(host);
        return NULL;
    }
    return host;
}

static void forget(HNetPeer *peer) {
    HNetHost *host = peer->host;
    haulier_client_free(peer->client);
    memset(peer, 0, sizeof *peer);
    peer->host = host;
}

void hnet_host_destroy(HNetHost *host) {
    size_t i;
    if (!host)
        return;
    for (i = 0; i < host->peerCount; i++)
        forget(&host->peers[i]);
    if (host->server)
        haulier_server_finish(host->server, 1000);
    haulier_server_free(host->server);
    haulier_secret_wipe(&host->secret);
    free(host->peers);
    free(host);
}

/* A place for a new peer; null if all are taken. */
static HNetPeer *new_peer(HNetHost *host) {
    size_t i;
    for (i = 0; i < host->peerCount; i++) {
        HNetPeer *peer = &host->peers[i];
        if (peer->state == HNET_PEER_STATE_DISCONNECTED) {
            memset(peer, 0, sizeof *peer);
            peer->host = host;
            peer->state = HNET_PEER_STATE_CONNECTING;
            return peer;
        }
    }
    return NULL;
}

HNetPeer *hnet_host_connect(HNetHost *host, const HNetAddress *address, size_t channelCount,
                            uint32_t data) {
    char text[300];
    uint8_t request[4];
    haulier_connection_settings connection;
    haulier_client_settings settings;
    HNetPeer *peer = host->server ? NULL : new_peer(host);
    int i;
    (void)channelCount; /* the host's limit holds */
    if (!peer)
        return NULL;
    for (i = 0; i < 4; i++)
        request[i] = (uint8_t)(data >> 8 * i);
    settings_of(host, &connection);
    haulier_client_settings_init(&settings, sizeof settings);
    settings.connection = &connection;
    settings.request = request;
    settings.request_bytes = sizeof request;
    address_text(address, text, sizeof text);
    if (haulier_client_connect_to(text, PROTOCOL_ID, host->is_secure ? &host->secret : NULL, NULL,
                                  &settings, &peer->client)) {
        forget(peer);
        return NULL;
    }
    peer->address = *address;
    return peer;
}

HNetPacket *hnet_packet_create(const void *data, size_t dataLength, uint32_t flags) {
    HNetPacket *packet = (HNetPacket *)calloc(1, sizeof *packet);
    if (!packet || !(packet->data = (uint8_t *)malloc(HEAD_BYTES + dataLength))) {
        free(packet);
        return NULL;
    }
    packet->data += HEAD_BYTES; /* before it there is room for what an unreliable one begins with */
    packet->dataLength = dataLength;
    packet->flags = flags;
    if (data && dataLength)
        memcpy(packet->data, data, dataLength);
    return packet;
}

int hnet_packet_resize(HNetPacket *packet, size_t dataLength) {
    uint8_t *data;
    if (packet->received.kind != HAULIER_EVENT_NONE) /* to be read only; it can become shorter */
        return dataLength <= packet->dataLength ? (packet->dataLength = dataLength, 0) : -1;
    data = (uint8_t *)realloc(packet->data - HEAD_BYTES, HEAD_BYTES + dataLength);
    if (!data)
        return -1;
    packet->data = data + HEAD_BYTES;
    packet->dataLength = dataLength;
    return 0;
}

void hnet_packet_destroy(HNetPacket *packet) {
    if (!packet)
        return;
    if (packet->received.kind == HAULIER_EVENT_NONE)
        free(packet->data - HEAD_BYTES);
    haulier_event_free(&packet->received);
    free(packet);
}

/* The packet of an event, whose bytes are not copied: the event is its from here on. */
static HNetPacket *received(haulier_event *event, size_t skipped, uint32_t flags) {
    HNetPacket *packet = (HNetPacket *)calloc(1, sizeof *packet);
    if (!packet)
        return NULL;
    packet->received = *event;
    memset(event, 0, sizeof *event);
    packet->data = (uint8_t *)(uintptr_t)packet->received.data + skipped;
    packet->dataLength = packet->received.data_bytes - skipped;
    packet->flags = flags;
    return packet;
}

static haulier_result send_block(HNetPeer *peer, uint8_t channelID, const HNetPacket *packet) {
    haulier_block *block;
    haulier_result result = haulier_block_new(channelID, packet->data, packet->dataLength, &block);
    if (result)
        return result;
    result = peer->client ? haulier_client_send_block(peer->client, block, NULL)
                          : haulier_server_send_block(peer->host->server, peer->connection, block,
                                                      NULL);
    haulier_block_free(block);
    return result;
}

static haulier_result send_message(HNetPeer *peer, uint8_t channelID, const HNetPacket *packet) {
    if (peer->client)
        return haulier_client_send_message_on(peer->client, channelID, HAULIER_ORDERED,
                                              packet->data, packet->dataLength, NULL);
    return haulier_server_send_message_on(peer->host->server, peer->connection, channelID,
                                          HAULIER_ORDERED, packet->data, packet->dataLength, NULL);
}

static haulier_result send_packet(HNetPeer *peer, uint8_t channelID, const HNetPacket *packet) {
    uint8_t *whole = packet->data - HEAD_BYTES;
    size_t bytes = packet->dataLength + HEAD_BYTES;
    whole[0] = channelID;
    whole[1] = !(packet->flags & HNET_PACKET_FLAG_UNSEQUENCED);
    return peer->client
               ? haulier_client_send_packet(peer->client, whole, bytes, NULL)
               : haulier_server_send_packet(peer->host->server, peer->connection, whole, bytes, NULL);
}

static int send_to(HNetPeer *peer, uint8_t channelID, const HNetPacket *packet) {
    haulier_result result;
    /* A received packet has no room before its bytes: make one of your own to send them on. */
    if (peer->state != HNET_PEER_STATE_CONNECTED || packet->received.kind != HAULIER_EVENT_NONE)
        return -1;
    if (!(packet->flags & HNET_PACKET_FLAG_RELIABLE))
        result = send_packet(peer, channelID, packet);
    else if (packet->dataLength > MESSAGE_BYTES)
        result = send_block(peer, channelID, packet);
    else
        result = send_message(peer, channelID, packet);
    return result == HAULIER_OK ? 0 : -1;
}

int hnet_peer_send(HNetPeer *peer, uint8_t channelID, HNetPacket *packet) {
    if (send_to(peer, channelID, packet))
        return -1;
    if (packet->referenceCount == 0)
        hnet_packet_destroy(packet);
    return 0;
}

void hnet_host_broadcast(HNetHost *host, uint8_t channelID, HNetPacket *packet) {
    size_t i;
    for (i = 0; i < host->peerCount; i++)
        if (host->peers[i].state == HNET_PEER_STATE_CONNECTED)
            send_to(&host->peers[i], channelID, packet);
    if (packet->referenceCount == 0)
        hnet_packet_destroy(packet);
}

void hnet_host_flush(HNetHost *host) {
    (void)host;
}

void hnet_host_bandwidth_limit(HNetHost *host, uint32_t incoming, uint32_t outgoing) {
    size_t i;
    (void)incoming;
    host->max_rate_bps = rate_of(outgoing);
    for (i = 0; i < host->peerCount; i++) {
        HNetPeer *peer = &host->peers[i];
        if (peer->client)
            haulier_client_set_max_rate_bps(peer->client, host->max_rate_bps);
        else if (peer->state != HNET_PEER_STATE_DISCONNECTED)
            haulier_server_set_max_rate_bps(host->server, peer->connection, host->max_rate_bps);
    }
}

void hnet_host_channel_limit(HNetHost *host, size_t channelLimit) {
    host->channelLimit = channels_of(channelLimit);
}

uint16_t hnet_host_port(const HNetHost *host) {
    char text[HAULIER_TEXT_BYTES];
    if (haulier_server_local_address(host->server, text, sizeof text))
        return 0;
    return (uint16_t)strtoul(strrchr(text, ':') + 1, NULL, 10);
}

void hnet_peer_disconnect(HNetPeer *peer, uint32_t data) {
    uint32_t code = HAULIER_CLOSE_APPLICATION + data;
    if (peer->state == HNET_PEER_STATE_DISCONNECTED)
        return;
    if (code < HAULIER_CLOSE_APPLICATION) /* the highest 256 numbers do not fit */
        code = UINT32_MAX;
    peer->state = HNET_PEER_STATE_DISCONNECTING;
    if (peer->client)
        haulier_client_close(peer->client, code, NULL);
    else
        haulier_server_close(peer->host->server, peer->connection, code, NULL);
}

void hnet_peer_disconnect_later(HNetPeer *peer, uint32_t data) {
    if (peer->state != HNET_PEER_STATE_CONNECTED) {
        hnet_peer_disconnect(peer, data);
        return;
    }
    peer->state = HNET_PEER_STATE_DISCONNECT_LATER;
    peer->disconnectData = data;
}

/* Disconnects those of whom nothing is on its way any more. Returns whether there are others. */
static int disconnect_late(HNetHost *host) {
    size_t i;
    int are_left = 0;
    for (i = 0; i < host->peerCount; i++) {
        HNetPeer *peer = &host->peers[i];
        if (peer->state != HNET_PEER_STATE_DISCONNECT_LATER)
            continue;
        if (peer->client ? haulier_client_all_acked(peer->client)
                         : haulier_server_all_acked(host->server, peer->connection))
            hnet_peer_disconnect(peer, peer->disconnectData);
        else
            are_left = 1;
    }
    return are_left;
}

void hnet_peer_ping(HNetPeer *peer) {
    (void)peer;
}

void hnet_peer_disconnect_now(HNetPeer *peer, uint32_t data) {
    hnet_peer_disconnect(peer, data);
    hnet_peer_reset(peer);
}

void hnet_peer_reset(HNetPeer *peer) {
    if (peer->state != HNET_PEER_STATE_DISCONNECTED && !peer->client)
        haulier_server_close(peer->host->server, peer->connection, HAULIER_CLOSE_DONE, NULL);
    forget(peer);
}

static void measure(HNetPeer *peer) {
    haulier_connection_stats stats;
    haulier_result seen =
        peer->client ? haulier_client_stats(peer->client, &stats, sizeof stats)
                     : haulier_server_connection_stats(peer->host->server, peer->connection, &stats,
                                                       sizeof stats);
    if (seen == HAULIER_OK)
        peer->roundTripTime = (uint32_t)(stats.rtt_us / 1000);
}

/* What an unreliable packet is for the game; 0 if it came too late. */
static int take_packet(HNetPeer *peer, haulier_event *event, HNetEvent *to) {
    uint16_t number = (uint16_t)event->number;
    uint8_t channel;
    if (event->data_bytes < HEAD_BYTES)
        return 0;
    channel = event->data[0];
    if (event->data[1]) {
        if (peer->hasNewest[channel] && (int16_t)(number - peer->newest[channel]) <= 0)
            return 0;
        peer->newest[channel] = number;
        peer->hasNewest[channel] = 1;
    }
    to->channelID = channel;
    to->packet = received(event, HEAD_BYTES, 0);
    return to->packet != NULL;
}

/* Makes one event of the other. 0: it is nothing to the game. The event is freed, or the packet's. */
static int translate(HNetPeer *peer, haulier_event *event, HNetEvent *to) {
    int is_one = 0;
    to->peer = peer;
    switch (event->kind) {
    case HAULIER_EVENT_CONNECTED:
        peer->state = HNET_PEER_STATE_CONNECTED;
        to->type = HNET_EVENT_TYPE_CONNECT;
        to->data = peer->connectData;
        is_one = 1;
        break;
    case HAULIER_EVENT_CLOSED:
        to->type = HNET_EVENT_TYPE_DISCONNECT;
        if (event->result == HAULIER_ERROR_CLOSED && event->code >= HAULIER_CLOSE_APPLICATION)
            to->data = event->code - HAULIER_CLOSE_APPLICATION;
        /* The struct stays readable until it is used again, with the game's data. */
        haulier_client_free(peer->client);
        peer->client = NULL;
        peer->state = HNET_PEER_STATE_DISCONNECTED;
        is_one = 1;
        break;
    case HAULIER_EVENT_MESSAGE:
    case HAULIER_EVENT_BLOCK:
        to->type = HNET_EVENT_TYPE_RECEIVE;
        to->channelID =
            (uint8_t)(event->kind == HAULIER_EVENT_BLOCK ? event->tag : event->channel);
        to->packet = received(event, 0, HNET_PACKET_FLAG_RELIABLE);
        is_one = to->packet != NULL;
        break;
    case HAULIER_EVENT_PACKET:
        to->type = HNET_EVENT_TYPE_RECEIVE;
        is_one = take_packet(peer, event, to);
        break;
    default:
        break;
    }
    if (is_one && peer->state == HNET_PEER_STATE_CONNECTED)
        measure(peer);
    haulier_event_free(event);
    return is_one;
}

/* A new client has a place from its request on. */
static void enter(HNetHost *host, haulier_event *event) {
    HNetPeer *peer = new_peer(host);
    size_t i;
    char text[HAULIER_TEXT_BYTES];
    if (!peer) {
        haulier_server_close(host->server, event->connection, HAULIER_CLOSE_NOT_ACCEPTED, "full");
        return;
    }
    peer->connection = event->connection;
    haulier_server_set_max_rate_bps(host->server, event->connection, host->max_rate_bps);
    for (i = 0; i < event->data_bytes && i < 4; i++)
        peer->connectData |= (uint32_t)event->data[i] << 8 * i;
    if (!haulier_server_client_address(host->server, event->connection, text, sizeof text)) {
        char *colon = strrchr(text, ':');
        peer->address.port = (uint16_t)strtoul(colon + 1, NULL, 10);
        *colon = 0;
        hnet_address_set_host(&peer->address, text);
    }
}

static HNetPeer *peer_of(HNetHost *host, uint64_t connection) {
    size_t i;
    for (i = 0; i < host->peerCount; i++)
        if (host->peers[i].connection == connection
            && host->peers[i].state != HNET_PEER_STATE_DISCONNECTED)
            return &host->peers[i];
    return NULL;
}

/* Takes one event of the server: 1 if the game gets one, 0 if not, -1 without an event. */
static int take_from_server(HNetHost *host, HNetEvent *to, uint32_t max_ms) {
    haulier_event event;
    HNetPeer *peer;
    if (haulier_server_wait(host->server, max_ms, &event) != HAULIER_OK)
        return -1;
    peer = peer_of(host, event.connection);
    if (peer)
        return translate(peer, &event, to);
    if (event.kind == HAULIER_EVENT_CONNECTING)
        enter(host, &event);
    haulier_event_free(&event);
    return 0;
}

/* The same of the clients, in turn; they wait only if there is but one. */
static int take_from_clients(HNetHost *host, HNetEvent *to, uint32_t max_ms) {
    size_t i, live = 0;
    for (i = 0; i < host->peerCount; i++)
        live += host->peers[i].client != NULL;
    if (live > 1 && max_ms > TURN_MS)
        max_ms = TURN_MS;
    for (i = 0; i < host->peerCount; i++) {
        haulier_event event;
        HNetPeer *peer = &host->peers[i];
        if (!peer->client || haulier_client_wait(peer->client, max_ms, &event) != HAULIER_OK)
            continue;
        return translate(peer, &event, to);
    }
    return -1;
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int hnet_host_service(HNetHost *host, HNetEvent *event, uint32_t timeout) {
    uint64_t until = now_ms() + timeout;
    if (!event) /* ENet sends what waits then, and haulier has done that */
        return 0;
    for (;;) {
        int is_later = disconnect_late(host);
        uint64_t now = now_ms();
        uint32_t left = now < until ? (uint32_t)(until - now) : 0;
        uint32_t turn = is_later && left > TURN_MS ? TURN_MS : left;
        int taken;
        memset(event, 0, sizeof *event);
        taken = host->server ? take_from_server(host, event, turn)
                             : take_from_clients(host, event, turn);
        if (taken > 0)
            return 1;
        memset(event, 0, sizeof *event);
        if (taken < 0 && left == 0)
            return 0;
    }
}

int hnet_host_check_events(HNetHost *host, HNetEvent *event) {
    return hnet_host_service(host, event, 0);
}
