#![no_main]

mod decoders;

libfuzzer_sys::fuzz_target!(init: decoders::may_panic(), |bytes: &[u8]| compflow_loaders::fuzzing::parquet(bytes));
