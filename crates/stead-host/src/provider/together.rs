//! Methods as values, for calls of several instances at once.

use stead_core::call::Failure;
use stead_core::id::TypeName;
use stead_core::planner::Method;

use super::{Context, Plain, Provider, SetReply, State, TestReply};

/// One of the instances that a resource is called for at once.
pub struct Asked<'a> {
    /// Its type.
    pub type_name: &'a TypeName,
    /// Its context; its name is in there.
    pub cx: &'a Context,
    /// What its call is given.
    pub input: &'a Plain,
}

/// The answer of a resource to one of its methods.
pub enum MethodAnswer {
    /// To `get`.
    State(State),
    /// To `test`.
    Test(TestReply),
    /// To `set`.
    Set(SetReply),
    /// To `delete`.
    Deleted(Vec<String>),
}

/// Carries out a method for several instances in one call.
///
/// Guarantees: there is one answer for each, in their order, and each is what a call of its own would have been answered. A set is
/// made once for each, also where the answer cannot be used.
pub trait Together {
    /// [`Provider::validate`] for each.
    fn validate_all(&self, all: &[Asked<'_>]) -> Vec<Result<(), Failure>>;

    /// A method for each. All are given the context of the first, but for their names and what they handed back.
    fn answer_all(&self, method: Method, all: &[Asked<'_>]) -> Vec<Result<MethodAnswer, Failure>>;
}

impl dyn Provider + '_ {
    /// Carries out a method for one instance.
    pub(crate) fn answer(&self, method: Method, cx: &Context, input: &Plain) -> Result<MethodAnswer, Failure> {
        match method {
            Method::Get => self.get(cx, input).map(MethodAnswer::State),
            Method::Test => self.test(cx, input).map(MethodAnswer::Test),
            Method::Set(execution) => self.set(cx, input, execution).map(MethodAnswer::Set),
            Method::Delete(execution) => self.delete(cx, input, execution).map(MethodAnswer::Deleted),
        }
    }
}
