//! The golden vectors of haulier/1: `/vectors/README.md` describes each file.

// mod datagrams; until the vectors are made anew
mod haulier1;
