//! A call as a script of PowerShell, for whoever wants to see or repeat what is done.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use stead_core::call::Operation;
use stead_powershell_reader::resource::{DefinitionKind, Resource};

use crate::convert::Wire;

/// Where a call is made.
pub(crate) struct Place<'p> {
    pub(crate) directory: &'p Path,
    /// The folder of the document as programs know it.
    pub(crate) root: &'p Path,
    /// The directories of modules.
    pub(crate) paths: &'p [PathBuf],
}

/// Returns a script that does in a PowerShell of its own what a call does; `None` for what has no file or no such method.
pub(crate) fn of(
    resource: &Resource,
    module: &Path,
    operation: Operation,
    properties: &[(String, Wire)],
    place: &Place<'_>,
) -> Option<String> {
    let method = match operation {
        Operation::Get => "Get",
        Operation::Test => "Test",
        Operation::Set => "Set",
        Operation::Delete | Operation::Export => return None,
    };
    let module = module.to_str().filter(|path| path.starts_with('/'))?;
    let mut script = format!("# {}: {method}\n$ErrorActionPreference = 'Stop'\n", resource.name);
    let paths: Vec<&str> = place.paths.iter().filter_map(|path| path.to_str()).collect();
    if !paths.is_empty() {
        let own = text(&paths.join(":"));
        let _ = writeln!(script, "$env:PSModulePath = {own} + [IO.Path]::PathSeparator + $env:PSModulePath");
    }
    let _ = writeln!(script, "Set-Location -LiteralPath {}", text(place.directory.to_str()?));
    let _ = writeln!(script, "$env:DSC_CONFIG_ROOT = {}", text(place.root.to_str()?));
    // A path is a pattern there.
    let _ = writeln!(
        script,
        "$module = @(Import-Module -Name ([WildcardPattern]::Escape({})) -PassThru)[-1]",
        text(module)
    );
    match resource.kind {
        DefinitionKind::Class => of_class(&mut script, resource, method, properties),
        DefinitionKind::Script => of_script(&mut script, method, properties),
        DefinitionKind::Composite => return None,
    }
    Some(script)
}

/// The output of a method, as text.
fn shown(method: &str) -> &'static str {
    if method == "Get" { " | ConvertTo-Json -Depth 20 -EnumsAsStrings" } else { "" }
}

fn of_class(script: &mut String, resource: &Resource, method: &str, properties: &[(String, Wire)]) {
    let _ = writeln!(
        script,
        "$type = @($module) + @($module.NestedModules) | Where-Object SessionState | ForEach-Object {{ \
         & $_ {{ param($name) $name -as [type] }} {} }} | Select-Object -First 1\n$resource = $type::new()",
        text(&resource.name)
    );
    for (name, value) in properties {
        let _ = writeln!(script, "$resource.{} = {}", member(name), literal(value));
    }
    let _ = writeln!(script, "$resource.{method}(){}", shown(method));
}

fn of_script(script: &mut String, method: &str, properties: &[(String, Wire)]) {
    script.push_str("$properties = @{\n");
    for (name, value) in properties {
        let _ = writeln!(script, "    {} = {}", text(name), literal(value));
    }
    let _ = writeln!(script, "}}\n$command = $module.ExportedCommands['{method}-TargetResource']");
    if method == "Get" {
        script.push_str("@($properties.Keys) | Where-Object { $_ -notin $command.Parameters.Keys } | ForEach-Object { $properties.Remove($_) }\n");
    }
    let _ = writeln!(script, "& $command @properties{}", shown(method));
}

/// The name of a property behind a dot.
fn member(name: &str) -> String {
    let is_plain = |text: &str| text.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    if is_plain(name) { name.to_owned() } else { text(name) }
}

/// A text in single quotes. PowerShell takes four characters for one.
fn text(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('\'');
    for one in value.chars() {
        quoted.push(one);
        if matches!(one, '\'' | '\u{2018}'..='\u{201b}') {
            quoted.push(one);
        }
    }
    quoted.push('\'');
    quoted
}

fn literal(value: &Wire) -> String {
    let table = |kind: &str, members: &[(String, Wire)]| {
        let members = members.iter().map(|(name, value)| format!("{} = {}", text(name), literal(value)));
        format!("{kind}@{{ {} }}", members.collect::<Vec<_>>().join("; "))
    };
    let secure = |secret: &str| format!("(ConvertTo-SecureString {} -AsPlainText -Force)", text(secret));
    match value {
        Wire::Null => "$null".to_owned(),
        Wire::Bool(truth) => format!("${truth}"),
        Wire::String(value) => text(value),
        Wire::Integer(digits) if digits.parse::<i64>().is_ok() => digits.clone(),
        Wire::Integer(digits) if digits.parse::<u64>().is_ok() => format!("[ulong]'{digits}'"),
        Wire::Integer(digits) => format!("[bigint]'{digits}'"),
        Wire::Double(digits) => format!("[double]'{digits}'"),
        Wire::Decimal(digits) => format!("[decimal]'{digits}'"),
        // A comma in front keeps an array of one an array.
        Wire::Array(items) => match items.as_slice() {
            [only] => format!("@(, {})", literal(only)),
            items => format!("@({})", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        },
        Wire::Hashtable(members) => table("", members),
        Wire::Ordered(members) => table("[ordered]", members),
        Wire::Object(members) => table("[pscustomobject]", members),
        Wire::Credential(user, password) => format!("[pscredential]::new({}, {})", text(user), secure(password)),
        Wire::SecureString(secret) => secure(secret),
        Wire::CimInstance(class, members) => {
            format!("(New-CimInstance -ClassName {} -ClientOnly -Property {})", text(class), table("", members))
        }
    }
}
