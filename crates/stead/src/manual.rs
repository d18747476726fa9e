//! Manual pages, made of the same declarations as `--help`.

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::{AFTER_HELP, Arguments};
use crate::exit::Exit;
use crate::terminal::{complain, print};

/// Variables of the environment that no option names.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("STEAD_PARAM_NAME", "Value of the parameter NAME of a document. Parameter files and options override it."),
    ("STEAD_RECORD", "If set to 1, apply records its run, as with --record."),
    ("STEAD_RECONCILE", "How apply runs again what is pending, as with --reconcile."),
    (
        "STEAD_STATE",
        "The folder of what is kept between runs: what handlers are owed, recorded runs in runs, state of the agent, and \
         locks. Runs with different folders do not wait for each other.",
    ),
    ("STEAD_JOIN_TOKEN", "The token with which 'agent join' joins a controller, where --token-file names none."),
    ("STEAD_COMPAT", "What config prints when something failed, as with --compat: results or strict."),
    ("STEAD_COMPLETE", "Set by the scripts of 'stead completer' when they ask for completions."),
    ("DSC_RESOURCE_PATH", "Directories searched for resource manifests, instead of those in PATH."),
    ("DSC_RESTRICTED_PATH", "Directories searched for manifests and programs, instead of PATH and DSC_RESOURCE_PATH."),
    ("DSC_CONFIG_ROOT", "The folder for relative paths if config does not read the document from a file."),
    ("DSC_TRACE_LEVEL", "The log level. --trace-level overrides it."),
    ("DSC_IGNORE_SETTINGS_FILE", "If set, settings files are ignored, as with --ignore-settings-file."),
    ("PSModulePath", "Directories searched first for PowerShell modules."),
    (
        "STEAD_PAGER, PAGER",
        "What shows long text on a terminal, the first of both that is set, else less. Empty or cat: nothing. It is started \
         without a shell.",
    ),
    ("NO_COLOR", "If set and not empty, output has no colours. --color overrides it."),
];

const FILES: &[(&str, &str)] = &[
    ("/etc/dsc/dsc.settings.json", "The policy of the administrator. It overrides all other settings and options."),
    ("/etc/stead/labels.yaml", "The labels of the machine, names with texts, which facts('labels') has."),
    ("dsc.settings.json, dsc_default.settings.json", "Settings and default settings, in the directory of the program."),
    (
        "/var/lib/stead, ~/.local/state/stead",
        "What is kept between runs of root and of other users: what handlers are owed, in kept; recorded runs, in runs; \
         record, documents and reports of the agent.",
    ),
    ("/run/stead, $XDG_RUNTIME_DIR/stead", "Locks between runs."),
    ("~/.cache/stead", "Indexes of resources; can be deleted."),
];

/// Prints the page of a command.
pub(crate) fn manual(words: &[String]) -> Exit {
    let mut all = Arguments::command().disable_help_subcommand(true);
    all.build();
    let mut command = &all;
    for word in words {
        let Some(found) = command.find_subcommand(word) else {
            complain(&format!("error: there is no command '{}'", words.join(" ")));
            return Exit::Unusable;
        };
        command = found;
    }
    match page(command.clone(), words.is_empty()) {
        Ok(page) => {
            print(&page);
            Exit::Success
        }
        Err(error) => {
            complain(&format!("error: {error}"));
            Exit::Failed
        }
    }
}

fn page(command: Command, is_program: bool) -> std::io::Result<String> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let has_options = command.get_arguments().any(|each| !each.is_hide_set());
    let has_commands = command.get_subcommands().any(|each| !each.is_hide_set());
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    if has_options {
        page.render_options_section(&mut text)?;
    }
    if has_commands {
        page.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    if is_program {
        exit_status(&mut rest);
        table(&mut rest, "ENVIRONMENT", ENVIRONMENT);
        table(&mut rest, "FILES", FILES);
    } else {
        rest.control("SH", ["SEE ALSO"]).text([bold("stead"), roman("(1)")]);
    }
    rest.to_writer(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    // Without a date, which the library would leave out in place of leaving it empty. Each section defines the apostrophe.
    let title = format!(".TH {name} 1 \"\" \"stead {}\" \"stead manual\"", env!("CARGO_PKG_VERSION"));
    let (apostrophe, sections): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains(".ds Aq "));
    let lines = apostrophe.into_iter().take(2).chain([title.as_str()]).chain(sections);
    Ok(lines.flat_map(|line| [line, "\n"]).collect())
}

/// The table of the help, as it is.
fn exit_status(roff: &mut Roff) {
    roff.control("SH", ["EXIT STATUS"]).control("nf", []);
    for line in AFTER_HELP.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

fn table(roff: &mut Roff, heading: &str, rows: &[(&str, &str)]) {
    roff.control("SH", [heading]);
    for (name, text) in rows {
        roff.control("TP", []).text([bold(*name)]).text([roman(*text)]);
    }
}
