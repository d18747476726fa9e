//! Pages about runs and plans: one file that any browser shows, without a network and without a script.
//!
//! What a page is about is a [`Page`]; whoever has a run or a plan makes one of it. [`html`] makes the file, and [`svg`] the
//! graph alone. Templates are checked when this is compiled, and everything that comes from elsewhere is a [`Text`]: escaped
//! where it is written, and with what would steer a reader's eye made visible.
//!
//! [`table`], [`json`], [`pretty`] and [`yaml`] are the same for terminals.

mod data;
mod drawing;
mod html;
mod junit;
mod layout;
mod page;
mod table;
mod timeline;

pub use data::{json, pretty, yaml};
pub use drawing::svg;
pub use html::{BEGIN, html};
pub use junit::{Case, Suite, junit};
pub use page::{Act, Attempt, Call, Ending, Instance, Line, Need, Outcome, Page, Parameter, Text, human};
pub use table::{natural_width, table};
