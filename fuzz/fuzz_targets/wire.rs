//! Bytes at every parser of haulier/1, at a server and at a client.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| haulier_sim::hostile::wire(data));
