//! `facts`: what is known about the machine.

use stead_core::diag::{did_you_mean, nearest};
use stead_core::expr::fact_at;
use stead_core::value::Value;
use stead_host::facts::codes;

use crate::exit::Exit;
use crate::input;
use crate::process_env::ProcessEnv;
use crate::terminal::{Output, complain, data_as, print_exactly};

/// Prints all facts, or the one at a path such as `os.family`.
pub(crate) fn facts(path: Option<&str>, output: Output, env: &ProcessEnv) -> Exit {
    let session = env.host.session(input::current_folder());
    let all = match session.machine().facts() {
        Ok(all) => all,
        Err(unusable) => {
            complain(&format!("error[{}]: {unusable}", codes::FILE.id));
            return Exit::Unusable;
        }
    };
    let found = path.map_or(Ok(all), |path| {
        fact_at(all, path).map_err(|unknown| {
            complain(&format!("error: there is no fact '{path}'"));
            let near = nearest(path, unknown.known.iter().map(String::as_str));
            let near = near.map(str::to_owned).or_else(|| of_ansible(path, all)).map(|near| did_you_mean(&near));
            complain(&format!("help: {}", near.unwrap_or_else(|| "'stead facts' lists all facts".to_owned())));
        })
    });
    match (output, found) {
        (_, Err(())) => return Exit::Unusable,
        (Output::Text, Ok(Value::String(text))) => print_exactly(&format!("{text}\n")),
        (Output::Text | Output::Yaml, Ok(found)) => data_as(&found.to_redacted_json(), Output::Yaml),
        (output, Ok(found)) => data_as(&found.to_redacted_json(), output),
    }
    Exit::Success
}

/// The fact that a variable of Ansible, or the last part of a name, stands for, where there is one such.
fn of_ansible(name: &str, all: &Value) -> Option<String> {
    let name = name.strip_prefix("ansible_").unwrap_or(name);
    let mut found = paths(all, "").into_iter().filter(|path| {
        let last = path.rsplit('.').next().unwrap_or_default();
        last == name || path.replace('.', "_") == name
    });
    found.next().filter(|_| found.next().is_none())
}

/// The paths of all facts that are not objects.
fn paths(facts: &Value, outer: &str) -> Vec<String> {
    let Some(members) = facts.as_object() else { return vec![outer.to_owned()] };
    let path = |name: &str| if outer.is_empty() { name.to_owned() } else { format!("{outer}.{name}") };
    members.iter().flat_map(|(name, value)| paths(value, &path(name))).collect()
}
