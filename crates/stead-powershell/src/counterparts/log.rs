//! `Log`: a message.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use stead_core::call::{Execution, Failure};
use stead_core::claims::Claims;
use stead_core::value::Value;
use stead_host::provider::{Context, Cost, Plain, Provider, SetReply, State, TestReply, TraceLevel};
use stead_powershell_reader::resource::Resource;
use stead_powershell_reader::schema::json_schema;

use super::stated;

/// Writes the message whenever its instance is tested. It is always in desired state, so that a machine with it converges.
pub(super) struct Counterpart(Arc<Resource>);

impl Counterpart {
    pub(super) fn new(resource: Arc<Resource>) -> Self {
        Self(resource)
    }

    fn message(&self, input: &Plain) -> Result<String, Failure> {
        Ok(stated(&self.0, input)?.text("Message").unwrap_or_default().to_owned())
    }

    fn write(&self, cx: &Context, input: &Plain) -> Result<State, Failure> {
        let message = self.message(input)?;
        cx.say(TraceLevel::Info, &message);
        Ok(state(&message))
    }
}

fn state(message: &str) -> State {
    Plain::new(Value::from(json!({ "Message": message })))
}

impl Provider for Counterpart {
    fn described_schema(&self, _cx: &Context) -> Result<Option<Json>, Failure> {
        Ok(Some(json_schema(&self.0)))
    }

    fn validate(&self, _cx: &Context, input: &Plain) -> Result<(), Failure> {
        self.message(input).map(drop)
    }

    fn get(&self, _cx: &Context, input: &Plain) -> Result<State, Failure> {
        self.message(input).map(|message| state(&message))
    }

    fn test(&self, cx: &Context, input: &Plain) -> Result<TestReply, Failure> {
        let actual = Some(self.write(cx, input)?);
        Ok(TestReply { actual, in_desired_state: Some(true), differing: Some(Vec::new()), ..TestReply::default() })
    }

    fn set(&self, cx: &Context, input: &Plain, execution: Execution) -> Result<SetReply, Failure> {
        let after = match execution {
            Execution::Actual => self.write(cx, input)?,
            Execution::WhatIf => state(&self.message(input)?),
        };
        Ok(SetReply { after: Some(after), changed: Some(Vec::new()), ..SetReply::default() })
    }

    fn cost(&self, _desired: &Value) -> Cost {
        Cost::Inline
    }

    fn claims(&self, _input: &Plain) -> Option<Claims> {
        Some(Claims::default())
    }
}
