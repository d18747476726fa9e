//! The log on standard error, in the formats of dsc.

use std::fmt;

use tracing::level_filters::LevelFilter;
use tracing::subscriber::set_global_default;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

use stead_core::visible::visible_but;
use stead_host::settings::{Settings, TraceFormat, TraceLevel};

/// Sends what is traced to standard error from now on.
pub(crate) fn install(settings: &Settings) {
    let level = settings.trace_level;
    let filter = match level {
        TraceLevel::Error => LevelFilter::ERROR,
        TraceLevel::Warn => LevelFilter::WARN,
        TraceLevel::Info => LevelFilter::INFO,
        TraceLevel::Debug => LevelFilter::DEBUG,
        TraceLevel::Trace => LevelFilter::TRACE,
    };
    let coloured = settings.trace_format == TraceFormat::Default && crate::terminal::is_coloured();
    let with_source = level >= TraceLevel::Debug;
    let builder = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(filter).with_ansi(coloured);
    // A second subscriber is impossible here: this is the only place that installs one.
    let _ = match settings.trace_format {
        TraceFormat::Json | TraceFormat::PassThrough => {
            set_global_default(builder.event_format(JsonLines { with_source }).finish().with(filter_fn(is_ours)))
        }
        TraceFormat::Default | TraceFormat::Plaintext => {
            set_global_default(builder.event_format(Lines { coloured, with_source }).finish().with(filter_fn(is_ours)))
        }
    };
    tracing::info!("Trace-level is {level:?}");
}

/// What libraries trace is left out: they know of no secrets, and would tell the calls of the server as they came.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("stead")
}

/// `2026-11-21T01:48:18.157Z ERROR message`
struct Lines {
    coloured: bool,
    with_source: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (metadata, now) = (event.metadata(), jiff::Timestamp::now());
        let colour = match *metadata.level() {
            Level::ERROR => "31",
            Level::WARN => "33",
            Level::INFO => "32",
            Level::DEBUG => "34",
            Level::TRACE => "35",
        };
        if self.coloured {
            write!(to, "\x1b[2m{now:.6}\x1b[0m \x1b[{colour}m{:>5}\x1b[0m ", metadata.level())?;
        } else {
            write!(to, "{now:.6} {:>5} ", metadata.level())?;
        }
        if self.with_source {
            write!(to, "{}: {}: ", metadata.target(), metadata.line().unwrap_or_default())?;
        }
        let mut message = String::new();
        context.format_fields(Writer::new(&mut message), event)?;
        writeln!(to, "{}", visible_but(&message, &['\n', '\t']))
    }
}

/// `{"timestamp":…,"level":…,"fields":{"message":…}}`, which resources and dsc read, too.
struct JsonLines {
    with_source: bool,
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut message = String::new();
        context.format_fields(Writer::new(&mut message), event)?;
        let mut line = serde_json::json!({
            "timestamp": format!("{:.6}", jiff::Timestamp::now()),
            "level": event.metadata().level().to_string(),
            "fields": { "message": message },
        });
        if self.with_source {
            line["target"] = event.metadata().target().into();
            line["line_number"] = event.metadata().line().into();
        }
        writeln!(to, "{}", crate::terminal::json(&line))
    }
}
