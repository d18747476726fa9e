//! From SLS texts to declarations of states: what each file holds, with `include`, `extend` and `exclude` carried out.

use std::collections::BTreeSet;

use super::keyword::{Keyword, keyword};
use super::template::{self, Use};
use super::{Layout, Sls, codes, glob};
use stead_core::diag::{Diagnostic, any_error, nearest};
use stead_core::id::TypeName;
use stead_core::text::{self, Entry, Kind, Limits, Node, SourceId, Sources, Span, Spanned};

/// How states are written.
const FUNCTION: &str = "write 'id: module.function', or below the id 'module.function:' and a list of arguments";

/// The content of the files.
#[derive(Default)]
pub(super) struct Read {
    pub(super) declarations: Vec<Declaration>,
    pub(super) uses: Vec<Use>,
    /// `META` of the files.
    pub(super) meta: Vec<Entry>,
    /// The comment at the top of the first file.
    pub(super) comment: String,
    pub(super) includes: Vec<Include>,
    extensions: Vec<Declaration>,
    exclusions: Vec<Exclusion>,
    pub(super) findings: Vec<Diagnostic>,
}

/// A state function with its arguments, as declared.
#[derive(Clone)]
pub(super) struct Declaration {
    pub(super) id: Spanned<String>,
    pub(super) module: Spanned<String>,
    /// The type of its instances.
    pub(super) type_name: TypeName,
    /// Usually one; each makes an instance.
    pub(super) functions: Vec<String>,
    pub(super) arguments: Vec<Entry>,
    /// The reference of its file.
    pub(super) sls: String,
    /// The comment lines directly above the id, with the line breaks.
    pub(super) comment: String,
    /// `META` of the id.
    pub(super) meta: Option<Node>,
}

pub(super) struct Include {
    pub(super) reference: String,
    pub(super) span: Span,
}

/// The functions and the arguments in the list of a state.
type Arguments = (Vec<String>, Vec<Entry>);

/// The function and arguments behind a key such as `module.function`.
type Function = (Spanned<String>, TypeName, Arguments);

/// The purpose of a state in its file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StatePart {
    /// To be called.
    State,
    /// To say more of another, which has a function.
    Extension,
}

/// The file that a state of rendered files came from, as Idem writes it.
const RENDERED_FROM: &str = "__sls__";

/// Returns whether a key below an id is something else than a function.
fn is_about_state(key: &str) -> bool {
    key == "META" || key == RENDERED_FROM
}

enum Exclusion {
    Id(Spanned<String>),
    Sls(Spanned<String>),
}

/// Reads the files in their order.
pub(super) fn read(files: &[Sls], sources: &Sources) -> Read {
    let mut read = Read::default();
    for file in files {
        let Ok(source) = file.text else { continue };
        let Some(text) = sources.get(source).map(|source| source.text.as_str()) else { continue };
        if read.comment.is_empty() && read.declarations.is_empty() {
            read.comment = header(text);
        }
        if text.lines().map(str::trim_start).all(|line| line.is_empty() || line.starts_with('#')) {
            continue;
        }
        let before = read.findings.len();
        let masked = template::mask(source, text, &mut read.uses, &mut read.findings);
        if read.findings.len() > before {
            continue;
        }
        let (root, findings) = text::read(source, &masked, &Limits::default());
        let is_faulty = any_error(&findings);
        for mut finding in findings {
            finding.message = template::restored(&finding.message, &read.uses);
            read.findings.push(finding);
        }
        if let Some(root) = root.filter(|_| !is_faulty) {
            read.file(&FileView { reference: &file.reference, layout: file.layout, text, source }, root);
        }
    }
    read.extend();
    read.exclude();
    read
}

/// The file that is being read.
pub(super) struct FileView<'a> {
    pub(super) reference: &'a str,
    pub(super) layout: Layout,
    text: &'a str,
    source: SourceId,
}

impl Read {
    fn wrong(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.findings.push(Diagnostic::error(&codes::FORM, span, message).with_help(help));
    }

    /// Reports parameters in a value where none can stand; returns whether there were any.
    fn refuse_parameters(&mut self, node: &Node) -> bool {
        let marked = template::marked(node);
        self.findings.extend(marked.iter().map(|span| template::misplaced(*span)));
        !marked.is_empty()
    }

