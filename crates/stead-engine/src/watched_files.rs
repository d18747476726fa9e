//! Files after whose change a service restarts, and that neither the machine nor the document has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stead_core::claims::Claim;
use stead_core::diag::{Diagnostic, Meant};
use stead_core::expr::Template;
use stead_core::graph::Role;
use stead_core::graph::codes::UNKNOWN_FILE;
use stead_core::text::Kind;
use stead_resources::builtin_of;
use stead_system::fs::SystemRoot;

use crate::prepared::Prepared;
use crate::session::Session;

/// Properties of built-in types that are lists of files whose changes count.
pub(crate) const WATCHED: [&str; 2] = ["restartedAfter", "reloadedAfter"];
/// Names with fewer letters in front of the dot are all near to each other.
const SHORT: usize = 2;

impl Session {
    /// Warnings about what is not read as it was meant, for a run: it looks at the machine as well.
    pub fn misreadings(&self, prepared: &Prepared) -> Vec<Diagnostic> {
        let mut found = prepared.misreadings();
        found.extend(self.unknown_files(prepared));
        found
    }

    /// A warning for each file that restarts a service, that does not exist, and that is a letter away from one that the document
    /// manages.
    fn unknown_files(&self, prepared: &Prepared) -> Vec<Diagnostic> {
        let graph = &prepared.graph;
        // Few instances have such a property, and looking for the type takes longer.
        let instances = graph.iter().filter(|(_, node)| node.role == Role::Instance);
        let lists: Vec<&[Template]> = instances
            .filter_map(|(id, node)| Some((node, graph.declaration(id).properties.as_ref()?)))
            .flat_map(|(node, properties)| WATCHED.iter().filter_map(move |name| Some((node, properties.get(name)?))))
            .filter(|(node, _)| builtin_of(&node.manifest).is_some())
            .filter_map(|(_, list)| if let Kind::Array(files) = &list.kind { Some(&**files) } else { None })
            .collect();
        if lists.is_empty() {
            return Vec::new();
        }
        let known = self.known(prepared, true);
        let claims = known.iter().filter_map(|known| known.claims.as_ref()).flat_map(|claims| &claims.0);
        let managed: BTreeSet<&Path> = claims.map(|Claim::Path { path, .. }| &**path).collect();
        let unknown = |file: &Template, others: &[Template]| self.unknown_file(file, others, &managed, prepared);
        lists
            .into_iter()
            .flat_map(|files| files.iter().filter_map(|file| unknown(file, files)).collect::<Vec<_>>())
            .collect()
    }

    fn unknown_file(
        &self,
        file: &Template,
        others: &[Template],
        managed: &BTreeSet<&Path>,
        prepared: &Prepared,
    ) -> Option<Diagnostic> {
        let text = file.as_str()?;
        let within = Path::new(text).strip_prefix("/").ok()?;
        let root = self.system_root().unwrap_or(Path::new("/"));
        let path = root.join(within);
        if managed.contains(&*path) || SystemRoot::below(root).at(within).status().is_some() {
            return None;
        }
        let name = path.file_name()?.to_str()?;
        let beside = managed.iter().filter(|other| other.parent() == path.parent());
        let names: Vec<&str> = beside.filter_map(|other| other.file_name()?.to_str()).collect();
        let meant = Meant::word(name, names.iter().copied())?
            .certain()
            .filter(|meant| is_typing_error(name, meant))?
            .to_owned();
        let meant = Path::new(text).with_file_name(meant);
        let is_watched = |other: &Template| other.as_str().map(PathBuf::from).as_ref() == Some(&meant);
        if others.iter().any(is_watched) {
            return None;
        }
        let message = format!("'{text}' does not exist, and the document does not create it");
        let finding = Diagnostic::warning(&UNKNOWN_FILE, file.span, message);
        let meant = Meant::only(meant.display().to_string());
        Some(finding.with_meant(text, &meant, prepared.sources.text(file.span)))
    }
}

/// Returns whether two names that differ in a letter are hardly names of two files, such as `site1` and `site2`.
fn is_typing_error(one: &str, other: &str) -> bool {
    let letters = |name: &str| name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let stem = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let is_short = stem(one).chars().count() <= SHORT && stem(one) != stem(other);
    letters(one) != letters(other) && !is_short
}
