//! The machines of haulier/1: a server that gives whoever asks a block, and a client who asks.
//!
//! Both have the configuration that everybody has who sets nothing. Their invariants are checked by the
//! soaks and not here, where every run is one of ten thousand.

use std::time::Duration;

use haulier_proto::client::Credentials;
use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_proto::credentials::{TokenClaims, TokenKey};
use haulier_proto::crypto::Secret;
use haulier_proto::server::ServerCredentials;
use haulier_sim::Rng;
use haulier_sim::hosts::{PROTOCOL_ID, UNIX_TIME};

use super::stage::{Place, Stage};
use super::{Kit, Moment, Outcome};
use crate::ends::{Haulier, Reading, Setup, addresses};

/// How long a connection is quiet before its block is timed: what was measured in the visit is old then.
const QUIET: Duration = Duration::from_secs(2);

type Credentialled = (ServerCredentials, Credentials);

/// A block over a connection that is there.
pub(super) fn warm(place: &Place<'_>, kit: &Kit, moments: Option<&mut Vec<Moment>>) -> Outcome {
    let mut stage = stage(place, by_secret(), &kit.visit);
    let visit = stage.run(None);
    if let Some(reason) = visit.hang {
        return Outcome { hang: Some(format!("in the visit before: {reason}")), ..visit };
    }
    stage.wait(QUIET);
    stage.restart(&kit.timed);
    stage.run(moments)
}

/// A join with a secret that both know: the server has to be careful with an address until it answers.
pub(super) fn cold_ticket(
    place: &Place<'_>,
    kit: &Kit,
    moments: Option<&mut Vec<Moment>>,
) -> Outcome {
    stage(place, by_secret(), &kit.timed).run(moments)
}

/// A join with a token that says where the client is: the server may send at once.
pub(super) fn cold_token(
    place: &Place<'_>,
    kit: &Kit,
    moments: Option<&mut Vec<Moment>>,
) -> Outcome {
    stage(place, by_token(), &kit.timed).run(moments)
}

fn by_secret() -> Credentialled {
    let secret = Secret::from_bytes([7; 32]);
    let server = ServerCredentials { secret: Some(secret.clone()), ..ServerCredentials::default() };
    (server, Credentials::Secret { secret, identity: None })
}

fn by_token() -> Credentialled {
    let key = TokenKey { id: 1, key: Secret::from_bytes([8; 32]) };
    let claims = TokenClaims {
        expiry_unix: UNIX_TIME + 3600,
        client_address: Some(addresses().1),
        ..TokenClaims::default()
    };
    let token = key
        .issue(PROTOCOL_ID, &claims, Secret::from_bytes([9; 32]), [1; 24])
        .expect("claims that fit a token");
    let server = ServerCredentials { token_keys: vec![key], ..ServerCredentials::default() };
    (server, Credentials::Token(token))
}

fn stage<'a>(place: &Place<'a>, credentials: Credentialled, block: &Block) -> Stage<'a> {
    let setup = Setup {
        credentials,
        connection: ConnectionConfig::default(),
        block: block.clone(),
        keys: [11, 12].map(|purpose| Rng::stream(place.seed, purpose).key()),
        reading: Reading::default(),
        seed: place.seed,
    };
    Stage::new(place, |world, homes| Haulier::new(world, homes, setup))
}
