//! Which reconciler a run has: as the command line or settings say, else as the document says.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use stead_core::diag::{Diagnostic, nearest};
use stead_core::document;
use stead_core::run::codes;
use stead_core::run::policy::{Policy, SinglePass};
use stead_core::run::reconcile::{PendingRule, Reconciler, WhileProgress};
use stead_core::text::{Span, Spanned};
use stead_core::wait::Wait;
use stead_host::catalog::Search;
use stead_host::command::reconcile::{
    self, DecisionProgram, DecisionRole, FindError, FindRule, ProgramReconciler, ProgramRule, Rules,
};
use stead_host::provider::Context;

use crate::session::Session;

/// How what is pending is run again, by names. What is not stated is as the document says, or as usual.
#[derive(Clone, Debug, Default)]
pub struct ReconcileOptions {
    /// `basic`, `continuous`, `none`, which runs everything once, or the name of a program.
    pub reconciler: Option<String>,
    /// `default`, pending while there is progress, or the name of a program.
    pub pending: Option<String>,
    /// How often anything is run again at most.
    pub max_pending_reruns: Option<u32>,
    /// How many runs in a row may make no progress.
    pub max_unchanged_reruns: Option<u32>,
    /// How long is waited, whatever resources say.
    pub wait: Option<Wait>,
}

/// The reconcilers that there are by themselves.
pub const RECONCILERS: [&str; 3] = ["continuous", "basic", "none"];

/// The pending rules that there are by themselves.
pub const PENDING_RULES: [&str; 1] = [reconcile::DEFAULT_RULE];

impl ReconcileOptions {
    /// One pass, whatever the document says.
    pub fn none() -> Self {
        Self { reconciler: Some("none".to_owned()), ..Self::default() }
    }
}

impl Session {
    /// The policy of a run of a document that says `stated`, or what is wrong with the names of it.
    ///
    /// A name that is not built in is that of a program, which is judged here and started when it is first needed.
    pub fn policy(
        &self,
        options: &ReconcileOptions,
        stated: &document::Reconcile,
    ) -> Result<Arc<dyn Policy>, Vec<Diagnostic>> {
        let name = Name::of(DecisionRole::Reconciler, options.reconciler.as_deref(), stated.reconciler.as_ref());
        let rule = Name::of(DecisionRole::PendingRule, options.pending.as_deref(), stated.pending.as_ref());
        let of_instances = stated.rules.iter().map(|rule| Name::of(DecisionRole::PendingRule, None, Some(rule)));
        let wrong = of_instances.filter_map(|rule| self.decision_program(&rule).err());
        let mut wrong: Vec<Diagnostic> = wrong.map(|wrong| *wrong).collect();
        let mut noted = |found: Result<_, Box<Diagnostic>>| match found {
            Ok(program) => program,
            Err(finding) => {
                wrong.push(*finding);
                None
            }
        };
        let (program, rule_program) = (noted(self.decision_program(&name)), noted(self.decision_program(&rule)));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let reconciler = match name.text {
            "none" => return Ok(Arc::new(SinglePass)),
            "basic" => Reconciler::basic(max_unchanged(options, stated)),
            _ => Reconciler::continuous(max_unchanged(options, stated)),
        };
        let max_re_runs = options.max_pending_reruns.or(stated.max_pending_reruns).unwrap_or(reconciler.max_re_runs);
        let wait = options.wait.or(stated.wait.as_ref().map(|wait| wait.value));
        let reconciler = Reconciler { wait, max_re_runs, seed: seed(), ..reconciler };
        let is_stated = options.pending.is_some() || stated.pending.is_some();
        let rule: Option<Arc<dyn PendingRule>> = match rule_program {
            Some(program) => Some(Arc::new(ProgramRule::new(program, Arc::clone(&reconciler.rule)))),
            None => is_stated.then(|| Arc::clone(&reconciler.rule)),
        };
        let rules = Arc::new(Rules::new(rule, Arc::clone(&reconciler.rule), self.find_rule()));
        Ok(match program {
            Some(program) => Arc::new(ProgramReconciler::new(program, reconciler, rules)),
            None => Arc::new(Reconciler { rule: rules, ..reconciler }),
        })
    }

    /// The program of a name that is not built in.
    fn decision_program(&self, name: &Name<'_>) -> Result<Option<DecisionProgram>, Box<Diagnostic>> {
        if name.built_in().contains(&name.text) {
            return Ok(None);
        }
        let (search, context) = (self.shared.discovery.search(), self.context(name.text));
        let found = DecisionProgram::find(name.role, name.text, search, (*self.shared.settings).clone(), context);
        found.map(Some).map_err(|error| Box::new(name.finding(&error, search)))
    }

    /// Finds the rules that instances and types name when they are first asked.
    fn find_rule(&self) -> Box<FindRule> {
        let (shared, context) = (Arc::clone(&self.shared), self.context("pending rule"));
        Box::new(move |name| {
            let (search, settings) = (shared.discovery.search(), (*shared.settings).clone());
            let context = Context { name: name.into(), ..context.clone() };
            DecisionProgram::find(DecisionRole::PendingRule, name, search, settings, context)
        })
    }
}

/// Other waits on each machine and in each run, where they depend on chance.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) << 32 | u64::from(std::process::id())
}

fn max_unchanged(options: &ReconcileOptions, stated: &document::Reconcile) -> u32 {
    options.max_unchanged_reruns.or(stated.max_unchanged_reruns).unwrap_or(WhileProgress::MAX_UNCHANGED)
}

/// The name of a reconciler or a pending rule, and where it stands if that is in a document.
struct Name<'a> {
    role: DecisionRole,
    text: &'a str,
    place: Option<Span>,
}

impl<'a> Name<'a> {
    fn of(role: DecisionRole, option: Option<&'a str>, stated: Option<&'a Spanned<String>>) -> Self {
        match (option, stated) {
            (Some(text), _) => Self { role, text, place: None },
            (None, Some(stated)) => Self { role, text: &stated.value, place: Some(stated.span) },
            (None, None) if role == DecisionRole::Reconciler => Self { role, text: "continuous", place: None },
            (None, None) => Self { role, text: "default", place: None },
        }
    }

    fn built_in(&self) -> &'static [&'static str] {
        match self.role {
            DecisionRole::Reconciler => &RECONCILERS,
            DecisionRole::PendingRule => &PENDING_RULES,
        }
    }

    fn finding(&self, error: &FindError, search: &Search) -> Diagnostic {
        let (word, name) = (self.role.word(), self.text);
        let (message, help) = match error {
            FindError::Name(_) => (
                format!("'{name}' is not a valid name for a {word}"),
                Some("use letters, digits, '-' and '_'".to_owned()),
            ),
            FindError::NotFound(file) => (format!("there is no {word} '{name}'"), Some(self.known(file, search))),
            FindError::Refused { help, .. } => (format!("refusing to run the {word} {error}"), help.clone()),
        };
        let finding = Diagnostic::error(&codes::RECONCILER, self.place.unwrap_or_default(), message);
        Diagnostic { span: self.place, help, ..finding }
    }

    /// Which names there are, and where others were looked for.
    fn known(&self, file: &str, search: &Search) -> String {
        let programs = reconcile::names(self.role, search);
        let names = self.built_in().iter().copied().chain(programs.iter().map(String::as_str));
        if let Some(near) = nearest(self.text, names.clone()) {
            return format!("did you mean '{near}'?");
        }
        let names = names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        format!("known: {names}; no program '{file}' in DSC_RESOURCE_PATH or PATH")
    }
}
