#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hookproof_core_fuzz::address::check(bytes);
});
