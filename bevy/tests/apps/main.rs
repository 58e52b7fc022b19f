//! Clients and servers as apps in one process, over loopback, their frames run by hand.

mod assets;
mod leaving;
mod messages;
mod states;
mod support;
mod warnings;
