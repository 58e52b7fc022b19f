//! The golden vectors of haulier/1: what is in each file is in `/vectors/README.md`.

mod datagrams;
mod haulier1;
