//! Other senders, as hosts: competing traffic on a shared link.

pub mod cubic;
