//! Any text is read, computed and opened without a panic, and what is wrong is somewhere in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_core::expr::{Answer, Environment, Expression, open};
use stead_core::id::SecretName;
use stead_core::value::Value;

struct Everything;

impl Environment for Everything {
    fn parameter(&self, name: &str) -> Answer {
        Answer::Value(Value::secret(SecretName(name.into())))
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
                let _ = open(&value, &|name| Ok(Value::from(&*name.0)));
                let text = serde_json::to_string(&value).expect("every value can be written");
                // Numbers without a fraction keep their kind; what is nested too deeply to be read again is not compared.
                if let Ok(read) = serde_json::from_str::<Value>(&text) {
                    assert!(read == value);
                }
            }
        }
    }
});
