//! `Stead/Hostname`: the name of the machine.

use std::sync::Arc;

use stead_core::call::Failure;
use stead_core::statements::Statement;
use stead_core::value::{Object, Value};
use stead_declare::resource;
use stead_host::provider::{Context, Plain};

use crate::declared::Declared as _;
use crate::edit::{FileLocks, Missing};
use crate::part::lines::{InForce, put_entry};
use crate::part::{Live, Location, Part, Parts, Setting, Stated};
use crate::text::HostName;
use crate::{ALL, BuiltIn, reply};
use stead_core::manifest::Capabilities;

/// The name of the machine, in /etc/hostname and in the running kernel, which gets it first. Where another root than '/' is
/// managed, only the file is.
#[resource(
    "Stead/Hostname",
    about = "The name of the machine.",
    tags("hostname", "network", "linux"),
    undo = State,
    capabilities = Capabilities { set_handles_exist: false, delete: false, delete_what_if: false, ..ALL },
    state,
)]
struct Properties<'a> {
    /// The host name.
    name: HostName<'a>,
}

const FILE: &str = "/etc/hostname";

/// What a machine is called whose file has no name.
const WITHOUT_NAME: &str = "localhost";

impl<'a> crate::input::Properties<'a> for Properties<'a> {}

/// `Stead/Hostname` as it is registered.
pub(crate) fn built_in(locks: &FileLocks) -> Option<BuiltIn> {
    Properties::built_in(Arc::new(Parts::<Hostname>::new(locks)))
}

struct Hostname;

impl Part for Hostname {
    type Stated<'a> = Properties<'a>;
    const NOUN: &'static str = "name";
    const PATH: Option<&'static str> = Some(FILE);
    const HAS_EXIST: bool = false;

    fn key(_stated: &Value) -> Option<String> {
        None
    }

    fn states(input: &Plain) -> Vec<Statement> {
        reply::states("the machine", input, &[Properties::NAME])
    }

    fn list(text: &str) -> Result<Vec<(String, Object)>, Failure> {
        let instance = |name: &str| ("hostname".to_owned(), [named(name)].into());
        Ok(name_in(text).into_iter().map(instance).collect())
    }
}

impl<'a> Stated<'a> for Properties<'a> {
    fn location(&self, cx: &Context) -> Result<Location<'a>, Failure> {
        Ok(Location::stated(cx, FILE, Missing::create_if(true)))
    }

    fn live(&self, cx: &Context) -> Option<Live> {
        let value = self.name.0.to_owned();
        cx.manages_running_system().then_some(Live { property: Properties::NAME, setting: Setting::HostName, value })
    }

    fn find(&self, text: &str) -> Result<Option<Object>, Failure> {
        Ok(Some([named(name_in(text).unwrap_or(WITHOUT_NAME))].into()))
    }

    fn put(&self, text: &str) -> Result<String, Failure> {
        Ok(put_entry(text, InForce::First, is_name, self.name.0))
    }

    fn remove(&self, text: &str) -> Result<String, Failure> {
        Ok(text.to_owned())
    }
}

/// The name in a text: its first line that is neither empty nor a comment.
fn name_in(text: &str) -> Option<&str> {
    text.lines().find(|line| is_name(line)).map(str::trim)
}

fn is_name(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim().starts_with('#')
}

fn named(name: &str) -> (String, Value) {
    (Properties::NAME.to_owned(), Value::from(name))
}
