//! Cases of `corpus/diff`: comparisons of a desired and an actual state.

use std::process::ExitCode;

use serde_json::Value as Json;
use stead_core::diff::{Alteration, Case as Letters, Rules, changes, differing, overlaid, respelled};
use stead_core::id::SecretName;
use stead_core::value::{Seal, Value};
use stead_testkit::{Case, Computed, Suite};

#[path = "support/seal.rs"]
mod seal;

use seal::Legible;

fn main() -> ExitCode {
    stead_testkit::main(&[Suite { folder: "diff", run }])
}

fn run(case: &Case) -> Result<Computed, String> {
    let read =
        |name: &str| serde_json::from_str::<Json>(case.section(name)).map_err(|error| format!("{name}: {error}"));
    let desired = value(read("desired")?);
    let actual = value(read("actual")?);
    let schema = if case.has("schema") { Some(read("schema")?) } else { None };
    let letters = match () {
        () if case.has("case ignored") => Letters::Ignored,
        () if case.has("as powershell") => Letters::PowerShell,
        () => Letters::Exact,
    };
    let rules = Rules { case: letters, schema: schema.as_ref() };
    let names: String = differing(&desired, &actual, &rules).into_iter().map(|name| name + "\n").collect();
    let after = overlaid(&actual, &desired, &rules);
    let left = differing(&desired, &after, &rules);
    if !left.is_empty() {
        return Err(format!("the predicted state still differs in {left:?}"));
    }
    let changes: String = changes(&actual, &after).iter().map(|change| shown(&change.path, &change.what)).collect();
    let mut computed = vec![("differing", names), ("to be changed", changes)];
    if letters == Letters::PowerShell {
        computed.push(("respelled", respelled(&desired, &actual, &rules).to_redacted_json().to_string() + "\n"));
    }
    Ok(computed)
}

fn shown(path: &str, what: &Alteration) -> String {
    let text = |value: &Value| value.to_redacted_json().to_string();
    match what {
        Alteration::Added(new) => format!("+ {path} {}\n", text(new)),
        Alteration::Removed(old) => format!("- {path} {}\n", text(old)),
        Alteration::Replaced { old, new } => format!("~ {path} {} -> {}\n", text(old), text(new)),
    }
}

fn value(json: Json) -> Value {
    match json {
        Json::Array(items) => Value::Array(items.into_iter().map(value).collect()),
        Json::Object(members) => {
            let secret = members.get("$secret").and_then(Json::as_str).map(|name| SecretName(name.into()));
            let sealed = members.get("$sealed").map(|plain| Legible.seal(Value::from(plain.clone())));
            match secret.or(sealed) {
                Some(name) => Value::secret(name),
                None => Value::Object(members.into_iter().map(|(name, each)| (name, value(each))).collect()),
            }
        }
        other => Value::from(other),
    }
}
