//! The state tables, printed as they are in the code and compared with `docs/STATES.md`.

use haulier_article::ack::{PacketFate, PacketNews};
use haulier_article::chunk::{ReceiverNews, ReceiverState, SenderNews, SenderState};
use haulier_article::congestion::{CongestionMode, CongestionNews};
use haulier_article::fragment::{EntryNews, EntryState};

use crate::page::{assert_on_page, table};

#[test]
fn the_page_shows_the_tables_of_the_code() {
    assert_on_page(&[
        ("sender", table(&SenderState::ALL, &SenderNews::ALL, SenderState::next)),
        ("receiver", table(&ReceiverState::ALL, &ReceiverNews::ALL, ReceiverState::next)),
        ("entry", table(&EntryState::ALL, &EntryNews::ALL, EntryState::next)),
        ("fate", table(&PacketFate::ALL, &PacketNews::ALL, PacketFate::next)),
        ("mode", table(&CongestionMode::ALL, &CongestionNews::ALL, CongestionMode::next)),
    ]);
}

#[test]
fn a_reset_leads_home_from_everywhere() {
    for state in SenderState::ALL {
        assert_eq!(state.next(SenderNews::Reset), Some(SenderState::Idle));
    }
    for state in ReceiverState::ALL {
        assert_eq!(state.next(ReceiverNews::Reset), Some(ReceiverState::Waiting));
    }
}
