//! Properties that do not fit the schema of their resource, as far as that is known without a look at the machine.

mod corrections;
mod files;
mod firewall;
mod hints;
mod instance;
mod loadable;
mod outline;
mod references;
mod words;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use stead_core::budget::Budget;
use stead_core::call::{Failure, Operation};
use stead_core::diag::{Diagnostic, Findings};
use stead_core::document;
use stead_core::event::Mode;
use stead_core::expr::Template;
use stead_core::graph::{self, Iteration, Role, ScopeId, StaticView, evaluate, evaluate_known, is_written_out};
use stead_core::id::{NodeId, TypeName};
use stead_core::manifest::{BatchKey, Implementation, Manifest};
use stead_core::parameters::Supplied;
use stead_core::schema::Schema;
use stead_core::text::codes::TOO_MANY;
use stead_core::text::{Kind, SourceId};
use stead_core::value::Value;
use stead_host::provider::{Asked, Context, Plain, Provider};
use stead_resources::builtin_of;

use crate::contexts::in_folder;
use crate::prepared::{Prepared, Unusable};
use crate::session::Session;
use instance::Checked;
use outline::{LazyOutline, lazy_outline};

impl Session {
    /// Makes a document ready for runs of a mode: [`Self::prepare`], and what resources say of the properties of instances.
    ///
    /// # Errors
    /// When anything is wrong with it. The error has all of that, and prints it with the lines.
    pub fn prepare_checked(
        &mut self,
        name: &str,
        text: impl Into<String>,
        supplied: impl Into<Supplied>,
        mode: Mode,
    ) -> Result<Prepared, Unusable> {
        let prepared = match self.prepare(name, text, supplied) {
            Ok(prepared) => prepared,
            Err(unusable) => return Err(self.with_properties(unusable, mode)),
        };
        let findings = match prepared.graph.refused(self.machine.elevated) {
            Some(refused) => vec![refused],
            None => self.check_properties(&prepared, mode),
        };
        if findings.is_empty() { Ok(prepared) } else { Err(Unusable::of_properties(findings, &self.sources)) }
    }

    /// A finding for each property that its resource does not accept, and for each reference to what an instance will not
    /// report. What is still to be computed is accepted.
    ///
    /// Programs may be asked for their schemas, and what they say of properties; nothing is asked about the machine. What
    /// an export has of properties says which instances are wanted, and is not checked.
    pub fn check_properties(&self, prepared: &Prepared, mode: Mode) -> Vec<Diagnostic> {
        if mode.operation == Operation::Export {
            return Vec::new();
        }
        // Reading the state of something takes less than bringing it into one.
        let extent = if mode.operation == Operation::Get { Extent::Stated } else { Extent::Whole };
        let mut types = Types { session: self, known: Vec::new(), schemas: HashMap::new() };
        let pass = Pass { session: self, prepared, extent, budget: Budget::new(Budget::DOCUMENT) };
        let mut cx = self.context(Arc::<str>::default());
        let mut found = Findings::new(&TOO_MANY, MAX_FINDINGS);
        // The iterations of a loop have one declaration.
        let mut seen = HashSet::new();
        let mut is_new = |finding: &Diagnostic| seen.insert((finding.span, finding.message.clone()));
        let mut instances = prepared.graph.iter().filter(|(_, node)| node.role == Role::Instance).peekable();
        while instances.peek().is_some() && !found.is_full() {
            let some = instances.by_ref().take(TOGETHER).map(|(id, node)| pass.instance(id, node, &mut types, &mut cx));
            found.extend(self.answered(some.collect()).into_iter().filter(&mut is_new));
        }
        found.extend(references::check(&pass, &mut types).into_iter().filter(&mut is_new));
        found.extend(files::check(&pass).into_iter().filter(&mut is_new));
        let mut found = found.into_vec();
        keep_apart(&mut found, prepared);
        self.spare_repeated(&mut found);
        found
    }

