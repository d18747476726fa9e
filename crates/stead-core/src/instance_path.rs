//! The stable name of an instance: what events, journals and reports call it by.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::id::{NodeId, ResourceId, TypeName};

/// An instance of a document: its type and name, below those of the containers that it is nested in.
///
/// Guarantees: paths of one graph differ; a document that is parsed anew gives the same paths. Clones share their parts.
///
/// The place in document order is part of it, so that state can be kept in a vector. A reader that has a graph checks that
/// both agree ([`crate::run::Run::resume`]); one that has none relies on either.
///
/// # Examples
/// ```
/// use stead_core::id::{NodeId, ResourceId};
/// use stead_core::instance_path::InstancePath;
///
/// let group = InstancePath::new(None, ResourceId::parse("Microsoft.DSC/Group:web")?, NodeId(0));
/// let file = InstancePath::new(Some(&group), ResourceId::parse("Stead/File:page")?, NodeId(1));
/// assert_eq!(file.label(), "'page' (Stead/File)");
/// assert_eq!(file.outward().map(|path| path.name().to_string()).collect::<Vec<_>>(), ["page", "web"]);
/// # Ok::<(), stead_core::id::InvalidResourceId>(())
/// ```
#[derive(Clone)]
pub struct InstancePath(Arc<InstanceStep>);

struct InstanceStep {
    container: Option<InstancePath>,
    id: ResourceId,
    node: NodeId,
}

impl InstancePath {
    /// The path of the node with this id, among the adjacent ones below `container`.
    pub fn new(container: Option<&Self>, id: ResourceId, node: NodeId) -> Self {
        Self(Arc::new(InstanceStep { container: container.cloned(), id, node }))
    }

    /// The place in document order.
    pub fn node(&self) -> NodeId {
        self.0.node
    }

    /// The type and name, as adjacent instances refer to it.
    pub fn id(&self) -> &ResourceId {
        &self.0.id
    }

    /// The name.
    pub fn name(&self) -> &Arc<str> {
        &self.0.id.name
    }

    /// The type.
    pub fn type_name(&self) -> &TypeName {
        &self.0.id.type_name
    }

    /// The name and type, as messages mention the instance.
    pub fn label(&self) -> String {
        format!("'{}' ({})", self.name(), self.type_name())
    }

    /// The instance that it is nested in.
    pub fn container(&self) -> Option<&Self> {
        self.0.container.as_ref()
    }

    /// This path and those of its containers, from the inside out.
    pub fn outward(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |path| path.container())
    }
}

impl PartialEq for InstancePath {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.node == other.0.node && self.0.id == other.0.id && self.0.container == other.0.container)
    }
}
impl Eq for InstancePath {}
impl Hash for InstancePath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.node.hash(state);
    }
}

/// `Type:name` of each container and of the instance itself, names percent-encoded, separated by slashes.
///
/// A type has a slash as well; in a path it stands in front of the colon of its step.
impl fmt::Display for InstancePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(container) = self.container() {
            write!(f, "{container}/")?;
        }
        write!(f, "{}", self.0.id)
    }
}
impl fmt::Debug for InstancePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// How a path is stored: the steps from the outside in, and the place of each in document order.
#[derive(Serialize, Deserialize)]
struct Stored(Vec<(u32, String)>);

impl Serialize for InstancePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut steps: Vec<_> = self.outward().map(|path| (path.node().0, path.id().to_string())).collect();
        steps.reverse();
        Stored(steps).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for InstancePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored(steps) = Stored::deserialize(deserializer)?;
        let mut path = None;
        for (node, id) in steps {
            let id = ResourceId::parse(&id).map_err(de::Error::custom)?;
            path = Some(Self::new(path.as_ref(), id, NodeId(node)));
        }
        path.ok_or_else(|| de::Error::custom("the path of an instance has no steps"))
    }
}
