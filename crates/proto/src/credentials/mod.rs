//! What a client must have before it may ask: a connect token from a matchmaker, or a ticket from a
//! person.
//!
//! Both are bytes that outlive a program and travel by other ways than the wire, so each has a text form
//! and is refused with words. A server trusts nothing in a token before its seal was verified, and takes
//! no memory for it until then.
//!
//! STANDARD-1, sections 6 and 7. How a connection uses them is not known here.

mod bytes;
mod claims;
mod ticket;
mod token;

pub use bytes::MAX_ADDRESSES;
pub use claims::{MAX_USER_DATA_BYTES, TokenClaims, TokenRate};
pub use ticket::{Access, Ticket, TicketError};
pub use token::{
    ConnectToken, IssueError, MAX_SEALED_BYTES, MIN_SEALED_BYTES, OpenedToken, TextError,
    TokenError, TokenKey,
};
