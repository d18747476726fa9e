//! Whatever a program prints, reading it gives values or a place in the output, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_host::command::output::{Expected, parse};
use stead_host::command::stderr::read_line;

fuzz_target!(|output: &[u8]| {
    for expected in [Expected::Values(1), Expected::Values(2), Expected::Lines] {
        match parse(output, expected) {
            Ok(values) => {
                // What was read once is read again from its own text: no value is made of thin air.
                let lines = values.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
                assert_eq!(parse(lines.as_bytes(), Expected::Lines).as_ref(), Ok(&values));
            }
            Err(garbage) => assert!(garbage.offset <= output.len()),
        }
    }
    if let Ok(line) = std::str::from_utf8(output) {
        let message = read_line(line);
        assert!(message.text.len() <= line.len());
    }
});
