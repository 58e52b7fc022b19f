//! Messages between a sender and a receiver.
