//! The struct, and what is made of it.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Fields, Generics, LitStr, Result, Token, Visibility, parenthesized,
};

use crate::field::{Property, Role, Secret};

/// The words in the parentheses of the attribute.
pub(crate) struct Arguments {
    type_name: LitStr,
    title: Option<LitStr>,
    about: Option<LitStr>,
    example: Option<LitStr>,
    tags: Vec<LitStr>,
    capabilities: Option<Expr>,
    schema: Option<Expr>,
    undo: Option<Ident>,
    has_states: bool,
    is_apart: bool,
    /// The field with the command that every set runs, followed by those that say when it is not needed.
    repeated: Vec<Ident>,
    /// Fields of which at most one may be stated.
    exclusive: Vec<Vec<Ident>>,
    /// Fields of which an instance that is to exist states one, and with true every instance.
    any: Vec<(Vec<Ident>, bool)>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self {
            type_name: input.parse()?,
            title: None,
            about: None,
            example: None,
            tags: Vec::new(),
            capabilities: None,
            schema: None,
            undo: None,
            has_states: false,
            is_apart: false,
            repeated: Vec::new(),
            exclusive: Vec::new(),
            any: Vec::new(),
        };
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            arguments.take(input)?;
        }
        Ok(arguments)
    }
}

impl Arguments {
    fn take(&mut self, input: ParseStream<'_>) -> Result<()> {
        let word: Ident = input.parse()?;
        match word.to_string().as_str() {
            "state" => self.has_states = true,
            "apart" => self.is_apart = true,
            "repeated" => self.repeated = listed(input)?,
            "tags" => self.tags = listed(input)?,
            "exclusive" => self.exclusive.push(listed(input)?),
            "any" => self.any.push((listed(input)?, false)),
            "always_any" => self.any.push((listed(input)?, true)),
            "title" => self.title = Some(assigned(input)?),
            "about" => self.about = Some(assigned(input)?),
            "example" => self.example = Some(assigned(input)?),
            "schema" => self.schema = Some(assigned(input)?),
            "undo" => self.undo = Some(assigned(input)?),
            "capabilities" => self.capabilities = Some(assigned(input)?),
            _ => {
                let known = "about, example, tags, capabilities, undo, apart, repeated, schema, title, exclusive, any, always_any or state";
                return Err(Error::new(word.span(), format!("expected {known}")));
            }
        }
        Ok(())
    }
}

