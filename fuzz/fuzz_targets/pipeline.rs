#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| compflow_engine::fuzzing::pipeline(bytes));
