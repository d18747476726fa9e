//! Schemas of script resources: `.schema.mof`.
//!
//! A file that PowerShell refuses is an error where its meaning is not clear either; where it is clear, it is read and
//! there is a warning at the place that PowerShell refuses.

mod check;
mod convert;
mod declaration;
mod decode;
mod lex;
mod parse;
mod qualifier;

use std::path::PathBuf;
use std::sync::Arc;

use stead_core::diag::codes::powershell::module as codes;
use stead_core::diag::{Code, Severity};

pub use declaration::{ClassDeclaration, PropertyDeclaration, Qualifier, Qualifiers, Shape, Value};

use crate::finding::ModuleFinding;
use crate::resource::Resource;
use crate::text::Text;

/// The content of a schema.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The classes as declared; none if the file cannot be read.
    pub classes: Vec<ClassDeclaration>,
    /// The resources: classes that derive from `OMI_BaseResource`. At most one, because its name is that of the file.
    pub resources: Vec<Resource>,
    /// The mistakes, by place.
    pub findings: Vec<ModuleFinding>,
}

/// Reads a schema.
///
/// Guarantees: bad input produces findings, never a panic; an error means that there is no resource. The implementation of
/// the resource is the schema itself: who knows the folder replaces it.
///
/// # Examples
/// ```
/// use std::path::PathBuf;
/// use std::sync::Arc;
///
/// use stead_powershell_reader::mof::read;
///
/// let file = Arc::new(PathBuf::from("MSFT_Site.schema.mof"));
/// let text = "
/// [ClassVersion(\"1.0.0\"), FriendlyName(\"Site\")] class MSFT_Site : OMI_BaseResource {
///     [Key] String Name;
///     [Write, ValueMap{\"Present\", \"Absent\"}, Values{\"Present\", \"Absent\"}] String Ensure;
///     [Read] UInt32 Sessions;
/// };
/// ";
/// let schema = read(text.as_bytes(), &file);
/// let site = &schema.resources[0];
/// assert_eq!((site.name.as_str(), site.class_name.as_deref()), ("Site", Some("MSFT_Site")));
/// let read_only: Vec<bool> = site.properties.iter().map(|property| property.read_only).collect();
/// assert_eq!(read_only, [false, false, true]);
/// // Bad input produces findings, never a panic.
/// assert!(!read(b"class {", &file).findings.is_empty());
/// ```
pub fn read(bytes: &[u8], file: &Arc<PathBuf>) -> Schema {
    let text = match decode::decode(bytes) {
        Ok(text) => text,
        Err(fault) => return Schema::refused(vec![fault.finding(&Text::new(String::new()), file)]),
    };
    let mut faults = Vec::new();
    if let Some(offset) = decode::misread(bytes) {
        let message =
            "PowerShell reads these bytes as text of the code page of Windows, because the file has no byte order mark";
        faults
            .push(MofFault::ignored(offset, message.to_owned()).help("save the file as UTF-8 with a byte order mark"));
    }
    let parsed = match parse::parse(text.as_str()) {
        Ok(parsed) => parsed,
        Err(fault) => return Schema::refused(vec![fault.finding(&text, file)]),
    };
    faults.extend(check::check(&parsed, file));
    faults.extend(parsed.refused);
    let resources = convert::resources(&parsed.classes, &text, file, &mut faults);
    let refused = faults.iter().any(|fault| fault.severity == Severity::Error);
    let mut findings: Vec<_> = faults.iter().map(|fault| fault.finding(&text, file)).collect();
    findings.sort_by_key(|finding| finding.place);
    Schema { resources: if refused { Vec::new() } else { resources }, classes: parsed.classes, findings }
}

impl Schema {
    fn refused(findings: Vec<ModuleFinding>) -> Self {
        Self { findings, ..Self::default() }
    }
}

/// Something wrong at an offset.
#[derive(Clone, Debug)]
struct MofFault {
    code: Code,
    severity: Severity,
    offset: usize,
    message: String,
    help: Option<String>,
}

impl MofFault {
    fn new(code: Code, severity: Severity, offset: usize, message: String) -> Self {
        Self { code, severity, offset, message, help: None }
    }

    /// Not the grammar of MOF.
    fn syntax(offset: usize, message: String) -> Self {
        Self::new(&codes::SCHEMA_SYNTAX, Severity::Error, offset, message)
    }

    /// Against a rule of MOF or DSC.
    fn invalid(offset: usize, message: String) -> Self {
        Self::new(&codes::SCHEMA_INVALID, Severity::Error, offset, message)
    }

    /// Clear, and refused by PowerShell.
    fn refused(offset: usize, message: String) -> Self {
        Self::new(&codes::SCHEMA_REFUSED, Severity::Warning, offset, message)
    }

    /// Read by PowerShell as something else, or not at all.
    fn ignored(offset: usize, message: String) -> Self {
        Self::new(&codes::SCHEMA_IGNORED, Severity::Warning, offset, message)
    }

    fn help(mut self, help: &str) -> Self {
        self.help = Some(help.to_owned());
        self
    }

    fn finding(&self, text: &Text, file: &Arc<PathBuf>) -> ModuleFinding {
        ModuleFinding {
            code: self.code,
            severity: self.severity,
            message: self.message.clone(),
            help: self.help.clone(),
            file: file.clone(),
            place: text.place(self.offset),
        }
    }
}
