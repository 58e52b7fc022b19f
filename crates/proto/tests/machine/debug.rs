//! `Debug` ends up in the logs of games: it says how much there is, and prints none of it.

use std::fmt::Debug;

use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Block, Event};
use haulier_proto::credentials::{TokenClaims, TokenServers};
use haulier_proto::server::ServerEvent;

use crate::lan::{Lan, client_config, server_address, server_config};

/// Marks a payload: 167 in a list, `\xa7` in a string of bytes.
const MARK: u8 = 0xa7;

fn hides(what: &impl Debug) {
    for text in [format!("{what:?}"), format!("{what:#?}").replace(['\n', ' '], "")] {
        for mark in ["167, 167", "167,167", "\\xa7", "a7a7"] {
            assert!(!text.contains(mark), "{}", &text[..text.len().min(400)]);
        }
        assert!(text.len() < 5_000, "{} characters: {}", text.len(), &text[..400]);
    }
}

/// At both ends, while a block, a packet and a message are half sent, half received, and not read.
#[test]
fn no_payload_of_a_connection_is_printed() {
    let mut lan = Lan::joined(server_config(), client_config().with_request(vec![MARK; 100]));
    let block = Block::new(1, vec![MARK; 300_000]);
    hides(&block);
    lan.peer().send_block(&block).unwrap();
    lan.peer().send_message(vec![MARK; 1_000]).unwrap();
    lan.peer().send_packet(vec![MARK; 3_000]).unwrap();
    for _ in 0..100 {
        lan.run(5);
        hides(&lan.server);
        hides(&lan.clients[0]);
        hides(&lan.clients[0].connection());
    }
    let events = &lan.client_events[0];
    assert!(events.iter().any(|event| matches!(event, Event::Block { .. })));
    events.iter().for_each(hides);
    lan.server_events.iter().for_each(hides);
    assert!(lan.server_events.iter().any(|(_, e)| matches!(e, ServerEvent::Connecting { .. })));
}

#[test]
fn no_payload_of_a_setting_is_printed() {
    let config = ClientConfig::new(server_address(), 1, Credentials::Open);
    hides(&config.with_request(vec![MARK; 100]));
    hides(&TokenClaims::new(0, 1, TokenServers::Every).with_user_data(vec![MARK; 100]));
}
