//! A script of sends, losses, ticks and hostile packets at a peer, which must keep its promises.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| haulier_sim::hostile::peer(data));
