//! The state table of a connection, printed as it is in the code and compared with `docs/STATES.md`.

use haulier_proto::connection::ConnectionState;
use haulier_proto::internals::ConnectionTrigger;

use crate::page::{assert_on_page, table};

#[test]
fn the_page_shows_the_table_of_the_code() {
    let table = table(&ConnectionState::ALL, &ConnectionTrigger::ALL, ConnectionState::next);
    assert_on_page(&[("connection", table)]);
}
