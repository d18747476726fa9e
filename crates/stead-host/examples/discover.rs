//! Searches the directories of `PATH` and says what was found and how long it took.
//!
//! `discover [CACHE]`: with a directory, an index is kept there, so that the second run is a warm one.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;
use stead_core::call::{Failure, FailureKind};
use stead_core::expr::FactKey;
use stead_core::manifest::{Extension, Manifest};
use stead_core::value::Value;
use stead_host::catalog::{Discovery, Programs, Search, SearchEnvironment};
use stead_host::settings::ResourcePath;
use stead_system::fs::User;

struct NoPrograms;

impl Programs for NoPrograms {
    fn list_adapted(&self, _adapter: &Manifest) -> Result<Vec<Json>, Failure> {
        Err(Failure::new(FailureKind::Unsupported, "no programs are run"))
    }

    fn discover(&self, _extension: &Extension) -> Result<Vec<Json>, Failure> {
        Ok(Vec::new())
    }

    fn fact(&self, _key: &FactKey) -> Option<Value> {
        Some(Value::Null)
    }
}

fn main() -> std::io::Result<()> {
    let path = std::env::var_os("PATH");
    let environment = SearchEnvironment { path: path.as_deref(), ..SearchEnvironment::default() };
    let mut search = Search::new(&environment, &ResourcePath::default(), User::current());
    search.cache = std::env::args_os().nth(1).map(Into::into);
    let begun = Instant::now();
    let discovery = Discovery::new(search, Arc::default(), Arc::new(NoPrograms));
    let discovered = discovery.discovered();
    let took = begun.elapsed();
    let mut out = std::io::stdout().lock();
    for problem in &discovered.problems {
        writeln!(out, "{problem}")?;
    }
    writeln!(out, "{} types, {} problems, {took:?}", discovered.catalog.iter().count(), discovered.problems.len())
}
