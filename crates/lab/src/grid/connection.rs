//! The machines of haulier/1: a server that sends a block to every client, and a client.
//!
//! Both have the default configuration. Their invariants are checked by the soaks and not here, where every
//! run is one of ten thousand.

use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_proto::credentials::{Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::server::{ServerConfig, ServerCredentials};
use haulier_sim::hosts::{Keyed, PROTOCOL_ID, UNIX_TIME, configs};
use haulier_sim::{Rng, World};

use crate::ends::{Haulier, Homes, Reading, addresses};

pub(crate) type Configs = (ServerConfig, ClientConfig);

/// With a shared secret: the amplification limit applies until the client's address is validated.
pub(crate) fn by_secret() -> Configs {
    configs(Keyed::Secret, ConnectionConfig::default())
}

/// With a token that has the client's address: the server may send at once.
pub(crate) fn by_token() -> Configs {
    let key = TokenKey { id: 1, key: Secret::from_bytes([8; 32]) };
    let (at_server, at_client) = addresses();
    let claims = TokenClaims::new(UNIX_TIME, UNIX_TIME + 3600, TokenServers::One(at_server))
        .with_client_address(Some(at_client));
    let token = key
        .issue(PROTOCOL_ID, &claims, Secret::from_bytes([9; 32]), [1; 24])
        .expect("claims that fit a token");
    let (mut server, mut client) = by_secret();
    server.credentials = ServerCredentials::default().with_token_key(key);
    client.credentials = Credentials::Token(token);
    (server, client)
}

/// A join for this block.
pub(super) fn join(
    world: &mut World,
    homes: Homes,
    configs: Configs,
    block: &Block,
    seed: u64,
) -> Box<Haulier> {
    let keys = [11, 12].map(|purpose| Rng::stream(seed, purpose).key());
    let once = (Reading::default(), seed);
    Box::new(Haulier::new(world, homes, (configs, keys), block, once))
}
