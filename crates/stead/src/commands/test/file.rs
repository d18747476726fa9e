//! Files of tests: what each test starts from, and what it expects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stead_core::diag::codes::test as codes;
use stead_core::diag::{Diagnostic, any_error, did_you_mean, nearest};
use stead_core::parameters::Supplied;
use stead_core::text::{self, Entry, Form, Kind, Limits, Node, Source, SourceId, Sources, Span, Spanned};
use stead_core::value::Value;
use stead_host::facts::Labels;
use stead_system::fs::parse_mode;

/// How names of files of tests end, and what they are called without that end.
const ENDINGS: [(&str, &str); 3] = [(".test.yaml", ".yaml"), (".test.yml", ".yml"), (".test.json", ".json")];

/// Returns whether a file has tests, by its name.
pub(super) fn has_tests(path: &Path) -> bool {
    document_beside(path).is_some()
}

/// The file of tests beside a document.
pub(super) fn file_beside(document: &Path) -> PathBuf {
    let name = document.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let of = |(ending, without): (&str, &str)| {
        Some(document.with_file_name(format!("{}{ending}", name.strip_suffix(without)?)))
    };
    ENDINGS.into_iter().find_map(of).unwrap_or_else(|| document.with_file_name(format!("{name}.test.yaml")))
}

/// The document that a file of tests is about unless it says otherwise.
fn document_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let of =
        |(ending, without): (&str, &str)| Some(path.with_file_name(format!("{}{without}", name.strip_suffix(ending)?)));
    ENDINGS.into_iter().find_map(of)
}

/// A file of tests.
pub(super) struct TestFile {
    /// Where it is.
    pub(super) path: PathBuf,
    pub(super) tests: Vec<Test>,
    /// Its text alone, of which messages show places alone where tests have parameters.
    pub(super) sources: Sources,
}

/// A test of a document.
pub(super) struct Test {
    pub(super) name: Spanned<String>,
    pub(super) document: PathBuf,
    pub(super) given: Given,
    pub(super) expected: Expected,
}

/// The start of a test.
#[derive(Default)]
pub(super) struct Given {
    pub(super) parameters: Supplied,
    /// Files of parameters, over which the parameters win.
    pub(super) parameter_files: Vec<Spanned<PathBuf>>,
    pub(super) labels: Labels,
    pub(super) root: Root,
    /// Folders that are there besides.
    pub(super) folders: Vec<PathBuf>,
    pub(super) files: Vec<(PathBuf, GivenFile)>,
    /// The types that run although they reach beyond the root.
    pub(super) run: Vec<Spanned<String>>,
}

/// The root that a test begins with.
#[derive(Default)]
pub(super) enum Root {
    /// The usual folders and files of a machine.
    #[default]
    Machine,
    /// Nothing.
    Empty,
    /// The content of a folder.
    Copy(PathBuf),
}

/// A file that is there when a test begins.
#[derive(Default)]
pub(super) struct GivenFile {
    pub(super) content: String,
    pub(super) mode: Option<u32>,
}

/// The expectations of a test.
#[derive(Default)]
pub(super) struct Expected {
    pub(super) plan: Option<ExpectedPlan>,
    pub(super) files: Vec<(Spanned<String>, ExpectedFile)>,
    /// Instances as documents have them, which are in their desired state afterwards.
    pub(super) resources: Option<Node>,
    pub(super) findings: Option<Spanned<Vec<Spanned<String>>>>,
    /// The instances that fail, and a part of the message of each.
    pub(super) failures: Vec<(Spanned<String>, Spanned<String>)>,
    pub(super) outputs: Vec<(Spanned<String>, Value)>,
}

impl Expected {
    /// Returns whether something is expected of a run, and not of the document alone.
    pub(super) fn needs_a_run(&self) -> bool {
        let is_without = self.files.is_empty() && self.failures.is_empty() && self.outputs.is_empty();
        !is_without || self.plan.is_some() || self.resources.is_some()
    }
}

/// The expectations of a plan.
pub(super) enum ExpectedPlan {
    /// No change at all.
    Unchanged(Span),
    /// This, of these instances.
    Instances(Vec<(Spanned<String>, Spanned<Planned>)>),
}

/// The change of an instance that a plan shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Planned {
    Create,
    Change,
    Replace,
    Remove,
    Unchanged,
    Skipped,
    Unknown,
}

impl Planned {
    const ALL: [Self; 7] =
        [Self::Create, Self::Change, Self::Replace, Self::Remove, Self::Unchanged, Self::Skipped, Self::Unknown];

    /// The word that files of tests have for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Replace => "replace",
            Self::Remove => "remove",
            Self::Unchanged => "unchanged",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
        }
    }
}

