//! The golden vectors: what is in `/vectors` and how each file is used is in `/vectors/README.md`.

mod bits;
mod crc;
mod fragments;
pub mod load;
mod malformed;
mod packets;
mod reliable_acks;
mod sequence;
mod slices_and_acks;
mod three_types;

use load::{hex, hex_number, int, load, rows, size, text, unhex};
