//! One property.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::parse::ParseStream;
use syn::{Attribute, Error, Field, Lit, LitStr, Result, Token, Type};

/// The part that a property plays for its resource.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Key,
    Identity,
    State,
    Option,
    Shown,
    Printed,
    Exist,
    /// All properties that have no field of their own.
    Rest,
}

/// How far a property is secret.
#[derive(Clone, Copy)]
pub(crate) enum Secret {
    Whole,
    Credentials,
}

/// A property as its field declares it.
pub(crate) struct Property {
    field: Field,
    /// The identifier of the field.
    pub(crate) ident: Ident,
    /// Its name in documents.
    pub(crate) name: String,
    /// The state, until a word says something else.
    pub(crate) role: Role,
    pub(crate) is_required: bool,
    /// True if its value is the path of the thing.
    pub(crate) is_place: bool,
    /// True if it is stated again where the thing is removed.
    pub(crate) is_of_removal: bool,
    pub(crate) secret: Option<Secret>,
    /// The other field, and its value, where this property tells which thing it is.
    pub(crate) tells: Option<(Ident, Lit)>,
}

impl Property {
    pub(crate) fn read(mut field: Field) -> Result<Self> {
        let ident = field.ident.clone().ok_or_else(|| Error::new_spanned(&field, "a property has a name"))?;
        let is_exist = ident == "exist";
        let name = if is_exist { "_exist".to_owned() } else { camel_case(&ident.to_string()) };
        let role = if is_exist { Role::Exist } else { Role::State };
        let own: Vec<Attribute> = field.attrs.extract_if(.., |each| each.path().is_ident("property")).collect();
        let (is_required, is_place, is_of_removal) = (false, false, false);
        let mut property =
            Self { field, ident, name, role, is_required, is_place, is_of_removal, secret: None, tells: None };
        for attribute in own {
            attribute.parse_nested_meta(|meta| property.take(&meta))?;
        }
        if property.is_of_removal && (property.role != Role::Option || property.secret.is_some()) {
            return Err(Error::new(property.ident.span(), "what is for a `removal` is an `option`, and no secret"));
        }
        Ok(property)
    }

    fn take(&mut self, meta: &syn::meta::ParseNestedMeta<'_>) -> Result<()> {
        let word = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
        match word.as_str() {
            "key" => self.is(Role::Key, meta)?,
            "identity" => self.is(Role::Identity, meta)?,
            "option" => self.is(Role::Option, meta)?,
            "shown" => self.is(Role::Shown, meta)?,
            "printed" => self.is(Role::Printed, meta)?,
            "rest" => self.is(Role::Rest, meta)?,
            "place" => self.is_place = true,
            "required" => self.is_required = true,
            "removal" => self.is_of_removal = true,
            "secret" | "credentials" if self.secret.is_some() => {
                return Err(meta.error("a property is secret as a whole, or within its addresses"));
            }
            "secret" => self.secret = Some(Secret::Whole),
            "credentials" => self.secret = Some(Secret::Credentials),
            "tells" => self.tells = Some(condition(meta)?),
            "name" => self.name = meta.value()?.parse::<LitStr>()?.value(),
            _ => {
                let known = "key, identity, place, tells, option, removal, rest, shown, printed, required, secret, credentials or name";
                return Err(meta.error(format!("expected {known}")));
            }
        }
        Ok(())
    }

    fn is(&mut self, role: Role, meta: &syn::meta::ParseNestedMeta<'_>) -> Result<()> {
        if self.role != Role::State {
            return Err(meta.error("a property is one of key, identity, option, rest, shown, printed and `exist`"));
        }
        self.role = role;
        Ok(())
    }

    /// Returns whether it can be left out of an instance.
    pub(crate) fn is_optional(&self) -> bool {
        matches!(&self.field.ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
    }

    /// The constant with its name.
    pub(crate) fn constant(&self) -> Ident {
        let text = self.ident.to_string();
        format_ident!("{}", text.strip_prefix("r#").unwrap_or(&text).to_uppercase(), span = self.ident.span())
    }

    /// The field with the attributes that readers and schemas need.
    pub(crate) fn field(&self) -> TokenStream {
        let field = &self.field;
        if self.role == Role::Rest {
            return quote!(#[serde(flatten)] #field);
        }
        let name = &self.name;
        let is_bool = matches!(&field.ty, Type::Path(path) if path.path.is_ident("bool"));
        let serde = |word| has(&field.attrs, "serde", word);
        let borrow = (has_lifetime(&field.ty) && !serde("borrow")).then(|| quote!(#[serde(borrow)]));
        let default = match (self.role, serde("default")) {
            (Role::Exist, false) => Some(quote!(#[serde(default = "crate::is_wanted")])),
            (_, false) if is_bool => Some(quote!(#[serde(default)])),
            _ => None,
        };
        let write_only = (self.role == Role::Option).then(|| quote!(#[schemars(extend("writeOnly" = true))]));
        let reported = is_reported(&field.ty).then(
            || quote!(#[allow(dead_code, reason = "declared for the schema, and for what is said where it is stated")]),
        );
        quote!(#[serde(rename = #name)] #borrow #default #write_only #reported #field)
    }
}

/// The field and its value in the parentheses behind a word.
fn condition(meta: &syn::meta::ParseNestedMeta<'_>) -> Result<(Ident, Lit)> {
    let mut found = None;
    meta.parse_nested_meta(|inner| {
        let field = inner.path.require_ident()?.clone();
        match inner.value()?.parse::<Lit>()? {
            value @ (Lit::Str(_) | Lit::Bool(_)) if found.is_none() => found = Some((field, value)),
            _ => return Err(inner.error("expected one field with a text, true or false")),
        }
        Ok(())
    })?;
    found.ok_or_else(|| meta.error("expected a field and its value"))
}

/// Returns whether a list of attributes of a macro has a word.
fn has(attributes: &[Attribute], of: &str, word: &str) -> bool {
    let lists = attributes.iter().filter(|each| each.path().is_ident(of));
    let mut found = false;
    for attribute in lists {
        // What is not understood here is for the macro itself to refuse.
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident(word);
            skip_value(meta.input)
        });
    }
    found
}

fn skip_value(input: ParseStream<'_>) -> Result<()> {
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        input.parse::<syn::Lit>()?;
    }
    Ok(())
}

/// Returns whether a property is reported and cannot be stated.
fn is_reported(ty: &Type) -> bool {
    quote!(#ty).to_string().contains("ReadOnly <")
}

fn has_lifetime(ty: &Type) -> bool {
    fn any(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Punct(punct) => punct.as_char() == '\'',
            proc_macro2::TokenTree::Group(group) => any(group.stream()),
            _ => false,
        })
    }
    any(quote!(#ty))
}

fn camel_case(name: &str) -> String {
    let mut words = name.trim_start_matches("r#").split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let mut letters = word.chars();
        name + &letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default() + letters.as_str()
    })
}
