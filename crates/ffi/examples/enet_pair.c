/* A server and a client of the shim in one process: what docs/ENET.md promises, tried. */

#include "haulier_enet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(is_so) \
    do { \
        if (!(is_so)) { \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #is_so, \
                    haulier_last_error()); \
            exit(1); \
        } \
    } while (0)

enum { WORLD_BYTES = 1000000, PATIENCE_MS = 20000 };

static HNetEvent hear(HNetHost *host, HNetEventType type) {
    HNetEvent event;
    CHECK(hnet_host_service(host, &event, PATIENCE_MS) == 1);
    CHECK(event.type == type);
    return event;
}

static void say(HNetPeer *peer, uint8_t channel, const char *text, uint32_t flags) {
    HNetPacket *packet = hnet_packet_create(text, strlen(text), flags);
    CHECK(packet && hnet_peer_send(peer, channel, packet) == 0);
}

/* The next packet is this one, on this channel. */
static void expect(HNetHost *host, uint8_t channel, const char *text) {
    HNetEvent event = hear(host, HNET_EVENT_TYPE_RECEIVE);
    CHECK(event.channelID == channel && event.packet->dataLength == strlen(text));
    CHECK(memcmp(event.packet->data, text, strlen(text)) == 0);
    hnet_packet_destroy(event.packet);
}

static void play(HNetHost *server, HNetHost *client, HNetPeer *to_client, HNetPeer *to_server) {
    HNetEvent event;
    HNetPacket *world = hnet_packet_create(NULL, WORLD_BYTES, HNET_PACKET_FLAG_RELIABLE);
    HNetPacket *twice = hnet_packet_create("all", 3, HNET_PACKET_FLAG_RELIABLE);
    CHECK(world && twice);
    memset(world->data, 'w', WORLD_BYTES);
    CHECK(hnet_peer_send(to_client, 2, world) == 0);
    event = hear(client, HNET_EVENT_TYPE_RECEIVE);
    CHECK(event.channelID == 2 && event.packet->dataLength == WORLD_BYTES);
    CHECK(event.packet->data[WORLD_BYTES - 1] == 'w');
    hnet_packet_destroy(event.packet);

    say(to_server, 0, "first", HNET_PACKET_FLAG_RELIABLE);
    say(to_server, 0, "second", HNET_PACKET_FLAG_RELIABLE);
    expect(server, 0, "first");
    expect(server, 0, "second");
    say(to_server, 1, "input", 0);
    expect(server, 1, "input");
    say(to_client, 3, "loose", HNET_PACKET_FLAG_UNSEQUENCED);
    expect(client, 3, "loose");

    twice->referenceCount = 1; /* so that it may be sent again */
    hnet_host_broadcast(server, 0, twice);
    hnet_host_broadcast(server, 0, twice);
    hnet_packet_destroy(twice);
    expect(client, 0, "all");
    expect(client, 0, "all");
}

/* What was sent before arrives before the end, however long it takes: here a second, at this rate. */
static void last_words(HNetHost *server, HNetHost *client, HNetPeer *to_client) {
    HNetEvent event;
    HNetPacket *packet = hnet_packet_create("farewell", 8, HNET_PACKET_FLAG_RELIABLE);
    CHECK(packet && hnet_packet_resize(packet, 300000) == 0 && packet->dataLength == 300000);
    hnet_host_bandwidth_limit(server, 0, 300000);
    CHECK(hnet_peer_send(to_client, 0, packet) == 0);
    hnet_peer_disconnect_later(to_client, 11);
    CHECK(to_client->state == HNET_PEER_STATE_DISCONNECT_LATER);
    CHECK(hnet_host_service(server, &event, PATIENCE_MS) == 1);
    CHECK(event.type == HNET_EVENT_TYPE_DISCONNECT && event.peer == to_client);
    hnet_host_bandwidth_limit(server, 0, 0);
    event = hear(client, HNET_EVENT_TYPE_RECEIVE);
    CHECK(event.packet->dataLength == 300000 && memcmp(event.packet->data, "farewell", 8) == 0);
    CHECK(hnet_packet_resize(event.packet, 8) == 0 && hnet_packet_resize(event.packet, 9) == -1);
    hnet_packet_destroy(event.packet);
    event = hear(client, HNET_EVENT_TYPE_DISCONNECT);
    CHECK(event.data == 11);
}

static void join(const haulier_secret *secret) {
    HNetAddress address;
    HNetEvent event;
    HNetHost *server, *client;
    HNetPeer *to_server, *to_client;
    int player = 7;
    char ip[64];

    CHECK(hnet_address_set_host(&address, "127.0.0.1") == 0);
    address.port = HNET_PORT_ANY;
    server = hnet_host_create_secure(&address, 4, 5, 0, 0, secret);
    client = hnet_host_create_secure(NULL, 2, 5, 0, 0, secret);
    CHECK(server && client);
    address.port = hnet_host_port(server);
    to_server = hnet_host_connect(client, &address, 5, 42);
    CHECK(to_server != NULL);
    event = hear(client, HNET_EVENT_TYPE_CONNECT);
    CHECK(event.peer == to_server);
    event = hear(server, HNET_EVENT_TYPE_CONNECT);
    CHECK(event.data == 42 && strcmp(event.peer->address.host, "127.0.0.1") == 0);
    to_client = event.peer;
    to_client->data = &player;

    play(server, client, to_client, to_server);

    CHECK(&server->peers[to_client - server->peers] == to_client);
    CHECK(hnet_address_get_host_ip(&to_client->address, ip, sizeof ip) == 0);
    CHECK(strcmp(ip, "127.0.0.1") == 0 && hnet_address_get_host_ip(&address, ip, 3) == -1);
    CHECK(hnet_host_service(client, NULL, 0) == 0);
    hnet_peer_ping(to_server);
    hnet_host_channel_limit(client, 3);
    CHECK(client->channelLimit == 3);
    last_words(server, client, to_client);

    CHECK(hnet_address_set_host_ip(&address, "127.0.0.1") == 0);
    to_server = hnet_host_connect(client, &address, 5, 43);
    event = hear(client, HNET_EVENT_TYPE_CONNECT);
    event = hear(server, HNET_EVENT_TYPE_CONNECT);
    CHECK(event.data == 43);
    event.peer->data = &player;
    hnet_peer_disconnect(to_server, 9);
    event = hear(server, HNET_EVENT_TYPE_DISCONNECT);
    CHECK(event.data == 9 && event.peer->data == &player);
    event = hear(client, HNET_EVENT_TYPE_DISCONNECT);
    CHECK(event.peer == to_server);
    CHECK(hnet_host_check_events(client, &event) == 0);
    hnet_host_destroy(client);
    hnet_host_destroy(server);
}

int main(void) {
    haulier_secret secret;
    CHECK(hnet_initialize() == 0);
    CHECK(haulier_secret_random(&secret) == HAULIER_OK);
    join(NULL);
    join(&secret);
    hnet_deinitialize();
    puts("the ENet shapes: all as they should be");
    return 0;
}