fn assigned<T: Parse>(input: ParseStream<'_>) -> Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// The list in parentheses behind a word.
fn listed<T: Parse>(input: ParseStream<'_>) -> Result<Vec<T>> {
    let list;
    parenthesized!(list in input);
    Ok(Punctuated::<T, Token![,]>::parse_terminated(&list)?.into_iter().collect())
}

/// Refuses what no code could be made of: errors in that would stand at the whole attribute.
fn check(arguments: &Arguments, properties: &[Property]) -> Result<()> {
    let has_exist = properties.iter().any(|property| property.role == Role::Exist);
    for (at, property) in properties.iter().enumerate() {
        if properties.iter().take(at).any(|other| other.name == property.name) {
            return Err(Error::new(property.ident.span(), format!("another property is called `{}`", property.name)));
        }
        if property.is_required && !(has_exist && property.is_optional()) {
            let why = "what is `required` is an Option, beside a field `exist: bool`; another type is always required";
            return Err(Error::new(property.ident.span(), why));
        }
    }
    if properties.iter().filter(|property| property.role == Role::Printed).count() > 1 {
        return Err(Error::new(arguments.type_name.span(), "one property is `printed` at most"));
    }
    if arguments.about.is_none() {
        return Err(Error::new(arguments.type_name.span(), "expected `about`: one line about the resource"));
    }
    if let Some(group) = arguments.exclusive.iter().find(|group| group.len() < 2) {
        let at = group.first().map_or_else(|| arguments.type_name.span(), Ident::span);
        return Err(Error::new(at, "`exclusive` names two fields or more"));
    }
    let any = arguments.any.iter();
    if let Some((group, _)) = any.clone().find(|(group, always)| group.is_empty() || !always && !has_exist) {
        let at = group.first().map_or_else(|| arguments.type_name.span(), Ident::span);
        return Err(Error::new(
            at,
            "`any` needs a field `exist: bool`, and names fields; without one use `always_any`",
        ));
    }
    for (beside, _) in properties.iter().filter_map(|property| property.tells.as_ref()) {
        if properties.iter().all(|property| property.ident != *beside) {
            return Err(Error::new(beside.span(), format!("there is no field `{beside}`")));
        }
    }
    let fields = arguments.exclusive.iter().chain(any.map(|(group, _)| group)).flatten().chain(&arguments.repeated);
    for field in fields {
        match properties.iter().find(|property| property.ident == *field) {
            None => return Err(Error::new(field.span(), format!("there is no field `{field}`"))),
            Some(property) if !property.is_optional() => {
                return Err(Error::new(field.span(), format!("`{field}` is always stated: only an Option is not")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A struct of properties with what is declared of it.
pub(crate) struct Declaration {
    arguments: Arguments,
    attributes: Vec<Attribute>,
    visibility: Visibility,
    ident: Ident,
    generics: Generics,
    properties: Vec<Property>,
}

impl Declaration {
    pub(crate) fn read(arguments: Arguments, input: DeriveInput) -> Result<Self> {
        let Data::Struct(data) = input.data else {
            return Err(Error::new_spanned(input.ident, "the properties of a resource are a struct"));
        };
        let Fields::Named(fields) = data.fields else {
            return Err(Error::new_spanned(input.ident, "the properties of a resource have names"));
        };
        let properties = fields.named.into_iter().map(Property::read).collect::<Result<Vec<_>>>()?;
        check(&arguments, &properties)?;
        let (attributes, visibility, ident, generics) = (input.attrs, input.vis, input.ident, input.generics);
        Ok(Self { arguments, attributes, visibility, ident, generics, properties })
    }

    pub(crate) fn into_tokens(self) -> TokenStream {
        let Self { arguments, attributes, visibility, ident, generics, properties } = &self;
        let title = arguments.title.as_ref().unwrap_or(&arguments.type_name);
        let fields = properties.iter().map(Property::field);
        let (names, declared, states) = (self.names(), self.declared(), self.states());
        let has_rest = properties.iter().any(|property| property.role == Role::Rest);
        let unknown = (!has_rest).then(|| quote!(#[serde(deny_unknown_fields)]));
        quote! {
            #[derive(::serde::Deserialize, ::schemars::JsonSchema)]
            #(#attributes)*
            #unknown
            #[schemars(title = #title)]
            #visibility struct #ident #generics {
                #(#fields,)*
            }
            #names
            #declared
            #states
        }
    }

    /// The names of the properties, as constants of the struct.
    fn names(&self) -> TokenStream {
        let (ident, (in_impl, of_type, bounds)) = (&self.ident, self.generics.split_for_impl());
        let named = self.properties.iter().filter(|property| property.role != Role::Rest);
        let constants = named.map(|property| {
            let (constant, name) = (property.constant(), &property.name);
            let doc = format!("The name of the property `{name}`.");
            quote! {
                #[doc = #doc]
                pub(crate) const #constant: &'static str = #name;
            }
        });
        quote! {
            #[allow(dead_code, reason = "not every name is needed by itself")]
            impl #in_impl #ident #of_type #bounds {
                #(#constants)*
            }
        }
    }

    fn declared(&self) -> TokenStream {
        let Arguments { type_name, about, example, tags, capabilities, undo, schema, is_apart, .. } = &self.arguments;
        let (ident, (in_impl, of_type, bounds)) = (&self.ident, self.generics.split_for_impl());
        let about = about.as_ref().map_or_else(|| quote!(""), |about| quote!(#about));
        let example = example.as_ref().map_or_else(|| quote!("example.yaml"), |example| quote!(#example));
        let capabilities = capabilities.as_ref().map_or_else(|| quote!(crate::ALL_BUT_EXPORT), |it| quote!(#it));
        let schema = schema.as_ref().map_or_else(|| quote!(crate::schema::of::<Self>), |it| quote!(#it));
        let undo = undo.as_ref().map_or_else(|| quote!(Files), |it| quote!(#it));
        let property = |field: &Ident| self.properties.iter().find(|it| it.ident == *field);
        let repeated: Vec<&str> =
            self.arguments.repeated.iter().filter_map(|field| Some(property(field)?.name.as_str())).collect();
        let (keys, shown) = (self.names_of(|it| it.role == Role::Key), self.names_of(|it| it.role == Role::Shown));
        let identity = self.names_of(|it| matches!(it.role, Role::Key | Role::Identity));
        let (tells, removal) = (self.tells(), self.names_of(|it| it.is_of_removal));
        let (printed, place) = (self.name_of(|it| it.role == Role::Printed), self.name_of(|it| it.is_place));
        let secrets = self.properties.iter().filter_map(|property| {
            let form = match property.secret? {
                Secret::Whole => quote!(Whole),
                Secret::Credentials => quote!(Credentials),
            };
            let name = &property.name;
            Some(quote!((#name, ::stead_core::manifest::SecretForm::#form)))
        });
        let related = self.related();
        let exist = self.properties.iter().any(|it| it.role == Role::Exist);
        let exist = if exist { quote!(self.exist) } else { quote!(true) };
        quote! {
            impl #in_impl crate::declared::Declared for #ident #of_type #bounds {
                const PROFILE: crate::Profile = crate::Profile {
                    type_name: #type_name,
                    description: #about,
                    example: include_str!(#example),
                    tags: &[#(#tags),*],
                    capabilities: #capabilities,
                    undo: ::stead_core::manifest::UndoWay::#undo,
                    is_apart: #is_apart,
                    repeated: &[#(#repeated),*],
                    schema: #schema,
                };
                const KEYS: &'static [&'static str] = &[#(#keys),*];
                const IDENTITY: &'static [&'static str] = &[#(#identity),*];
                const PLACE: Option<&'static str> = #place;
                const TELLS: &'static [crate::declared::Tells] = &[#(#tells),*];
                const REMOVAL: &'static [&'static str] = &[#(#removal),*];
                const PRINTED: Option<&'static str> = #printed;
                const SHOWN: &'static [&'static str] = &[#(#shown),*];
                const SECRETS: &'static [(&'static str, ::stead_core::manifest::SecretForm)] = &[#(#secrets),*];

                fn exists(&self) -> bool {
                    #exist
                }

                fn related(&self) -> Result<(), ::stead_core::call::Failure> {
                    #related
                    Ok(())
                }
            }
        }
    }

    /// The properties that tell the thing where another one has a value.
    fn tells(&self) -> impl Iterator<Item = TokenStream> {
        self.properties.iter().filter_map(|property| {
            let (beside, value) = property.tells.as_ref()?;
            let (name, beside) = (&property.name, &self.properties.iter().find(|it| it.ident == *beside)?.name);
            let value = if matches!(value, syn::Lit::Bool(_)) { quote!(Bool(#value)) } else { quote!(Text(#value)) };
            Some(quote!(crate::declared::Tells {
                name: #name,
                beside: #beside,
                value: crate::declared::Literal::#value,
            }))
        })
    }

    /// The checks of what properties exclude and require.
    fn related(&self) -> TokenStream {
        let name = |field: &Ident| self.properties.iter().find(|it| it.ident == *field).map(|it| it.name.as_str());
        let pairs = self.arguments.exclusive.iter().flat_map(|group| {
            group
                .iter()
                .enumerate()
                .flat_map(|(at, first)| group.iter().skip(at + 1).map(move |second| (first, second)))
        });
        let exclusive = pairs.map(|(first, second)| {
            let (one, other) = (name(first), name(second));
            quote!(crate::input::exclusive((#one, self.#first.is_some()), (#other, self.#second.is_some()))?;)
        });
        let any = self.arguments.any.iter().map(|(group, always)| {
            let names = group.iter().map(name);
            let needed = if *always { quote!(true) } else { quote!(self.exist) };
            quote! {
                if #needed && #(self.#group.is_none())&&* {
                    return Err(crate::input::required(&[#(#names),*]));
                }
            }
        });
        let required = self.properties.iter().filter(|it| it.is_required).map(|it| (&it.ident, &it.name));
        let required = required
            .map(|(field, name)| quote!(crate::input::required_if(self.exist, &[(#name, self.#field.is_some())])?;));
        quote!(#(#exclusive)* #(#any)* #(#required)*)
    }

    /// The implementation of `States`, where it is asked for.
    fn states(&self) -> Option<TokenStream> {
        let (ident, (in_impl, of_type, bounds)) = (&self.ident, self.generics.split_for_impl());
        let values = |of: fn(Role) -> bool| {
            self.properties.iter().filter(move |property| of(property.role)).map(|property| {
                let (field, name) = (&property.ident, &property.name);
                quote!((#name, crate::declared::ToValue::to_value(&self.#field)))
            })
        };
        let identity = values(|role| matches!(role, Role::Key | Role::Identity));
        let stated = values(|role| role == Role::State);
        self.arguments.has_states.then(|| {
            quote! {
                impl #in_impl crate::declared::States for #ident #of_type #bounds {
                    fn identified(&self) -> ::stead_core::value::Object {
                        crate::reply::stated([#(#identity),*])
                    }

                    fn stated(&self) -> ::stead_core::value::Object {
                        crate::reply::stated([#(#stated),*])
                    }
                }
            }
        })
    }

    fn names_of(&self, wanted: fn(&Property) -> bool) -> Vec<&str> {
        self.properties.iter().filter(|property| wanted(property)).map(|property| property.name.as_str()).collect()
    }

    /// The name of the first of these properties, as an option.
    fn name_of(&self, wanted: fn(&Property) -> bool) -> TokenStream {
        let names = self.names_of(wanted);
        names.first().map_or_else(|| quote!(None), |name| quote!(Some(#name)))
    }
}
