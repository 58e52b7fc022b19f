/* A game that was written for ENet, over haulier: the same shapes under other names. Replace `ENet` by `HNet`,
 * `enet_` by `hnet_`, `ENET_` by `HNET_`, and include this; docs/ENET.md has the rest. Take both files into
 * your game and change them: they are an example, and use nothing but haulier.h.
 *
 * As with ENet, a host and its peers belong to one thread. */

#ifndef HAULIER_ENET_H
#define HAULIER_ENET_H

#include <haulier.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HNET_HOST_ANY ""
#define HNET_PORT_ANY 0
#define HNET_CHANNELS 255 /* the most that a host may have */

typedef struct HNetHost HNetHost;

typedef enum HNetEventType {
    HNET_EVENT_TYPE_NONE,
    HNET_EVENT_TYPE_CONNECT,    /* peer, data */
    HNET_EVENT_TYPE_DISCONNECT, /* peer, data */
    HNET_EVENT_TYPE_RECEIVE     /* peer, channelID, packet: to be destroyed */
} HNetEventType;

typedef enum HNetPacketFlag {
    HNET_PACKET_FLAG_RELIABLE = 1,           /* arrives, in order; above 64 KiB as a block */
    HNET_PACKET_FLAG_UNSEQUENCED = 2,        /* once, and also if a newer one is there already */
    HNET_PACKET_FLAG_UNRELIABLE_FRAGMENT = 8 /* no meaning: large unreliable packets always are */
} HNetPacketFlag;

typedef enum HNetPeerState {
    HNET_PEER_STATE_DISCONNECTED,
    HNET_PEER_STATE_CONNECTING,
    HNET_PEER_STATE_CONNECTED,
    HNET_PEER_STATE_DISCONNECT_LATER,
    HNET_PEER_STATE_DISCONNECTING
} HNetPeerState;

typedef struct HNetAddress {
    char host[256]; /* a name or an address; HNET_HOST_ANY is all of this computer's */
    uint16_t port;
} HNetAddress;

typedef struct HNetPacket {
    size_t referenceCount; /* above 0 it is not destroyed when it was sent */
    uint32_t flags;
    uint8_t *data; /* of a received packet: to be read only */
    size_t dataLength;
    haulier_event received; /* keeps the bytes of a large received one */
} HNetPacket;

typedef struct HNetPeer {
    HNetHost *host;
    HNetAddress address;
    void *data; /* the game's own */
    HNetPeerState state;
    uint32_t roundTripTime; /* in ms, as of the last hnet_host_service() that had an event of it */
    uint32_t connectData;
    uint32_t disconnectData; /* of hnet_peer_disconnect_later() */
    uint64_t connection;    /* at a server */
    haulier_client *client; /* at a client */
    uint16_t newest[256];   /* of unreliable packets, by channel */
    uint8_t hasNewest[256];
} HNetPeer;

/* As with ENet, a game may go through the peers, and have peer - host->peers as a number of its players. */
struct HNetHost {
    HNetPeer *peers;
    size_t peerCount;
    size_t channelLimit;
    haulier_server *server; /* null for a host of clients */
    uint64_t max_rate_bps;
    haulier_secret secret;
    int is_secure;
};

typedef struct HNetEvent {
    HNetEventType type;
    HNetPeer *peer;
    uint8_t channelID;
    uint32_t data;
    HNetPacket *packet;
} HNetEvent;

/* Whether library and header fit: 0, or -1. */
int hnet_initialize(void);
void hnet_deinitialize(void);
int hnet_address_set_host(HNetAddress *address, const char *name);
int hnet_address_set_host_ip(HNetAddress *address, const char *ip); /* the same */
int hnet_address_get_host_ip(const HNetAddress *address, char *ip, size_t bytes);

/* With an address it is a server, without one for clients. The bandwidths are bytes per second; 0 is no limit.
 * The incoming one has no meaning: senders find out what a link has. */
HNetHost *hnet_host_create(const HNetAddress *address, size_t peerCount, size_t channelLimit,
                           uint32_t incomingBandwidth, uint32_t outgoingBandwidth);
/* The same, encrypted: for whoever has the secret. ENet has nothing like it. */
HNetHost *hnet_host_create_secure(const HNetAddress *address, size_t peerCount,
                                  size_t channelLimit, uint32_t incomingBandwidth,
                                  uint32_t outgoingBandwidth, const haulier_secret *secret);
void hnet_host_destroy(HNetHost *host);
HNetPeer *hnet_host_connect(HNetHost *host, const HNetAddress *address, size_t channelCount,
                            uint32_t data);
/* 1 with an event, 0 without one after timeout ms or with event null, -1 if it does not work any more. */
int hnet_host_service(HNetHost *host, HNetEvent *event, uint32_t timeout);
int hnet_host_check_events(HNetHost *host, HNetEvent *event);
void hnet_host_broadcast(HNetHost *host, uint8_t channelID, HNetPacket *packet);
void hnet_host_flush(HNetHost *host); /* nothing: what is sent goes at once */
/* Bytes per second, for connections there are and for later ones; 0 is no limit. */
void hnet_host_bandwidth_limit(HNetHost *host, uint32_t incoming, uint32_t outgoing);
/* For connections that this host begins from now on; that of a server is the one it was created with. */
void hnet_host_channel_limit(HNetHost *host, size_t channelLimit);
/* The port that a server has, also if the system chose it. */
uint16_t hnet_host_port(const HNetHost *host);

/* 0: the packet was taken, and destroyed; -1: it is still the caller's. */
int hnet_peer_send(HNetPeer *peer, uint8_t channelID, HNetPacket *packet);
void hnet_peer_disconnect(HNetPeer *peer, uint32_t data);
void hnet_peer_disconnect_now(HNetPeer *peer, uint32_t data); /* no event */
/* When all reliable packets have arrived: hnet_host_service() sees to it. */
void hnet_peer_disconnect_later(HNetPeer *peer, uint32_t data);
void hnet_peer_reset(HNetPeer *peer);                         /* no event */
void hnet_peer_ping(HNetPeer *peer); /* nothing: connections keep themselves alive */

HNetPacket *hnet_packet_create(const void *data, size_t dataLength, uint32_t flags);
int hnet_packet_resize(HNetPacket *packet, size_t dataLength); /* 0, or -1 and it is as before */
void hnet_packet_destroy(HNetPacket *packet);

#ifdef __cplusplus
}
#endif

#endif
