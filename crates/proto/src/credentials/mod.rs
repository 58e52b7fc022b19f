//! What a client needs to join: a connect token from a matchmaker, or a ticket from a person (STANDARD-1,
//! sections 6 and 7).
//!
//! Both are stored and passed on outside of the wire, so each has a text form, and an error that says what to
//! do. A server trusts nothing in a token, and allocates nothing for it, before its seal is verified. How a
//! connection uses them is not known here.

mod bytes;
mod claims;
mod ticket;
pub(crate) mod token;

pub use crate::crypto::{Identity, Secret};
pub use claims::{TokenClaims, TokenRate, TokenServers};
pub use ticket::{Ticket, TicketAccess, TicketError};
pub use token::{ConnectToken, ConnectTokenError, IssueError, TokenKey};
pub(crate) use token::{OpenedToken, TokenError};
