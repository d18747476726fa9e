//! `facts`: what expressions can ask of the machine.

use serde_json::Value as Json;
use stead_core::diag::{did_you_mean, nearest};

use crate::args::{Facts, Output};
use crate::exit::Exit;
use crate::input;
use crate::output::{complain, data_as, print};
use crate::process_env::ProcessEnv;

/// Prints all facts, or the one at a path such as `os.family`.
pub(crate) fn facts(arguments: &Facts, env: &ProcessEnv) -> Exit {
    let session = env.host.session(input::current_folder());
    let all = session.machine.facts().to_redacted_json();
    let path = arguments.path.as_deref().unwrap_or_default();
    let (mut found, mut above) = (&all, String::new());
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let Some(member) = found.get(name) else {
            complain(&format!("error: there is no fact '{path}'"));
            let known = found.as_object().into_iter().flat_map(|members| members.keys().map(String::as_str));
            let near = nearest(name, known).map(|near| did_you_mean(&format!("{above}{near}")));
            complain(&format!("help: {}", near.unwrap_or_else(|| "'stead facts' shows all".to_owned())));
            return Exit::Unusable;
        };
        found = member;
        above.extend([name, "."]);
    }
    match (arguments.output, found) {
        (Output::Text, Json::String(text)) => print(&format!("{text}\n")),
        (Output::Text | Output::Yaml, found) => data_as(found, Output::Yaml),
        (Output::Json, found) => data_as(found, Output::Json),
    }
    Exit::Success
}