    fn file(&mut self, file: &FileView<'_>, root: Node) {
        self.requirements(file);
        let entries = match root.kind {
            Kind::Object(entries) => entries,
            Kind::Null => return,
            _ => {
                return self.wrong(root.span, "an SLS file must be an object", "write states as 'id:' with a function");
            }
        };
        for mut entry in entries {
            match &*entry.key {
                "include" | "exclude" if self.refuse_parameters(&entry.value) => {}
                "include" => self.include(file, entry.value),
                "exclude" => self.exclusion(entry.value),
                "META" => {
                    template::restore(&mut entry.value, &self.uses);
                    self.meta.push(entry);
                }
                "extend" => {
                    let Kind::Object(states) = entry.value.kind else {
                        self.wrong(entry.value.span, "'extend' must be an object", "its keys are ids of states");
                        continue;
                    };
                    for state in states {
                        let extensions = self.state(file, state, StatePart::Extension);
                        self.extensions.extend(extensions);
                    }
                }
                _ => {
                    let declarations = self.state(file, entry, StatePart::State);
                    self.declarations.extend(declarations);
                }
            }
        }
    }

    /// Blocks that wait for a state before they are rendered.
    fn requirements(&mut self, file: &FileView<'_>) {
        let mut at = 0;
        for line in file.text.split_inclusive('\n') {
            if line.starts_with("#!") && line.contains("require:") {
                let end = at + line.trim_end().len();
                let span = Span::new(file.source, template::offset(at), template::offset(end));
                let message = format!("the states below '{}' do not wait for it", line.trim_end());
                let finding = Diagnostic::warning(&codes::NOT_CARRIED, span, message);
                self.findings.push(finding.with_help("nothing is rendered between states: name it in 'dependsOn'"));
            }
            at += line.len();
        }
    }

    fn include(&mut self, file: &FileView<'_>, node: Node) {
        let Kind::Array(items) = node.kind else {
            return self.wrong(node.span, "'include' must be a list", "write each file behind a dash");
        };
        for item in items {
            let reference = item.as_str().and_then(|written| super::absolute(written, file));
            match reference {
                Some(reference) => self.includes.push(Include { reference, span: item.span }),
                None => self.wrong(item.span, "this is not a reference to an SLS file", "write it as 'folder.file'"),
            }
        }
    }

    fn exclusion(&mut self, node: Node) {
        let Kind::Array(items) = node.kind else {
            return self.wrong(node.span, "'exclude' must be a list", "write each file or id behind a dash");
        };
        for item in items {
            let named = |key: &str| item.get(key).and_then(Node::spanned_str);
            let owned = |text: Spanned<&str>| Spanned::new(text.value.to_owned(), text.span);
            if let Some(sls) = item.spanned_str().or_else(|| named("sls")) {
                self.exclusions.push(Exclusion::Sls(owned(sls)));
            } else if let Some(id) = named("id") {
                self.exclusions.push(Exclusion::Id(owned(id)));
            } else {
                let message = "each item of 'exclude' must be 'id: ID' or 'sls: FILE'";
                self.findings.push(Diagnostic::error(&codes::FORM, item.span, message));
            }
        }
    }

    /// The declarations below an id.
    fn state(&mut self, file: &FileView<'_>, entry: Entry, part: StatePart) -> Vec<Declaration> {
        if template::is_marked(&entry.key) {
            let finding = template::misplaced(entry.key_span);
            self.findings.push(finding.with_help("write the id out; use the parameter in 'name'"));
            return Vec::new();
        }
        let id = Spanned::new(String::from(&*entry.key), entry.key_span);
        let (mut meta, mut sls) = (None, None);
        let functions = match entry.value.kind {
            Kind::Object(members) if members.iter().any(|each| !is_about_state(&each.key)) => {
                let (about, functions): (Vec<Entry>, Vec<Entry>) =
                    members.into_iter().partition(|each| is_about_state(&each.key));
                for mut each in about {
                    if &*each.key == RENDERED_FROM {
                        sls = each.value.as_str().map(str::to_owned);
                        continue;
                    }
                    template::restore(&mut each.value, &self.uses);
                    meta.get_or_insert(each.value);
                }
                functions
            }
            Kind::String(key) => {
                let span = entry.value.span;
                vec![Entry { key: key.into(), key_span: span, value: Node { span, kind: Kind::Null } }]
            }
            _ => {
                self.wrong(entry.value.span, format!("the id '{}' has no state function", id.value), FUNCTION);
                return Vec::new();
            }
        };
        let comment = comment_above(file.text, id.span.start);
        let declared = functions.into_iter().filter_map(|each| self.function(each, part));
        let declared = declared.map(|(module, type_name, (functions, arguments))| Declaration {
            id: id.clone(),
            module,
            type_name,
            functions,
            arguments,
            sls: sls.clone().unwrap_or_else(|| file.reference.to_owned()),
            comment: comment.clone(),
            meta: meta.clone(),
        });
        declared.collect()
    }

