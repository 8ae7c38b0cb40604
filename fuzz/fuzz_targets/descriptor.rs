#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| compflow_api::fuzzing::descriptor(bytes));