    /// Returns the mistakes in some instances, in their order. Programs that are to report them are asked beside each
    /// other.
    fn answered(&self, looks: Vec<Look<'_>>) -> Vec<Diagnostic> {
        let mut questions: Vec<Question> = Vec::new();
        for (at, look) in looks.iter().enumerate() {
            let Look::Asks(checked, input) = look else { continue };
            let asked = (at, checked.manifest.type_name.clone(), checked.cx.clone(), input.clone());
            let batch = checked.batch();
            let with = questions.iter_mut().find(|question| batch.is_some() && question.batch == batch);
            if let Some(question) = with {
                question.about.push(asked);
            } else {
                let provider = Arc::clone(&checked.provider);
                questions.push(Question { provider, batch, about: vec![asked] });
            }
        }
        let answers = self.shared.host.pool.map(questions, self.shared.host.width(), Question::ask);
        let mut refused: HashMap<usize, Option<Failure>> = answers.into_iter().flatten().collect();
        let finish = |(at, look)| match look {
            Look::Finished(findings) => findings,
            Look::Asks(checked, _) => {
                refused.remove(&at).flatten().map(|failure| checked.by_program(failure)).into_iter().collect()
            }
        };
        looks.into_iter().enumerate().flat_map(finish).collect()
    }
}

/// What a program is asked: of one instance, or of several that it takes together.
struct Question {
    provider: Arc<dyn Provider>,
    batch: Option<(BatchKey, ScopeId)>,
    about: Vec<(usize, TypeName, Context, Plain)>,
}

impl Question {
    /// Why properties are refused, for each place.
    fn ask(self) -> Vec<(usize, Option<Failure>)> {
        let Self { provider, about, .. } = self;
        let refusals: Vec<Result<(), Failure>> = match provider.together() {
            Some(together) => {
                let asked = about.iter().map(|(_, type_name, cx, input)| Asked { type_name, cx, input });
                together.validate_all(&asked.collect::<Vec<_>>())
            }
            None => about.iter().map(|(.., cx, input)| provider.validate(cx, input)).collect(),
        };
        about.into_iter().zip(refusals).map(|((at, ..), refusal)| (at, refusal.err())).collect()
    }
}

/// How many instances are looked at before programs are asked about them: what they are given is in memory meanwhile.
const TOGETHER: usize = 1024;
/// How many findings are kept; nobody reads more than the first dozens.
const MAX_FINDINGS: usize = 1000;

/// One look at all instances.
struct Pass<'a> {
    session: &'a Session,
    prepared: &'a Prepared,
    extent: Extent,
    /// The budget of evaluating all of it. Resolving has taken as much already, so that it is not used up by honest
    /// documents.
    budget: Budget,
}

impl Pass<'_> {
    /// Returns the view of the expressions in a scope.
    fn view<'v>(&'v self, scope: ScopeId, iteration: Option<&'v Iteration>) -> StaticView<'v> {
        let Prepared { graph, facts, .. } = self.prepared;
        graph.static_view((scope, iteration), facts, &*self.session.vault, &self.budget)
    }

    /// Returns whether the condition of an instance, or of one that it is nested in, is known to be false.
    fn is_left_out(&self, id: NodeId) -> bool {
        let graph = &self.prepared.graph;
        let is_false = |id: NodeId| {
            let Some(condition) = graph.declaration(id).condition.as_deref() else { return false };
            let node = graph.node(id);
            matches!(evaluate(condition, &self.view(node.scope, node.iteration.as_deref())), Ok(Value::Bool(false)))
        };
        std::iter::successors(Some(id), |id| graph.container(*id)).any(is_false)
    }

    /// A look at one instance; `cx` is given its name.
    fn instance<'p>(&'p self, id: NodeId, node: &'p graph::Node, types: &mut Types<'_>, cx: &mut Context) -> Look<'p> {
        let instance = self.prepared.graph.declaration(id);
        let Type { known, provider, .. } = types.of(&node.manifest);
        let folder = &self.prepared.graph.scope(node.scope).folder;
        let mut elsewhere;
        let cx = if folder.is_empty() {
            cx
        } else {
            elsewhere = in_folder(cx, folder);
            &mut elsewhere
        };
        cx.name.clone_from(&node.name);
        if let (Known::BuiltIn(_), Some(stated)) = (known, &node.stated)
            && provider.validate(cx, &Plain::shared(Arc::clone(stated))).is_ok()
        {
            return Look::Finished(Vec::new());
        }
        let properties = match (&instance.properties, known) {
            // What would be computed of one that is left out may be what its condition is there for, such as an empty list.
            (Some(properties), _) if is_written_out(properties) || self.is_left_out(id) => Cow::Borrowed(properties),
            (Some(properties), _) => {
                Cow::Owned(evaluate_known(properties, &self.view(node.scope, node.iteration.as_deref())))
            }
            (None, Known::BuiltIn(_)) => {
                Cow::Owned(Template { span: instance.name.span, kind: Kind::Object(Box::default()) })
            }
            // A program may do without properties whatever its schema says.
            (None, Known::Program(_)) => return Look::Finished(Vec::new()),
        };
        let (provider, manifest) = (Arc::clone(provider), &node.manifest);
        let checked =
            Checked { pass: self, instance, scope: node.scope, manifest, properties, provider, cx: cx.clone() };
        let mismatches = match known {
            Known::BuiltIn(outline) => return Look::Finished(checked.by_built_in(outline)),
            Known::Program(schema) => schema.as_deref().map(|schema| checked.by_schema(schema)).unwrap_or_default(),
        };
        if !mismatches.is_empty() || !is_written_out(&checked.properties) {
            return Look::Finished(mismatches);
        }
        let written = Plain::new(checked.properties.literal());
        Look::Asks(Box::new(checked), written)
    }
}