    /// The module with the functions and the arguments of a key such as `module.function`.
    fn function(&mut self, entry: Entry, part: StatePart) -> Option<Function> {
        let Entry { key, key_span, value } = entry;
        if template::is_marked(&key) {
            self.findings.push(template::misplaced(key_span));
            return None;
        }
        let (mut functions, arguments) = self.arguments(value)?;
        let module = match key.rsplit_once('.') {
            Some((module, function)) => {
                functions.push(function.to_owned());
                module
            }
            None => &*key,
        };
        let type_name = match module.rsplit_once('.') {
            Some((area, name)) => TypeName::parse(&format!("Idem.{area}/{name}")),
            None => TypeName::parse(&format!("Idem/{module}")),
        };
        match type_name {
            Ok(type_name) if part == StatePart::Extension || functions.iter().any(|function| !function.is_empty()) => {
                Some((Spanned::new(module.to_owned(), key_span), type_name, (functions, arguments)))
            }
            _ => {
                self.wrong(key_span, format!("'{key}' is not a state function"), FUNCTION);
                None
            }
        }
    }

    /// The functions and the arguments in the list of a state.
    fn arguments(&mut self, node: Node) -> Option<Arguments> {
        let items = match node.kind {
            Kind::Array(items) => items,
            Kind::Null => Box::default(),
            _ => {
                let help = "write each argument behind a dash: '- name: value'";
                self.wrong(node.span, "the arguments of a state must be a list", help);
                return None;
            }
        };
        let (mut functions, mut arguments) = (Vec::new(), Vec::new());
        for item in items {
            match item.kind {
                Kind::String(_) if self.refuse_parameters(&item) => {}
                Kind::String(function) => functions.push(function.into()),
                Kind::Object(mut entries) => {
                    for entry in &mut entries {
                        self.argument(entry);
                    }
                    arguments.extend(entries);
                }
                _ => self.wrong(item.span, "this is not an argument", "write it as '- name: value'"),
            }
        }
        Some((functions, arguments))
    }

    /// Leaves parameters only where they become those of the document. What is not carried over is kept as written.
    fn argument(&mut self, entry: &mut Entry) {
        if template::is_marked(&entry.key) {
            return self.findings.push(template::misplaced(entry.key_span));
        }
        match keyword(&entry.key) {
            None | Some(Keyword::Name) => {}
            Some(Keyword::NotCarried(_)) => template::restore(&mut entry.value, &self.uses),
            Some(Keyword::Names) => self.names(&mut entry.value),
            Some(_) => drop(self.refuse_parameters(&entry.value)),
        }
    }

    /// Applies it to the arguments in `names`.
    fn names(&mut self, node: &mut Node) {
        match &mut node.kind {
            Kind::Array(items) => items.iter_mut().for_each(|item| self.names(item)),
            Kind::Object(entries) => {
                for entry in entries {
                    if template::is_marked(&entry.key) {
                        self.findings.push(template::misplaced(entry.key_span));
                    }
                    self.overrides(&mut entry.value);
                }
            }
            _ => drop(self.refuse_parameters(node)),
        }
    }

    /// Applies it to the arguments of a name.
    fn overrides(&mut self, node: &mut Node) {
        match &mut node.kind {
            Kind::Array(items) => items.iter_mut().for_each(|item| self.overrides(item)),
            Kind::Object(entries) => entries.iter_mut().for_each(|entry| self.argument(entry)),
            _ => {}
        }
    }

