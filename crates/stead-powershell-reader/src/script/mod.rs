//! Scripts: what a file of PowerShell defines, without running any of it.
//!
//! The whole grammar is parsed, since a class may stand wherever a statement may, but only definitions are kept. Reading
//! takes linear time and ends at a fixed depth of nesting.

mod brackets;
mod class;
mod constant;
mod definition;
mod expression;
mod flow;
mod parser;
mod pipeline;
mod problem;
mod statement;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::text::Text;

pub use constant::Constant;
pub use problem::SyntaxProblem;

/// The definitions in a script. Offsets are bytes of its [`Text`].
///
/// # Examples
/// ```
/// use stead_powershell_reader::script::{Script, UsingKind};
/// use stead_powershell_reader::text::Text;
///
/// let text = Text::new("using module Base\nenum Level { Low; High }\nfunction Get-It { }\n".to_owned());
/// let script = Script::read(&text);
/// assert_eq!((script.usings[0].kind, script.usings[0].name.as_str()), (UsingKind::Module, "Base"));
/// assert!(script.types[0].enumeration);
/// assert!(script.problems.is_empty());
/// // PowerShell loads no file with an error, which has a place here.
/// let text = Text::new("class {".to_owned());
/// assert_eq!(text.place(Script::read(&text).problems[0].at).line, 1);
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// The using statements at its start.
    pub usings: Vec<Using>,
    /// Classes and enumerations, in the order of the text, wherever they stand.
    pub types: Vec<TypeDefinition>,
    /// Functions, in the order of the text, wherever they stand.
    pub functions: Vec<Function>,
    /// Configurations, in the order of the text.
    pub configurations: Vec<Function>,
    /// Where PowerShell's parser has an error, in the order of the text. PowerShell loads no file with one.
    pub problems: Vec<SyntaxProblem>,
}

/// A using statement.
#[derive(Clone, PartialEq, Debug)]
pub struct Using {
    /// The kind of thing that it names.
    pub kind: UsingKind,
    /// The name, or the text of a table with the specification of a module.
    pub name: String,
    /// Its offset.
    pub at: usize,
}

/// The kind of thing that a using statement names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsingKind {
    /// `using assembly`
    Assembly,
    /// `using module`
    Module,
    /// `using namespace`
    Namespace,
}

/// Where a definition stands: in what the innermost construct around it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In nothing.
    Top,
    /// In the block of a statement such as `if`, or in `$( )` or `@( )`.
    Statement,
    /// In a function or a method.
    Function,
    /// In a script block.
    ScriptBlock,
}

/// A class or an enumeration.
#[derive(Clone, PartialEq, Debug)]
pub struct TypeDefinition {
    /// Its name.
    pub name: String,
    /// True if it is an enumeration.
    pub enumeration: bool,
    /// The types behind its colon.
    pub bases: Vec<TypeName>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Its members, in the order of the text.
    pub members: Vec<Member>,
    /// Where it stands.
    pub scope: Scope,
    /// The offset of its first attribute or its keyword.
    pub at: usize,
}

/// A member of a class or an enumeration.
#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// True if it is `hidden`.
    pub hidden: bool,
    /// True if it is `static`.
    pub is_static: bool,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// The type of a property, the result of a method.
    pub ty: Option<TypeName>,
    /// The kind of member.
    pub kind: MemberKind,
    /// The offset of its first attribute, type or keyword.
    pub at: usize,
}

/// The kind of a member.
#[derive(Clone, PartialEq, Debug)]
pub enum MemberKind {
    /// A property, with the text of its default.
    Property(Option<String>),
    /// A method or a constructor, with its parameters.
    Method(Vec<Parameter>),
    /// A name of an enumeration, with the value behind its `=`.
    Value(Option<Argument>),
}

/// A parameter of a method, a function or a configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Option<TypeName>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// The text of its default.
    pub default: Option<String>,
    /// The offset of its first attribute, type or name.
    pub at: usize,
}

/// A function or a configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The range between its braces.
    pub body: Range<usize>,
    /// Where it stands.
    pub scope: Scope,
    /// The offset of its keyword.
    pub at: usize,
}

/// An attribute.
#[derive(Clone, PartialEq, Debug)]
pub struct Attribute {
    /// Its name as written.
    pub name: String,
    /// Arguments without a name.
    pub positional: Vec<Argument>,
    /// Arguments with a name; `Key` alone stands for `Key = $true`.
    pub named: Vec<(String, Argument)>,
    /// The offset of its bracket.
    pub at: usize,
}

/// An argument of an attribute, the value of a name of an enumeration.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// The text.
    pub text: String,
    /// The value; `None` if it is not a constant.
    pub value: Option<Constant>,
    /// Its offset.
    pub at: usize,
}

/// A type as written between brackets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeName {
    /// The text, without the brackets around it.
    pub text: String,
    /// The form of the name.
    pub form: TypeForm,
    /// The offset of the text.
    pub at: usize,
}

/// The form of the name of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeForm {
    /// A name, with its namespace if that is written.
    Name(String),
    /// `T[]`, `T[,]`, by the number of dimensions.
    Array(Box<TypeForm>, usize),
    /// `T[A, B]`
    Generic(String, Vec<TypeForm>),
}

impl Script {
    /// Reads a script.
    pub fn read(text: &Text) -> Self {
        parser::parse(text.as_str())
    }
}

#[cfg(test)]
mod tests;
