//! The packages of a system: the installed ones and, where a decision needs them, those in the package lists.

use std::sync::Arc;

use stead_core::call::Failure;
use stead_core::diag::likeliest;
use stead_host::provider::Context;

use super::manager::{Available, Installed, PackageManager, is_same};
use super::shown::Shown;
use super::version::Requirement;
use super::{Properties, dpkg};
use crate::input::{blocked, impossible};

/// The packages that are installed, and those that could be as far as that is needed to decide.
pub(super) struct System<'m> {
    pub(super) manager: &'m dyn PackageManager,
    pub(super) installed: Arc<Installed>,
    pub(super) available: Vec<Available>,
}

impl<'m> System<'m> {
    /// Asks for what could be installed only where the latest version is wanted: that takes a program.
    pub(super) fn look(
        manager: &'m dyn PackageManager,
        cx: &Context,
        desired: &Properties<'_>,
    ) -> Result<Self, Failure> {
        let looked = Self { manager, installed: manager.installed(cx)?, available: Vec::new() };
        let wants_latest = desired.version.as_ref().is_some_and(|version| version.requirement == Requirement::Latest);
        if !wants_latest || !desired.exist {
            return Ok(looked);
        }
        let looked = looked.with_available(cx, desired)?;
        Ok(match desired.shown(cx) {
            Some(shown) => looked.with_shown(&shown),
            None => looked,
        })
    }

    /// The latest version of a package is the one that a plan has shown, or the installed one if it has shown no other.
    fn with_shown(mut self, shown: &Shown<'_>) -> Self {
        for package in &mut self.available {
            let installed = || self.installed.find(&package.name).map(|found| &*found.version);
            package.candidate = shown.version_of(&package.name).or_else(installed).map(str::to_owned);
        }
        self
    }

    pub(super) fn with_available(self, cx: &Context, desired: &Properties<'_>) -> Result<Self, Failure> {
        let release = desired.release.map(|release| release.0);
        let names: Vec<&str> = desired.names().collect();
        let available = self.manager.available(cx, &names, release)?;
        Ok(Self { available, ..self })
    }

    fn available_of(&self, name: &str) -> Option<&Available> {
        self.available.iter().find(|each| is_same(&each.name, name))
    }

    fn candidate(&self, name: &str) -> Option<&str> {
        self.available_of(name).and_then(|each| each.candidate.as_deref())
    }

    pub(super) fn accepts(&self, requirement: &Requirement<'_>, name: &str, version: &str) -> bool {
        requirement.accepts(version, self.candidate(name), self.manager.order())
    }

    /// The version to install of a package: the candidate if it is one that is required, else the newest that is.
    pub(super) fn choose(&self, requirement: &Requirement<'_>, name: &str) -> Result<String, Failure> {
        if let Requirement::Exact(version) = requirement {
            return Ok((*version).to_owned());
        }
        let known = self.available_of(name);
        let known = known.ok_or_else(|| not_listed(name, &[]))?;
        let order = self.manager.order();
        let versions = known.candidate.iter().chain(&known.versions);
        let mut fitting: Vec<&String> = versions.filter(|version| self.accepts(requirement, name, version)).collect();
        if let (Some(first), Some(candidate)) = (fitting.first(), &known.candidate)
            && *first == candidate
        {
            return Ok(candidate.clone());
        }
        fitting.sort_by(|left, right| order(left, right));
        fitting.last().map(|version| (*version).clone()).ok_or_else(|| {
            let all = known.versions.join(", ");
            impossible(
                Properties::VERSION,
                format!("no version of '{name}' in the package lists is one that is required; there are: {all}"),
            )
        })
    }
}

/// That no repository has a package, with those of similar names.
pub(super) fn not_listed(name: &str, similar: &[String]) -> Failure {
    let near = likeliest(name, similar.iter().map(String::as_str));
    let hint = match near.join("' or '") {
        near if !near.is_empty() => {
            format!("Correct the name: did you mean '{near}'? Or add the repository that has it")
        }
        _ => "Correct the name, or add the repository that has it".to_owned(),
    };
    impossible(Properties::NAME, format!("there is no package '{name}' in the package lists. {hint}"))
}

/// That there is no package manager.
pub(super) fn no_database(cx: &Context) -> Failure {
    if cx.manages_running_system() {
        return blocked("", "no package database found. Supported package managers are apt and dnf");
    }
    let place = cx.system_root.at(dpkg::STATUS);
    let hint = "Packages are managed below a root that has a system, such as one that `debootstrap` made";
    blocked("", format!("there is no package database, such as '{}'. {hint}", place.display()))
}

/// That a package is a virtual one, with those that provide it.
pub(super) fn is_virtual(name: &str, providers: &[String]) -> Failure {
    const MOST: usize = 8;
    let named: Vec<&str> = providers.iter().take(MOST).map(String::as_str).collect();
    let which = match providers.len() {
        0 => String::new(),
        1..=MOST => format!(": {}", named.join(", ")),
        _ => format!(", such as {}", named.join(", ")),
    };
    impossible(Properties::NAME, format!("'{name}' is a virtual package; name one that provides it{which}"))
}
