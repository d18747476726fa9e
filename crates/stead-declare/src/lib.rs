//! The attribute [`macro@resource`]: everything that a struct says of the properties of a built-in resource, said once.

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

mod declaration;
mod field;

use declaration::{Arguments, Declaration};

/// Declares a built-in resource by the struct of its properties.
///
/// ```text
/// /// A line in a file. (This becomes the description of its schema.)
/// #[resource("Stead/Example", about = "A line in a file.", tags("file", "linux"), capabilities = ALL)]
/// struct Properties<'a> {
///     /// Where the file is.
///     #[property(key)]
///     path: FilePath<'a>,
///     /// The line. Required unless '_exist' is false.
///     #[property(required)]
///     line: Option<SingleLine<'a>>,
///     /// Whether the file is created.
///     #[property(option)]
///     create: bool,
///     /// Whether the line exists.
///     exist: bool,
/// }
/// ```
///
/// The struct gets `Deserialize` and `JsonSchema`, which refuse unknown properties; a constant for each name, such as
/// `Properties::PATH`; and an implementation of `Declared`, by which it is registered. With `state` it gets `States` as well:
/// the values that it states, from which identity and comparison follow. Its schema is that of the struct, or what the function
/// makes that `schema` names; its title is the name of the type, or `title`. The example is the file `example.yaml` beside the
/// source, or the one that `example` names.
///
/// Of the fields that `exclusive(…)` names only one may be stated, and of those of `any(…)` an instance that is to exist must
/// state one; with `always_any(…)` every instance must.
///
/// A property is called as its field, in camel case, or as `name` says. `exist` is called `_exist` and true where it is not
/// mentioned. A `bool` without a default is false. Otherwise:
///
/// | `#[property(…)]` | the property |
/// |---|---|
/// | `key` | is in every state, and tells one instance from another |
/// | `identity` | is in every state |
/// | `place` | is the path of the thing, and is recorded as an absolute one |
/// | `tells(path = "none")` | is part of the identity if the other field has that value; a `place` with that value is not a path |
/// | `required` | must be stated by an instance that is to exist |
/// | `option` | is about how, and part of no state: `writeOnly` in the schema |
/// | `removal` | is an option that is recorded, in plain text, and stated again when the thing is removed because its document no longer has it |
/// | `shown` | is reported only, and its changes are shown as if it could be stated |
/// | `printed` | has what a program printed, for users who ask for it |
/// | `rest` | has all properties without a field; its type refuses unknown ones |
/// | `secret`, `credentials` | is secret however it is stated, as a whole or within its addresses |
/// | `name = "type"` | is called so |
///
/// Attributes of serde and schemars stay. What is only reported is an `Option<ReadOnly<T>>`.
#[proc_macro_attribute]
pub fn resource(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments as Arguments);
    let input = parse_macro_input!(item as DeriveInput);
    let declared = Declaration::read(arguments, input).map(Declaration::into_tokens);
    declared.unwrap_or_else(syn::Error::into_compile_error).into()
}
