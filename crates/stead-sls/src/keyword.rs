//! The arguments of states that Idem itself reads.

/// How a state can depend on others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Requisite {
    /// All must succeed.
    Require,
    /// One must succeed.
    RequireAny,
    /// All must change.
    OnChanges,
    /// One must change.
    OnChangesAny,
    /// All must fail.
    OnFail,
    /// One must fail.
    OnFailAny,
    /// All must succeed; when one changed, the function `mod_watch` is called afterwards.
    Watch,
    /// When one changed, the function `mod_watch` is called at the end.
    Listen,
    /// It comes before them, and only if one of them is about to change.
    Prereq,
}

/// The meaning of an argument to Idem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keyword {
    Requisite(Requisite),
    /// A requisite of the states that are named.
    RequisiteIn(Requisite),
    ArgBind,
    Names,
    Name,
    Order,
    Unique,
    Sensitive,
    /// The module, which the key of the state says.
    State,
    /// stead has no counterpart; why that matters.
    NotCarried(&'static str),
}

const RECREATE: &str = "stead changes the instance in place or lets its resource replace it";
const USE: &str = "write the arguments of the other state out";
const WITHOUT_EFFECT: &str = "Idem ignores it as well";

/// The names that Idem takes for arguments of the function, though its documentation calls them requisites.
const IGNORED: [&str; 6] = ["onfail_any", "onfail_all", "onfail_any_in", "onfail_all_in", "listen_in", "prereq_in"];

/// Returns whether a requisite has no effect in Idem, though it has one in the document.
pub(super) fn is_ignored_by_idem(name: &str) -> bool {
    IGNORED.contains(&name)
}

const KEYWORDS: [(&str, Keyword); 44] = [
    ("require", Keyword::Requisite(Requisite::Require)),
    ("require_any", Keyword::Requisite(Requisite::RequireAny)),
    ("onchanges", Keyword::Requisite(Requisite::OnChanges)),
    ("onchanges_any", Keyword::Requisite(Requisite::OnChangesAny)),
    ("onfail", Keyword::Requisite(Requisite::OnFail)),
    ("onfail_all", Keyword::Requisite(Requisite::OnFail)),
    ("onfail_any", Keyword::Requisite(Requisite::OnFailAny)),
    ("watch", Keyword::Requisite(Requisite::Watch)),
    ("listen", Keyword::Requisite(Requisite::Listen)),
    ("prereq", Keyword::Requisite(Requisite::Prereq)),
    ("require_in", Keyword::RequisiteIn(Requisite::Require)),
    ("require_any_in", Keyword::RequisiteIn(Requisite::RequireAny)),
    ("onchanges_in", Keyword::RequisiteIn(Requisite::OnChanges)),
    ("onchanges_any_in", Keyword::RequisiteIn(Requisite::OnChangesAny)),
    ("onfail_in", Keyword::RequisiteIn(Requisite::OnFail)),
    ("onfail_all_in", Keyword::RequisiteIn(Requisite::OnFail)),
    ("onfail_any_in", Keyword::RequisiteIn(Requisite::OnFailAny)),
    ("watch_in", Keyword::RequisiteIn(Requisite::Watch)),
    ("listen_in", Keyword::RequisiteIn(Requisite::Listen)),
    ("prereq_in", Keyword::RequisiteIn(Requisite::Prereq)),
    ("arg_bind", Keyword::ArgBind),
    ("names", Keyword::Names),
    ("name", Keyword::Name),
    ("order", Keyword::Order),
    ("unique", Keyword::Unique),
    ("sensitive", Keyword::Sensitive),
    ("state", Keyword::State),
    ("fun", Keyword::State),
    ("recreate_on_update", Keyword::NotCarried(RECREATE)),
    ("recreate_if_deleted", Keyword::NotCarried("an instance that is absent is created anyway")),
    ("ignore_changes", Keyword::NotCarried("these properties are kept in the desired state, also once they exist")),
    ("name_prefix", Keyword::NotCarried("the name is the id of the state; choose one that is stable")),
    ("use", Keyword::NotCarried(USE)),
    ("use_in", Keyword::NotCarried(USE)),
    ("onlyif", Keyword::NotCarried(WITHOUT_EFFECT)),
    ("unless", Keyword::NotCarried(WITHOUT_EFFECT)),
    ("check_cmd", Keyword::NotCarried(WITHOUT_EFFECT)),
    ("failhard", Keyword::NotCarried(WITHOUT_EFFECT)),
    ("fire_event", Keyword::NotCarried(WITHOUT_EFFECT)),
    ("runas", Keyword::NotCarried(WITHOUT_EFFECT)),
    ("retry", Keyword::NotCarried(WITHOUT_EFFECT)),
    ("watch_any", Keyword::NotCarried(WITHOUT_EFFECT)),
    ("watch_any_in", Keyword::NotCarried(WITHOUT_EFFECT)),
    ("reload_modules", Keyword::NotCarried(WITHOUT_EFFECT)),
];

/// Returns the meaning of an argument to Idem; `None` for an argument of the state's function.
pub(super) fn keyword(name: &str) -> Option<Keyword> {
    KEYWORDS.iter().find(|(word, _)| *word == name).map(|(_, keyword)| *keyword)
}
