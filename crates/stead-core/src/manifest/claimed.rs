//! Claims of resources that are programs: their manifests name the properties that hold paths.

use std::path::Path;

use super::CommandResource;
use crate::claims::{Claim, Claims, Extent};
use crate::diff::exists;
use crate::value::{Object, Value};

/// A property that holds the path, or the paths, of what an instance manages or reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimedProperty {
    /// Its name.
    pub property: String,
    /// How much of what is there it is about.
    pub extent: ClaimedExtent,
    /// The use that the instance makes of it.
    pub access: ClaimedAccess,
}

/// How much of what is at a path a claim is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClaimedExtent {
    /// The file.
    File,
    /// A folder and everything below it.
    Tree,
}

/// The use that an instance makes of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClaimedAccess {
    /// It creates, changes and removes it.
    #[default]
    Manages,
    /// It only reads it.
    Reads,
}

impl CommandResource {
    /// Everything that an instance with this desired state manages and reads.
    ///
    /// `None` where that is not known: nothing is claimed, a property that says what is managed is absent, or a path is not
    /// absolute. Programs run in the folder of their manifest, and only they know what a relative path means to them.
    pub fn claims_of(&self, desired: &Value) -> Option<Claims> {
        let desired = desired.as_object().filter(|_| !self.claims.is_empty())?;
        let mut claims = Claims::default();
        for claimed in &self.claims {
            let extent = claimed.extent(desired);
            for path in claimed.paths(desired)? {
                claims.0.push(Claim::Path { path: path.into(), extent: extent.clone() });
            }
        }
        Some(claims)
    }
}

impl ClaimedProperty {
    fn extent(&self, desired: &Object) -> Extent {
        match (self.access, self.extent) {
            (ClaimedAccess::Reads, _) => Extent::Read,
            (ClaimedAccess::Manages, _) if !exists(desired) => Extent::Absent,
            (ClaimedAccess::Manages, ClaimedExtent::File) => Extent::Whole,
            (ClaimedAccess::Manages, ClaimedExtent::Tree) => Extent::Tree { purge: false },
        }
    }

    /// The paths that it holds; `None` where it may mean others.
    fn paths<'d>(&self, desired: &'d Object) -> Option<Vec<&'d Path>> {
        let absolute = |value: &'d Value| value.as_str().map(Path::new).filter(|path| path.is_absolute());
        match desired.get(&self.property) {
            None | Some(Value::Null) => (self.access == ClaimedAccess::Reads).then(Vec::new),
            Some(Value::Array(values)) => values.iter().map(absolute).collect(),
            Some(value) => Some(vec![absolute(value)?]),
        }
    }
}