/// The expectations of a path.
pub(super) struct ExpectedFile {
    /// False where nothing is to be there.
    pub(super) exists: bool,
    pub(super) content: Option<Spanned<String>>,
    pub(super) contains: Vec<Spanned<String>>,
    pub(super) lacks: Vec<Spanned<String>>,
    pub(super) mode: Option<Spanned<u32>>,
    pub(super) target: Option<Spanned<String>>,
    pub(super) kind: Option<Spanned<String>>,
}

impl ExpectedFile {
    /// Anything at that path.
    fn there() -> Self {
        let (contains, lacks) = (Vec::new(), Vec::new());
        Self { exists: true, content: None, contains, lacks, mode: None, target: None, kind: None }
    }
}

const OF_FILE: &[&str] = &["document", "tests"];
const OF_TEST: &[&str] = &["document", "expect", "given", "name"];
const OF_GIVEN: &[&str] = &["files", "folders", "labels", "parameters", "parametersFile", "root", "run"];
const OF_EXPECTED: &[&str] = &["failures", "files", "findings", "outputs", "plan", "resources"];
const OF_GIVEN_FILE: &[&str] = &["content", "mode"];
const OF_EXPECTED_FILE: &[&str] = &["contains", "content", "exists", "kind", "lacks", "mode", "target"];
/// The kinds of files.
pub(super) const KINDS: [&str; 3] = ["file", "directory", "link"];

/// Reads a file of tests; `Err` where something is wrong with it.
pub(super) fn read(path: &Path, text: String) -> Result<TestFile, (Vec<Diagnostic>, Sources)> {
    let mut sources = Sources::default();
    let source = sources.add(Source::new(path.display().to_string(), text));
    let (root, findings) = tree(source, &sources);
    let form = Form { findings, ..Form::new(&codes::FORM) };
    let mut reader = Reader { folder: stead_engine::folder_of(path), has_parameters: false, form };
    let beside = document_beside(path).unwrap_or_else(|| path.to_owned());
    let tests = root.map(|root| reader.file(&root, &beside)).unwrap_or_default();
    let sources = if reader.has_parameters { private(&sources) } else { sources };
    if any_error(&reader.form.findings) {
        Err((reader.form.findings, sources))
    } else {
        Ok(TestFile { path: path.to_owned(), tests, sources })
    }
}

/// The texts, of which messages show places alone: parameters may be secrets.
fn private(sources: &Sources) -> Sources {
    let mut private = Sources::default();
    for (_, source) in sources.iter() {
        private.add(source.clone().private());
    }
    private
}

fn tree(source: SourceId, sources: &Sources) -> (Option<Node>, Vec<Diagnostic>) {
    sources.get(source).map(|found| text::read(source, &found.text, &Limits::default())).unwrap_or_default()
}

struct Reader {
    /// The folder that paths of the file start in.
    folder: PathBuf,
    /// True if a test has some, which may be secrets.
    has_parameters: bool,
    form: Form,
}

impl Reader {
    fn file(&mut self, root: &Node, beside: &Path) -> Vec<Test> {
        if root.get("tests").is_none() && root.get("resources").is_some() {
            self.form.wrong(
                root.span,
                "this is a document, not a file of tests",
                "'stead new test FILE' writes a test of it, and 'stead test' runs that",
            );
            return Vec::new();
        }
        self.form.check_members(root, OF_FILE, "a file of tests");
        let document = self.document(root).unwrap_or_else(|| beside.to_owned());
        let Some(tests) = root.get("tests") else {
            self.form.wrong(
                root.span,
                "a file of tests must have 'tests'",
                "write each test behind a '-', with a 'name'",
            );
            return Vec::new();
        };
        self.check_is_not_empty(tests, "'tests'");
        let tests: Vec<Test> =
            self.form.items(tests, "'tests'").iter().filter_map(|test| self.test(test, &document)).collect();
        let mut seen = BTreeSet::new();
        for test in tests.iter().filter(|test| !seen.insert(test.name.value.clone())) {
            self.form.wrong(
                test.name.span,
                format!("two tests are named '{}'", test.name.value),
                "give each a name of its own",
            );
        }
        tests
    }

    fn document(&mut self, node: &Node) -> Option<PathBuf> {
        let text = self.form.text(node.get("document")?, "'document'")?;
        Some(self.folder.join(text.value))
    }

    fn test(&mut self, node: &Node, document: &Path) -> Option<Test> {
        self.form.check_members(node, OF_TEST, "a test");
        let document = self.document(node).unwrap_or_else(|| document.to_owned());
        let given = node.get("given").map(|given| self.given(given)).unwrap_or_default();
        let expected = node.get("expect").map(|expected| self.expected(expected)).unwrap_or_default();
        let Some(name) = node.get("name") else {
            self.form.wrong(node.span, "'name' is missing in a test", "say in a few words what it shows");
            return None;
        };
        Some(Test { name: self.form.text(name, "'name'")?, document, given, expected })
    }

