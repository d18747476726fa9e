//! `stead eval`: expressions by themselves, or one after the other at a prompt.

use std::io::{BufRead as _, IsTerminal as _};

use stead_core::text::Limits;
use stead_core::value::Value;
use stead_engine::{Prepared, Session};

use crate::exit::Exit;
use crate::input::{self, BadParameters, ParameterSources, Text};
use crate::interrupt;
use crate::process_env::ProcessEnv;
use crate::request::EvalRequest;
use crate::terminal::{Output, complain, complain_text, data_as, flush, pretty, print, print_exactly, show_findings};

/// A document without anything.
const EMPTY: &str = "{\"$schema\": \"https://aka.ms/dsc/schemas/v3/bundled/config/document.json\", \"resources\": []}";

/// Evaluates one expression, or each line of standard input.
pub(crate) fn eval(request: &EvalRequest, env: &ProcessEnv) -> Exit {
    let root = match (&request.supplied.root, &request.file) {
        (Some(root), _) => std::path::absolute(root).unwrap_or_else(|_| root.clone()),
        (None, Some(file)) => input::folder(file),
        (None, None) => input::folder("-".as_ref()),
    };
    let mut session = env.host.session(root);
    interrupt::catch(&session);
    let prepared = match prepare(request, &mut session) {
        Ok(prepared) => prepared,
        Err(exit) => return exit,
    };
    if let Some(expression) = &request.expression {
        return answer(&mut session, &prepared, expression, request.output);
    }
    let is_prompted = std::io::stdin().is_terminal();
    let prompt = || {
        if is_prompted {
            flush();
            complain_text("> ");
        }
    };
    let mut exit = Exit::Success;
    prompt();
    for line in std::io::stdin().lock().lines() {
        match line {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => match answer(&mut session, &prepared, line.trim(), request.output) {
                Exit::Success => {}
                failed => exit = failed,
            },
            Err(error) => {
                complain(&format!("error: cannot read standard input: {error}"));
                return Exit::Unusable;
            }
        }
        prompt();
    }
    // At a prompt a mistake was seen and done with.
    if is_prompted { Exit::Success } else { exit }
}

fn prepare(request: &EvalRequest, session: &mut Session) -> Result<Prepared, Exit> {
    let text = match &request.file {
        Some(file) => input::document(session, file).map_err(|error| {
            complain(&format!("error: {error}"));
            Exit::Unusable
        })?,
        None => Text { name: "<none>".to_owned(), text: EMPTY.to_owned() },
    };
    let from = ParameterSources::of(&request.supplied, &text);
    let supplied = match input::parameters(session, &from) {
        Ok(supplied) => supplied,
        Err(BadParameters::Unreadable(error)) => {
            complain(&format!("error: {error}"));
            return Err(Exit::Unusable);
        }
        Err(BadParameters::Findings(findings)) => {
            show_findings(&findings, &session.sources);
            return Err(Exit::Unusable);
        }
    };
    session.prepare_values(&text.name, text.text, supplied).map_err(|unusable| {
        show_findings(&unusable.findings, &session.sources);
        Exit::Unusable
    })
}

/// Prints the value of an expression, or what is wrong with it.
fn answer(session: &mut Session, prepared: &Prepared, expression: &str, output: Output) -> Exit {
    if expression.len() > Limits::default().bytes {
        complain("error: the expression is too long");
        return Exit::Unusable;
    }
    let text = if expression.starts_with('[') { expression.to_owned() } else { format!("[{expression}]") };
    match session.evaluate(prepared, &text) {
        Ok(value) => {
            match (output, &value) {
                (Output::Text, Value::String(text)) if text.ends_with('\n') => print_exactly(text),
                (Output::Text, Value::String(text)) => print_exactly(&format!("{text}\n")),
                (Output::Text, _) => print(&format!("{}\n", pretty(&value.to_redacted_json()))),
                _ => data_as(&value.to_redacted_json(), output),
            }
            Exit::Success
        }
        Err(finding) => {
            show_findings(&[*finding], &session.sources);
            Exit::Unusable
        }
    }
}
