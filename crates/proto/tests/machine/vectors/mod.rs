//! The golden vectors of haulier/1: `/vectors/README.md` describes each file.

mod datagrams;
mod frames;
mod haulier1;