/// The outcome of a look at one instance.
enum Look<'a> {
    /// This is all that is wrong with it.
    Finished(Vec<Diagnostic>),
    /// Its program may know more, and is to be asked about these properties.
    Asks(Box<Checked<'a>>, Plain),
}

/// Which properties are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Those that are stated.
    Stated,
    /// All: those that are required must be stated.
    Whole,
}

/// The knowledge about the types of a document, found out once for each.
struct Types<'s> {
    session: &'s Session,
    /// Few, so that a search is faster than hashing.
    known: Vec<Type>,
    /// Of those that references are made to, by the address of the manifest, which the graph keeps alive meanwhile.
    schemas: HashMap<*const Manifest, Option<Arc<Schema>>>,
}

/// A type, and what is known of it.
struct Type {
    manifest: Arc<Manifest>,
    known: Known,
    provider: Arc<dyn Provider>,
}

impl Types<'_> {
    fn of(&mut self, manifest: &Arc<Manifest>) -> &Type {
        let at = self.known.iter().position(|each| Arc::ptr_eq(&each.manifest, manifest)).unwrap_or_else(|| {
            let (known, provider) = (Known::of(self, manifest), self.session.provider(manifest));
            self.known.push(Type { manifest: Arc::clone(manifest), known, provider });
            self.known.len() - 1
        });
        &self.known[at]
    }

    fn schema(&mut self, manifest: &Arc<Manifest>) -> Option<Arc<Schema>> {
        let session = self.session;
        let find = || match builtin_of(manifest) {
            Some(built_in) => built_in.compiled(),
            None => session.provider(manifest).schema(&session.context(manifest.type_name.as_str())).ok().flatten(),
        };
        self.schemas.entry(Arc::as_ptr(manifest)).or_insert_with(find).clone()
    }
}

/// The knowledge about the properties of a type.
enum Known {
    /// It says itself what is wrong.
    BuiltIn(LazyOutline),
    /// It is a program, or a kind that the engine carries out; its schema says most of it.
    Program(Option<Arc<Schema>>),
}

impl Known {
    fn of(types: &mut Types<'_>, manifest: &Arc<Manifest>) -> Self {
        match builtin_of(manifest).filter(|_| !matches!(manifest.implementation, Implementation::Engine)) {
            Some(built_in) => Self::BuiltIn(lazy_outline(built_in)),
            None => Self::Program(types.schema(manifest)),
        }
    }
}

/// Takes back what would make one property of two, in every text that is changed.
fn keep_apart(findings: &mut [Diagnostic], prepared: &Prepared) {
    let fixes = findings.iter().filter_map(|finding| finding.fix.as_ref());
    let changed: BTreeSet<SourceId> = fixes.map(|fix| fix.span.source).collect();
    for source in changed {
        if let Some(read) = prepared.sources.get(source) {
            document::keep_apart(findings, source, &read.text);
        }
    }
}

/// A word as the tables of other tools have it: in small letters, without what stands between its parts.
fn plain(word: &str) -> String {
    word.chars().filter(|each| !"_-".contains(*each)).flat_map(char::to_lowercase).collect()
}
