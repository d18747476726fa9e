//! The qualifiers that a schema may use.

/// The kind of value that a qualifier holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holds {
    Boolean,
    Text,
    Texts,
    Number,
}

/// Where a qualifier stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    Class,
    Property,
    Reference,
    Method,
    Parameter,
}

/// A qualifier: its name, what it holds, and where it may stand.
pub(super) struct Known(&'static str, pub(super) Holds, &'static [Scope]);

impl Known {
    /// The qualifier of that name, whatever its case.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.0.eq_ignore_ascii_case(name))
    }

    pub(super) fn allows(&self, scope: Scope) -> bool {
        self.2.contains(&scope)
    }
}

const ANY: &[Scope] = &[Scope::Class, Scope::Property, Scope::Reference, Scope::Method, Scope::Parameter];
const CLASS: &[Scope] = &[Scope::Class];
const PROPERTY: &[Scope] = &[Scope::Property];
const REFERENCE: &[Scope] = &[Scope::Reference];
const PARAMETER: &[Scope] = &[Scope::Parameter];
/// Whatever has a value.
const VALUE: &[Scope] = &[Scope::Property, Scope::Method, Scope::Parameter];
const MEMBER: &[Scope] = &[Scope::Property, Scope::Reference, Scope::Method];

/// Those of DSP0004 and of DSC.
const KNOWN: &[Known] = &[
    Known("Abstract", Holds::Boolean, CLASS),
    Known("Aggregate", Holds::Boolean, REFERENCE),
    Known("Aggregation", Holds::Boolean, CLASS),
    Known("Alias", Holds::Text, MEMBER),
    Known("ArrayType", Holds::Text, &[Scope::Property, Scope::Parameter]),
    Known("Association", Holds::Boolean, CLASS),
    Known("BitMap", Holds::Texts, VALUE),
    Known("BitValues", Holds::Texts, VALUE),
    Known("ClassConstraint", Holds::Texts, CLASS),
    Known("ClassVersion", Holds::Text, CLASS),
    Known("Composition", Holds::Boolean, CLASS),
    Known("Correlatable", Holds::Texts, PROPERTY),
    Known("Counter", Holds::Boolean, VALUE),
    Known("DN", Holds::Boolean, VALUE),
    Known("Delete", Holds::Boolean, &[Scope::Class, Scope::Reference]),
    Known("Deprecated", Holds::Texts, ANY),
    Known("Description", Holds::Text, ANY),
    Known("DisplayDescription", Holds::Text, ANY),
    Known("DisplayName", Holds::Text, ANY),
    Known("EmbeddedInstance", Holds::Text, VALUE),
    Known("EmbeddedObject", Holds::Boolean, VALUE),
    Known("Exception", Holds::Boolean, CLASS),
    Known("Expensive", Holds::Boolean, ANY),
    Known("Experimental", Holds::Boolean, ANY),
    Known("FriendlyName", Holds::Text, CLASS),
    Known("Gauge", Holds::Boolean, VALUE),
    Known("IfDeleted", Holds::Boolean, REFERENCE),
    Known("In", Holds::Boolean, PARAMETER),
    Known("Indication", Holds::Boolean, CLASS),
    Known("Invisible", Holds::Boolean, ANY),
    Known("IsPUnit", Holds::Boolean, VALUE),
    Known("Key", Holds::Boolean, &[Scope::Property, Scope::Reference]),
    Known("Large", Holds::Boolean, &[Scope::Class, Scope::Property]),
    Known("MappingStrings", Holds::Texts, ANY),
    Known("Max", Holds::Number, REFERENCE),
    Known("MaxLen", Holds::Number, VALUE),
    Known("MaxValue", Holds::Number, VALUE),
    Known("MethodConstraint", Holds::Texts, &[Scope::Method]),
    Known("Min", Holds::Number, REFERENCE),
    Known("MinLen", Holds::Number, VALUE),
    Known("MinValue", Holds::Number, VALUE),
    Known("ModelCorrespondence", Holds::Texts, ANY),
    Known("Nonlocal", Holds::Text, REFERENCE),
    Known("NonlocalType", Holds::Text, REFERENCE),
    Known("NullValue", Holds::Text, PROPERTY),
    Known("Octetstring", Holds::Boolean, VALUE),
    Known("Out", Holds::Boolean, PARAMETER),
    Known("Override", Holds::Text, MEMBER),
    Known("PUnit", Holds::Text, VALUE),
    Known("Propagated", Holds::Text, PROPERTY),
    Known("PropertyConstraint", Holds::Texts, &[Scope::Property, Scope::Reference]),
    Known("PropertyUsage", Holds::Text, PROPERTY),
    Known("Provider", Holds::Text, ANY),
    Known("Read", Holds::Boolean, PROPERTY),
    Known("Required", Holds::Boolean, &[Scope::Property, Scope::Reference, Scope::Method, Scope::Parameter]),
    Known("Revision", Holds::Text, CLASS),
    Known("Schema", Holds::Text, &[Scope::Property, Scope::Method]),
    Known("Source", Holds::Text, CLASS),
    Known("SourceType", Holds::Text, &[Scope::Class, Scope::Reference]),
    Known("Static", Holds::Boolean, &[Scope::Property, Scope::Method]),
    Known("Stream", Holds::Boolean, &[Scope::Method, Scope::Parameter]),
    Known("Structure", Holds::Boolean, CLASS),
    Known("Syntax", Holds::Text, VALUE),
    Known("SyntaxType", Holds::Text, VALUE),
    Known("Terminal", Holds::Boolean, CLASS),
    Known("TriggerType", Holds::Text, ANY),
    Known("UMLPackagePath", Holds::Text, CLASS),
    Known("Units", Holds::Text, VALUE),
    Known("UnknownValues", Holds::Texts, PROPERTY),
    Known("UnsupportedValues", Holds::Texts, PROPERTY),
    Known("ValueMap", Holds::Texts, VALUE),
    Known("Values", Holds::Texts, VALUE),
    Known("Version", Holds::Text, CLASS),
    Known("Weak", Holds::Boolean, REFERENCE),
    Known("Write", Holds::Boolean, PROPERTY),
    Known("XMLNamespaceName", Holds::Text, VALUE),
];
