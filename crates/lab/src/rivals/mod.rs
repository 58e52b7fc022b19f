//! Other people's senders, as hosts: what a transfer shares a link with.

pub mod cubic;
