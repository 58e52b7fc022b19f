//! The machines of haulier/1: a server that gives whoever asks a block, and a client who asks.
//!
//! Both have the configuration that everybody has who sets nothing. Their invariants are checked by the
//! soaks and not here, where every run is one of ten thousand.

use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_proto::credentials::{Secret, TokenClaims, TokenKey};
use haulier_proto::server::{ServerConfig, ServerCredentials};
use haulier_sim::hosts::{Keyed, PROTOCOL_ID, UNIX_TIME, configs};
use haulier_sim::{Rng, World};

use crate::ends::{Haulier, Homes, Reading, addresses};

type Configs = (ServerConfig, ClientConfig);

/// By a secret that both know: the server has to be careful with an address until it answers.
pub(super) fn by_secret() -> Configs {
    configs(Keyed::Secret, ConnectionConfig::default())
}

/// By a token that says where the client is: the server may send at once.
pub(super) fn by_token() -> Configs {
    let key = TokenKey { id: 1, key: Secret::from_bytes([8; 32]) };
    let claims = TokenClaims::new(UNIX_TIME + 3600).with_client_address(Some(addresses().1));
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
