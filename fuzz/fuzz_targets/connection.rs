//! A script of frames from a peer with the right keys, at a server or a client.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| haulier_sim::hostile::connection(data));
