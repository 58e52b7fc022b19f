//! Bytes at every parser: each must refuse or accept them, and never panic.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| haulier_sim::hostile::parse(data));
