//! Everything that is printed, and the terminal that it may reach: text, colours, tables, progress.
//!
//! Nothing is printed elsewhere, and so no text of others reaches a terminal that it would obey: see [`print`] and
//! [`json`].

mod data;
mod findings;
mod forms;
mod output;
mod pager;
mod progress;
mod untrusted;

use std::io::{self, IsTerminal};
use std::sync::LazyLock;

use anstyle::{AnsiColor, Style};

pub(crate) use data::{data, data_as, data_item, data_line, list_item};
pub(crate) use findings::show_findings;
pub(crate) use forms::{ListFormat, Output, OutputFormat};
pub(crate) use output::{
    abandon, complain, complain_coloured, complain_json, complain_text, finish, flush, page, print, print_coloured,
    print_exactly, print_now, written_soon,
};
pub(crate) use progress::{Lines, Progress};
pub(crate) use stead_report::{json, natural_width, pretty, table, yaml};
pub(crate) use stead_system::terminal::width;
pub(crate) use untrusted::{for_users, plain};

static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());

/// Returns whether users read standard output.
pub(crate) fn is_terminal() -> bool {
    *IS_TERMINAL
}

/// Returns whether users read standard error.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Returns whether messages on standard error are coloured: for users, unless they asked for none, or wherever they asked for.
pub(crate) fn is_coloured() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// Text in a colour.
pub(crate) fn painted(color: AnsiColor, text: &str) -> String {
    let paint = Style::new().fg_color(Some(color.into()));
    format!("{paint}{text}{paint:#}")
}