    fn given(&mut self, node: &Node) -> Given {
        self.form.check_members(node, OF_GIVEN, "'given'");
        let parameters = self.form.members(node.get("parameters"), "'parameters'");
        self.has_parameters |= !parameters.is_empty();
        let values = parameters.iter().map(|entry| (entry.key.to_string(), entry.value.literal())).collect();
        let places = parameters.iter().map(|entry| (entry.key.to_string(), entry.value.span)).collect();
        let labels = node.get("labels").map(|labels| {
            let (labels, findings) = Labels::stated(labels);
            self.form.findings.extend(findings);
            labels
        });
        let parameter_files =
            node.get("parametersFile").map(|files| self.texts(files, "'parametersFile'")).unwrap_or_default();
        let at = |file: Spanned<String>| Spanned { value: self.folder.join(file.value), span: file.span };
        let parameter_files = parameter_files.into_iter().map(at).collect();
        let root = node.get("root").and_then(|root| self.form.text(root, "'root'"));
        let root = root.map(|root| match root.value.as_str() {
            "empty" => Root::Empty,
            folder => Root::Copy(self.folder.join(folder)),
        });
        let folders = node.get("folders").map(|folders| self.texts(folders, "'folders'")).unwrap_or_default();
        let folders = folders.iter().filter_map(|folder| self.path(&folder.value, folder.span)).collect();
        let files = self.form.members(node.get("files"), "'files'").iter();
        let files = files
            .filter_map(|entry| Some((self.path(&entry.key, entry.key_span)?, self.given_file(&entry.value)?)))
            .collect();
        let run = node.get("run").map(|run| self.texts(run, "'run'")).unwrap_or_default();
        Given {
            parameters: Supplied { values, places },
            parameter_files,
            labels: labels.unwrap_or_default(),
            root: root.unwrap_or_default(),
            folders,
            files,
            run,
        }
    }

    /// A path below the root of a test, as that names it.
    fn path(&mut self, text: &str, span: Span) -> Option<PathBuf> {
        let path = Path::new(text);
        let is_below =
            path.is_absolute() && path.components().all(|each| each.as_os_str() != "..") && path.parent().is_some();
        if !is_below {
            let message = format!("'{}' is not an absolute path", text.escape_debug());
            self.form.wrong(span, message, "begin it with '/', which is the root of the test, without '..'");
        }
        is_below.then(|| path.strip_prefix("/").unwrap_or(path).to_owned())
    }

    fn given_file(&mut self, node: &Node) -> Option<GivenFile> {
        if node.entries().is_none() {
            return Some(GivenFile { content: self.form.text(node, "a file")?.value, mode: None });
        }
        self.form.check_members(node, OF_GIVEN_FILE, "a file");
        let content = node.get("content").and_then(|content| self.form.text(content, "'content'"));
        let mode = node.get("mode").and_then(|mode| self.mode(mode)).map(|mode| mode.value);
        Some(GivenFile { content: content.map(|content| content.value).unwrap_or_default(), mode })
    }

    fn expected(&mut self, node: &Node) -> Expected {
        self.form.check_members(node, OF_EXPECTED, "'expect'");
        let files = self.form.members(node.get("files"), "'files'").iter();
        let files =
            files.filter_map(|entry| Some((self.named_path(entry)?, self.expected_file(&entry.value)?))).collect();
        let findings = node.get("findings").map(|codes| Spanned { value: self.codes(codes), span: codes.span });
        let failures = self.form.members(node.get("failures"), "'failures'").iter();
        let failures =
            failures.filter_map(|entry| Some((name_of(entry), self.form.text(&entry.value, "a message")?))).collect();
        let outputs = self.form.members(node.get("outputs"), "'outputs'").iter();
        let outputs = outputs.map(|entry| (name_of(entry), entry.value.literal())).collect();
        let resources = node.get("resources").filter(|resources| !self.form.items(resources, "'resources'").is_empty());
        if let Some(stated) = node.get("resources") {
            self.check_is_not_empty(stated, "'resources'");
        }
        let plan = node.get("plan").map(|plan| self.plan(plan));
        Expected { plan, files, resources: resources.cloned(), findings, failures, outputs }
    }

    fn named_path(&mut self, entry: &Entry) -> Option<Spanned<String>> {
        let path = self.path(&entry.key, entry.key_span)?.display().to_string();
        Some(Spanned { value: path, span: entry.key_span })
    }

