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
            let near = nearest(path, unknown.known.iter().map(String::as_str)).map(did_you_mean);
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
