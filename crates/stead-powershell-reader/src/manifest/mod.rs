//! Manifests of modules: `.psd1`, evaluated as PowerShell evaluates them, in its restricted language.

mod collation;
mod evaluate;
pub(crate) mod expression;
mod syntax;
mod value;
pub(crate) mod wildcard;

use std::collections::BTreeMap;

pub use evaluate::{Evaluate, evaluate, truth};
pub use syntax::{Entry, Expression, Link, Piece, Unary};
pub use value::Value;

/// The environment and variables that the values of a manifest can depend on.
pub struct Context<'a> {
    /// `$PSScriptRoot`: the folder of the manifest.
    pub folder: &'a str,
    /// The variables of the environment.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The variables by their names in lower case; `None` in a manifest, which has no other than those of its language.
    pub variables: Option<&'a BTreeMap<String, Value>>,
}

/// Why a manifest has no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestFault {
    /// Where.
    pub offset: usize,
    /// The mistake, in one sentence.
    pub message: String,
}

/// Evaluates a manifest: exactly one table.
///
/// Guarantees: nothing is run, whatever the text says; time and depth are bounded by the length of the text.
///
/// # Examples
/// ```
/// use stead_powershell_reader::manifest::{Context, read};
///
/// let context = Context { folder: "/modules/Web", environment: &|_| None, variables: None };
/// let text = "@{ ModuleVersion = '1.2'; RootModule = \"$PSScriptRoot/Web.psm1\"; Tags = 'a', 'b' }";
/// let manifest = read(text, &context).map_err(|fault| fault.message)?;
/// let text_of = |key: &str| manifest.get(key).and_then(|value| value.as_text());
/// assert_eq!(text_of("moduleversion"), Some("1.2"));
/// assert_eq!(text_of("RootModule"), Some("/modules/Web/Web.psm1"));
/// // Nothing is run, whatever the text says.
/// assert!(read("@{ ModuleVersion = (Get-Date) }", &context).is_err());
/// # Ok::<(), String>(())
/// ```
pub fn read(text: &str, context: &Context<'_>) -> Result<Value, ManifestFault> {
    let statements = expression::parse(text)?;
    let mut outputs = evaluate::outputs(&statements, context)?;
    match (outputs.pop(), outputs.is_empty()) {
        (Some(table @ Value::Table(_)), true) => Ok(table),
        _ => Err(ManifestFault { offset: 0, message: "a manifest must be exactly one table '@{ .. }'".to_owned() }),
    }
}

/// Returns whether two names are the same to PowerShell.
pub fn same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right) || (!left.is_ascii() && left.to_lowercase() == right.to_lowercase())
}