    fn codes(&mut self, node: &Node) -> Vec<Spanned<String>> {
        let codes = self.texts(node, "'findings'");
        for code in &codes {
            if crate::codes::all().iter().all(|known| known.id != code.value) {
                let message = format!("there is no code '{}'", code.value.escape_debug());
                self.form.findings.push(
                    Diagnostic::error(&codes::NAME, code.span, message)
                        .with_help("'stead lint' prints codes as 'E0501'"),
                );
            }
        }
        codes
    }

    fn plan(&mut self, node: &Node) -> ExpectedPlan {
        if node.as_str() == Some(Planned::Unchanged.word()) {
            return ExpectedPlan::Unchanged(node.span);
        }
        let entries = self.form.members(Some(node), "'plan'");
        let stated = entries.iter().filter_map(|entry| Some((name_of(entry), self.planned(&entry.value)?)));
        ExpectedPlan::Instances(stated.collect())
    }

    fn planned(&mut self, node: &Node) -> Option<Spanned<Planned>> {
        let stated = self.form.text(node, "what a plan shows")?;
        let found = Planned::ALL.into_iter().find(|planned| planned.word() == stated.value);
        if found.is_none() {
            let words = Planned::ALL.map(Planned::word);
            let near = nearest(&stated.value, words).map(did_you_mean);
            let help = near.unwrap_or_else(|| format!("a plan shows {}", words.join(", ")));
            self.form.wrong(
                node.span,
                format!("'{}' is not an action that a plan shows", stated.value.escape_debug()),
                &help,
            );
        }
        Some(Spanned { value: found?, span: node.span })
    }

    fn expected_file(&mut self, node: &Node) -> Option<ExpectedFile> {
        let there = ExpectedFile::there();
        if matches!(node.kind, Kind::Null) {
            return Some(ExpectedFile { exists: false, ..there });
        }
        if node.entries().is_none() {
            return Some(ExpectedFile { content: Some(self.form.text(node, "a file")?), ..there });
        }
        self.form.check_members(node, OF_EXPECTED_FILE, "a file");
        self.check_nothing_more(node);
        let mut text = |name: &str| node.get(name).and_then(|node| self.form.text(node, &format!("'{name}'")));
        let (content, target, kind) = (text("content"), text("target"), text("kind"));
        if let Some(kind) = kind.as_ref().filter(|kind| !KINDS.contains(&kind.value.as_str())) {
            self.form.wrong(
                kind.span,
                format!("'{}' is not a kind of file", kind.value.escape_debug()),
                "write file, directory or link",
            );
        }
        let exists = node.get("exists").map(|exists| (exists.span, exists.literal().as_bool()));
        if let Some((span, None)) = exists {
            self.form.wrong(
                span,
                "'exists' must be true or false",
                "write 'exists: false' where nothing is to be there",
            );
        }
        let contains = node.get("contains").map(|texts| self.texts(texts, "'contains'")).unwrap_or_default();
        let lacks = node.get("lacks").map(|texts| self.texts(texts, "'lacks'")).unwrap_or_default();
        let mode = node.get("mode").and_then(|mode| self.mode(mode));
        let exists = exists.and_then(|(_, exists)| exists).unwrap_or(true);
        Some(ExpectedFile { exists, content, contains, lacks, mode, target, kind })
    }

    /// Nothing can be expected of a file that is not to be there.
    fn check_nothing_more(&mut self, node: &Node) {
        let is_absent = node.get("exists").is_some_and(|exists| exists.literal().as_bool() == Some(false));
        let mut others = node.entries().unwrap_or_default().iter().filter(|entry| &*entry.key != "exists");
        if let Some(other) = others.next().filter(|_| is_absent) {
            let message = format!("'{}' cannot be used with 'exists: false'", other.key.escape_debug());
            self.form.wrong(other.key_span, message, "take out this, or 'exists: false'");
        }
    }

    fn mode(&mut self, node: &Node) -> Option<Spanned<u32>> {
        let mode = node.as_str().and_then(parse_mode);
        if mode.is_none() {
            self.form.wrong(node.span, "'mode' must be a string of octal digits", "write it as '0644'");
        }
        Some(Spanned { value: mode?, span: node.span })
    }

    /// A text, or a list of texts.
    fn texts(&mut self, node: &Node, what: &str) -> Vec<Spanned<String>> {
        let one = std::slice::from_ref(node);
        let items = node.items().unwrap_or(one);
        items.iter().filter_map(|item| self.form.text(item, what)).collect()
    }

    fn check_is_not_empty(&mut self, node: &Node, what: &str) {
        if node.items().is_some_and(<[Node]>::is_empty) {
            self.form.wrong(node.span, format!("{what} is empty"), "write each item behind a '-', or take this out");
        }
    }
}

fn name_of(entry: &Entry) -> Spanned<String> {
    Spanned { value: entry.key.to_string(), span: entry.key_span }
}
