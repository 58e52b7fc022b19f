//! The state tables, printed as they are in the code and compared with `docs/STATES.md`.
//!
//! After a change of a table: `UPDATE_STATES=1 cargo test -p haulier-proto states` writes the page.

use std::fmt::Debug;

use haulier_proto::ack::{PacketFate, PacketNews};
use haulier_proto::chunk::{ReceiverNews, ReceiverState, SenderNews, SenderState};
use haulier_proto::congestion::{Mode, ModeNews};
use haulier_proto::connection::{ConnectionNews, ConnectionState};
use haulier_proto::fragment::{EntryNews, EntryState};

fn table<S: Copy + Debug, N: Copy + Debug>(
    states: &[S],
    news: &[N],
    next: impl Fn(S, N) -> Option<S>,
) -> String {
    let mut table = String::from("| news |");
    states.iter().for_each(|state| table += &format!(" {state:?} |"));
    table += "\n|---|";
    states.iter().for_each(|_| table += "---|");
    for &news in news {
        table += &format!("\n| {news:?} |");
        for &state in states {
            let cell = next(state, news).map_or(String::from("–"), |next| format!("{next:?}"));
            table += &format!(" {cell} |");
        }
    }
    table
}

fn with_table(page: &str, name: &str, table: &str) -> String {
    let (start, end) = (format!("<!-- {name} -->\n"), "\n<!-- end -->");
    let (before, rest) = page.split_once(&start).expect("the page marks where the table goes");
    let (_, after) = rest.split_once(end).expect("the page marks where the table ends");
    format!("{before}{start}{table}{end}{after}")
}

#[test]
fn the_page_shows_the_tables_of_the_code() {
    let path = format!("{}/../../docs/STATES.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).unwrap();
    let sender = table(&SenderState::ALL, &SenderNews::ALL, SenderState::next);
    let receiver = table(&ReceiverState::ALL, &ReceiverNews::ALL, ReceiverState::next);
    let tables = [
        ("sender", sender),
        ("receiver", receiver),
        ("entry", table(&EntryState::ALL, &EntryNews::ALL, EntryState::next)),
        ("fate", table(&PacketFate::ALL, &PacketNews::ALL, PacketFate::next)),
        ("connection", table(&ConnectionState::ALL, &ConnectionNews::ALL, ConnectionState::next)),
        ("mode", table(&Mode::ALL, &ModeNews::ALL, Mode::next)),
    ];
    let printed =
        tables.iter().fold(page.clone(), |page, (name, table)| with_table(&page, name, table));
    if std::env::var_os("UPDATE_STATES").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    assert!(
        page == printed,
        "docs/STATES.md is stale: UPDATE_STATES=1 cargo test states\n{printed}"
    );
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
