//! The state tables, printed as they are in the code and compared with `docs/STATES.md`.

use haulier_article::ack::{PacketFate, PacketTrigger};
use haulier_article::chunk::{ReceiverState, ReceiverTrigger, SenderState, SenderTrigger};
use haulier_article::congestion::{CongestionMode, CongestionTrigger};
use haulier_article::fragment::{EntryState, EntryTrigger};

use crate::page::{assert_on_page, table};

#[test]
fn the_page_shows_the_tables_of_the_code() {
    assert_on_page(&[
        ("sender", table(&SenderState::ALL, &SenderTrigger::ALL, SenderState::next)),
        ("receiver", table(&ReceiverState::ALL, &ReceiverTrigger::ALL, ReceiverState::next)),
        ("entry", table(&EntryState::ALL, &EntryTrigger::ALL, EntryState::next)),
        ("fate", table(&PacketFate::ALL, &PacketTrigger::ALL, PacketFate::next)),
        ("mode", table(&CongestionMode::ALL, &CongestionTrigger::ALL, CongestionMode::next)),
    ]);
}

#[test]
fn a_reset_leads_home_from_everywhere() {
    for state in SenderState::ALL {
        assert_eq!(state.next(SenderTrigger::Reset), Some(SenderState::Idle));
    }
    for state in ReceiverState::ALL {
        assert_eq!(state.next(ReceiverTrigger::Reset), Some(ReceiverState::Waiting));
    }
}
