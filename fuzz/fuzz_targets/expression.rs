//! Any text is read, computed and opened without a panic, and what is wrong is somewhere in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_core::expr::{Answer, Environment, Expression, OpenError, Recipe, open};
use stead_core::value::{Sealed, Sensitive, Value};

struct Everything;

impl Environment for Everything {
    fn parameter(&self, name: &str) -> Answer {
        Answer::Value(Value::Sealed(Sealed::new(Recipe::Literal(Sensitive::new(name.into())))))
    }
    fn variable(&self, name: &str) -> Answer {
        Answer::Value(Value::Array(vec![name.into(), 1.into(), Value::Null]))
    }
}

fuzz_target!(|text: &str| {
    match Expression::parse(text) {
        Err(fault) => assert!(text.get(fault.at).is_some()),
        Ok(expression) => {
            if let Ok(value) = expression.evaluate(&Everything) {
                let _ = open(&value, &|name| {
                    Err(OpenError::Unavailable { name: name.clone(), reason: String::new() })
                });
            }
        }
    }
});