    /// Adds what `extend` says to the states that it names.
    fn extend(&mut self) {
        for extension in std::mem::take(&mut self.extensions) {
            if let Some(extended) = self.declared(&extension.id.value, &extension.module.value) {
                extended.extend(extension);
                continue;
            }
            // Without a function, all of the key is the module.
            let module = extension.as_module().unwrap_or_default();
            if let Some(extended) = self.declared(&extension.id.value, &module) {
                let functions = extension.functions.iter().rev().skip(1).rev().cloned().collect();
                extended.extend(Declaration { functions, ..extension });
                continue;
            }
            let Declaration { id, module, .. } = &extension;
            let message = format!("'extend' names '{}' ({}), which does not exist", id.value, module.value);
            let finding = Diagnostic::error(&codes::UNKNOWN_STATE, id.span, message);
            let ids = self.declarations.iter().map(|each| each.id.value.as_str());
            self.findings.push(match nearest(&id.value, ids) {
                Some(meant) if meant != id.value => finding.with_help(format!("did you mean '{meant}'?")),
                _ => finding.with_help("include the file that declares it"),
            });
        }
    }

    /// The declaration of a module below an id.
    fn declared(&mut self, id: &str, module: &str) -> Option<&mut Declaration> {
        self.declarations.iter_mut().find(|each| each.id.value == id && each.module.value == module)
    }

    fn exclude(&mut self) {
        let mut excluded: BTreeSet<String> = BTreeSet::new();
        for exclusion in std::mem::take(&mut self.exclusions) {
            let matches = |each: &Declaration| match &exclusion {
                Exclusion::Id(id) => each.id.value == id.value,
                Exclusion::Sls(sls) => glob::matches(&sls.value, &each.sls),
            };
            let before = excluded.len();
            excluded.extend(self.declarations.iter().filter(|each| matches(each)).map(|each| each.id.value.clone()));
            if excluded.len() == before {
                let (what, named) = match &exclusion {
                    Exclusion::Id(id) => ("id", id),
                    Exclusion::Sls(sls) => ("file", sls),
                };
                let message = format!("'exclude' names the {what} '{}', which does not exist", named.value);
                self.findings
                    .push(Diagnostic::error(&codes::UNKNOWN_STATE, named.span, message).with_help("remove it"));
            }
        }
        self.declarations.retain(|each| !excluded.contains(&each.id.value));
    }
}

impl Declaration {
    /// Returns the whole key, `MODULE.FUNCTION`, which may itself be the name of a module; `None` without a function.
    fn as_module(&self) -> Option<String> {
        self.functions.last().map(|function| format!("{}.{function}", self.module.value))
    }

    /// Requisites are added; other arguments and the function replace those that there are.
    fn extend(&mut self, by: Self) {
        if !by.functions.is_empty() {
            self.functions = by.functions;
        }
        for argument in by.arguments {
            let is_added = matches!(
                keyword(&argument.key),
                Some(Keyword::Requisite(_) | Keyword::RequisiteIn(_) | Keyword::ArgBind)
            );
            match self.arguments.iter_mut().find(|each| each.key == argument.key) {
                Some(former) if !is_added => *former = argument,
                _ => self.arguments.push(argument),
            }
        }
    }

    /// The values of an argument, of which the last counts unless they are added up.
    pub(super) fn values(&self, wanted: Keyword) -> impl Iterator<Item = &Entry> {
        self.arguments.iter().filter(move |each| keyword(&each.key) == Some(wanted))
    }
}

/// The comment lines at the top, if a blank line separates them from what follows.
fn header(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').take_while(|line| line.starts_with('#')).collect();
    let is_separate = text.lines().nth(lines.len()).is_none_or(|line| line.trim().is_empty());
    let comments = lines.into_iter().filter(|line| is_separate && !line.starts_with("#!"));
    comments.collect()
}

/// The comment lines directly above a place at the start of a line.
///
/// Guarantees: nothing of a block scalar, the lines of which are indented.
fn comment_above(text: &str, start: u32) -> String {
    let above = text.get(..start as usize).unwrap_or_default();
    let is_comment = |line: &&str| line.starts_with('#') && !line.starts_with("#!");
    let mut lines: Vec<&str> = above.lines().rev().take_while(is_comment).collect();
    lines.reverse();
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}
