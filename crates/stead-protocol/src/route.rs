//! The routes, as data: who may ask what.

use stead_release::SourceFile;

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Asker {
    /// Anybody; the request proves by itself what it must.
    Anybody,
    /// A machine that was admitted.
    Machine,
    /// An operator who may look.
    Viewer,
    /// An operator who may also change what machines are to the fleet.
    Operator,
    /// An operator who may also publish, and make operators.
    Approver,
}

impl Asker {
    /// The role of an account, by its word.
    pub fn of_role(role: &str) -> Option<Self> {
        match role {
            "viewer" => Some(Self::Viewer),
            "operator" => Some(Self::Operator),
            "approver" => Some(Self::Approver),
            _ => None,
        }
    }
}

/// The action that a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the table below says what each is")]
pub enum Action {
    Enrol,
    Desired,
    Root,
    Signers,
    Roster,
    Release,
    Envelope,
    Blob,
    Reports,
    Machines,
    Machine,
    ReportsOf,
    Status,
    Drift,
    Failures,
    Events,
    Metrics,
    Standing,
    Hold,
    Invite,
    Accept,
    Check,
    Checks,
    Token,
    StoreBlob,
    StoreEnvelope,
    Plan,
    Publish,
    Acts,
}

/// A request that is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The method of HTTP.
    pub method: &'static str,
    /// The path, in which `*` stands for one part.
    pub path: &'static str,
    /// Who may ask. Of operators, those who may do more may ask as well.
    pub asker: Asker,
    /// The action that it carries out.
    pub action: Action,
}

const fn route(method: &'static str, path: &'static str, asker: Asker, action: Action) -> Route {
    Route { method, path, asker, action }
}

/// Each request that is answered; any other one is not found, whoever asks.
pub const ROUTES: &[Route] = &[
    route("POST", "/v1/enrol", Asker::Anybody, Action::Enrol),
    route("POST", "/v1/accounts", Asker::Anybody, Action::Accept),
    route("GET", "/v1/desired", Asker::Machine, Action::Desired),
    route("POST", "/v1/reports", Asker::Machine, Action::Reports),
    route("GET", "/v1/source/root", Asker::Machine, Action::Root),
    route("GET", "/v1/source/roster", Asker::Machine, Action::Roster),
    route("GET", "/v1/source/signers/*", Asker::Machine, Action::Signers),
    route("GET", "/v1/source/channel/*/*", Asker::Machine, Action::Release),
    route("GET", "/v1/source/channel/*/*/sealed", Asker::Machine, Action::Envelope),
    route("GET", "/v1/source/blobs/*", Asker::Machine, Action::Blob),
    route("GET", "/v1/machines", Asker::Viewer, Action::Machines),
    route("GET", "/v1/machines/*", Asker::Viewer, Action::Machine),
    route("GET", "/v1/machines/*/reports", Asker::Viewer, Action::ReportsOf),
    route("GET", "/v1/status", Asker::Viewer, Action::Status),
    route("GET", "/v1/drift", Asker::Viewer, Action::Drift),
    route("GET", "/v1/failures", Asker::Viewer, Action::Failures),
    route("GET", "/v1/events", Asker::Viewer, Action::Events),
    route("GET", "/v1/checks/*", Asker::Viewer, Action::Checks),
    route("GET", "/v1/acts", Asker::Viewer, Action::Acts),
    route("GET", "/metrics", Asker::Viewer, Action::Metrics),
    route("POST", "/v1/machines/*/standing", Asker::Operator, Action::Standing),
    route("POST", "/v1/machines/*/hold", Asker::Operator, Action::Hold),
    route("POST", "/v1/checks", Asker::Operator, Action::Check),
    route("POST", "/v1/tokens", Asker::Operator, Action::Token),
    route("PUT", "/v1/sealed/*/*/*", Asker::Operator, Action::StoreEnvelope),
    route("PUT", "/v1/blobs/*", Asker::Approver, Action::StoreBlob),
    route("POST", "/v1/invitations", Asker::Approver, Action::Invite),
    route("POST", "/v1/plans/roster", Asker::Approver, Action::Plan),
    route("POST", "/v1/statements/*", Asker::Approver, Action::Publish),
];

/// The route of a request, and the parts of its path that stand for `*`.
pub fn found<'p>(method: &str, path: &'p str) -> Option<(&'static Route, Vec<&'p str>)> {
    ROUTES.iter().filter(|route| route.method == method).find_map(|route| Some((route, matched(route.path, path)?)))
}

fn matched<'p>(pattern: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let (mut pattern, mut path, mut parts) = (pattern.split('/'), path.split('/'), Vec::new());
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return Some(parts),
            (Some("*"), Some(part)) if !part.is_empty() => parts.push(part),
            (Some(wanted), Some(part)) if wanted == part => {}
            _ => return None,
        }
    }
}

/// The path of a file of the releases. Whoever asks is the machine that a sealed one is for.
pub fn source_path(file: &SourceFile) -> String {
    match file {
        SourceFile::Root => "/v1/source/root".to_owned(),
        SourceFile::Roster => "/v1/source/roster".to_owned(),
        SourceFile::Signers(number) => format!("/v1/source/signers/{number}"),
        SourceFile::Release(channel, number) => format!("/v1/source/channel/{channel}/{number}"),
        SourceFile::Envelope(channel, number, _) => format!("/v1/source/channel/{channel}/{number}/sealed"),
        SourceFile::Blob(digest) => format!("/v1/source/blobs/{digest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_route() {
        assert_eq!(found("GET", "/v1/source/channel/web/3").map(|(_, parts)| parts), Some(vec!["web", "3"]));
        for path in
            ["/v1/machines/", "/v1/machines//reports", "/v1/machines/a/b/reports", "/v1/desired/", "v1/desired", ""]
        {
            assert_eq!(found("GET", path), None, "{path}");
        }
        for (at, route) in ROUTES.iter().enumerate() {
            let path = route.path.replace('*', "x");
            let found =
                ROUTES.iter().position(|other| other.method == route.method && matched(other.path, &path).is_some());
            assert_eq!(found, Some(at), "{path}");
        }
    }
}
