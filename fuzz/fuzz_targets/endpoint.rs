//! Sends, ticks and hostile packets at two endpoints with one pool, which must keep their promises.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| haulier_sim::hostile::endpoint(data));
