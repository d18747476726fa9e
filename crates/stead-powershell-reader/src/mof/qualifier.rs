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
pub(super) enum QualifierScope {
    Class,
    Property,
    Reference,
    Method,
    Parameter,
}

/// A qualifier: its name, what it holds, and where it may stand.
pub(super) struct QualifierRule(&'static str, pub(super) Holds, &'static [QualifierScope]);

impl QualifierRule {
    /// The qualifier of that name, whatever its case.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.0.eq_ignore_ascii_case(name))
    }

    pub(super) fn allows(&self, scope: QualifierScope) -> bool {
        self.2.contains(&scope)
    }
}

const ANY: &[QualifierScope] = &[
    QualifierScope::Class,
    QualifierScope::Property,
    QualifierScope::Reference,
    QualifierScope::Method,
    QualifierScope::Parameter,
];
const CLASS: &[QualifierScope] = &[QualifierScope::Class];
const PROPERTY: &[QualifierScope] = &[QualifierScope::Property];
const REFERENCE: &[QualifierScope] = &[QualifierScope::Reference];
const PARAMETER: &[QualifierScope] = &[QualifierScope::Parameter];
/// Whatever has a value.
const VALUE: &[QualifierScope] = &[QualifierScope::Property, QualifierScope::Method, QualifierScope::Parameter];
const MEMBER: &[QualifierScope] = &[QualifierScope::Property, QualifierScope::Reference, QualifierScope::Method];

/// Those of DSP0004 and of DSC.
const KNOWN: &[QualifierRule] = &[
    QualifierRule("Abstract", Holds::Boolean, CLASS),
    QualifierRule("Aggregate", Holds::Boolean, REFERENCE),
    QualifierRule("Aggregation", Holds::Boolean, CLASS),
    QualifierRule("Alias", Holds::Text, MEMBER),
    QualifierRule("ArrayType", Holds::Text, &[QualifierScope::Property, QualifierScope::Parameter]),
    QualifierRule("Association", Holds::Boolean, CLASS),
    QualifierRule("BitMap", Holds::Texts, VALUE),
    QualifierRule("BitValues", Holds::Texts, VALUE),
    QualifierRule("ClassConstraint", Holds::Texts, CLASS),
    QualifierRule("ClassVersion", Holds::Text, CLASS),
    QualifierRule("Composition", Holds::Boolean, CLASS),
    QualifierRule("Correlatable", Holds::Texts, PROPERTY),
    QualifierRule("Counter", Holds::Boolean, VALUE),
    QualifierRule("DN", Holds::Boolean, VALUE),
    QualifierRule("Delete", Holds::Boolean, &[QualifierScope::Class, QualifierScope::Reference]),
    QualifierRule("Deprecated", Holds::Texts, ANY),
    QualifierRule("Description", Holds::Text, ANY),
    QualifierRule("DisplayDescription", Holds::Text, ANY),
    QualifierRule("DisplayName", Holds::Text, ANY),
    QualifierRule("EmbeddedInstance", Holds::Text, VALUE),
    QualifierRule("EmbeddedObject", Holds::Boolean, VALUE),
    QualifierRule("Exception", Holds::Boolean, CLASS),
    QualifierRule("Expensive", Holds::Boolean, ANY),
    QualifierRule("Experimental", Holds::Boolean, ANY),
    QualifierRule("FriendlyName", Holds::Text, CLASS),
    QualifierRule("Gauge", Holds::Boolean, VALUE),
    QualifierRule("IfDeleted", Holds::Boolean, REFERENCE),
    QualifierRule("In", Holds::Boolean, PARAMETER),
    QualifierRule("Indication", Holds::Boolean, CLASS),
    QualifierRule("Invisible", Holds::Boolean, ANY),
    QualifierRule("IsPUnit", Holds::Boolean, VALUE),
    QualifierRule("Key", Holds::Boolean, &[QualifierScope::Property, QualifierScope::Reference]),
    QualifierRule("Large", Holds::Boolean, &[QualifierScope::Class, QualifierScope::Property]),
    QualifierRule("MappingStrings", Holds::Texts, ANY),
    QualifierRule("Max", Holds::Number, REFERENCE),
    QualifierRule("MaxLen", Holds::Number, VALUE),
    QualifierRule("MaxValue", Holds::Number, VALUE),
    QualifierRule("MethodConstraint", Holds::Texts, &[QualifierScope::Method]),
    QualifierRule("Min", Holds::Number, REFERENCE),
    QualifierRule("MinLen", Holds::Number, VALUE),
    QualifierRule("MinValue", Holds::Number, VALUE),
    QualifierRule("ModelCorrespondence", Holds::Texts, ANY),
    QualifierRule("Nonlocal", Holds::Text, REFERENCE),
    QualifierRule("NonlocalType", Holds::Text, REFERENCE),
    QualifierRule("NullValue", Holds::Text, PROPERTY),
    QualifierRule("Octetstring", Holds::Boolean, VALUE),
    QualifierRule("Out", Holds::Boolean, PARAMETER),
    QualifierRule("Override", Holds::Text, MEMBER),
    QualifierRule("PUnit", Holds::Text, VALUE),
    QualifierRule("Propagated", Holds::Text, PROPERTY),
    QualifierRule("PropertyConstraint", Holds::Texts, &[QualifierScope::Property, QualifierScope::Reference]),
    QualifierRule("PropertyUsage", Holds::Text, PROPERTY),
    QualifierRule("Provider", Holds::Text, ANY),
    QualifierRule("Read", Holds::Boolean, PROPERTY),
    QualifierRule(
        "Required",
        Holds::Boolean,
        &[QualifierScope::Property, QualifierScope::Reference, QualifierScope::Method, QualifierScope::Parameter],
    ),
    QualifierRule("Revision", Holds::Text, CLASS),
    QualifierRule("Schema", Holds::Text, &[QualifierScope::Property, QualifierScope::Method]),
    QualifierRule("Source", Holds::Text, CLASS),
    QualifierRule("SourceType", Holds::Text, &[QualifierScope::Class, QualifierScope::Reference]),
    QualifierRule("Static", Holds::Boolean, &[QualifierScope::Property, QualifierScope::Method]),
    QualifierRule("Stream", Holds::Boolean, &[QualifierScope::Method, QualifierScope::Parameter]),
    QualifierRule("Structure", Holds::Boolean, CLASS),
    QualifierRule("Syntax", Holds::Text, VALUE),
    QualifierRule("SyntaxType", Holds::Text, VALUE),
    QualifierRule("Terminal", Holds::Boolean, CLASS),
    QualifierRule("TriggerType", Holds::Text, ANY),
    QualifierRule("UMLPackagePath", Holds::Text, CLASS),
    QualifierRule("Units", Holds::Text, VALUE),
    QualifierRule("UnknownValues", Holds::Texts, PROPERTY),
    QualifierRule("UnsupportedValues", Holds::Texts, PROPERTY),
    QualifierRule("ValueMap", Holds::Texts, VALUE),
    QualifierRule("Values", Holds::Texts, VALUE),
    QualifierRule("Version", Holds::Text, CLASS),
    QualifierRule("Weak", Holds::Boolean, REFERENCE),
    QualifierRule("Write", Holds::Boolean, PROPERTY),
    QualifierRule("XMLNamespaceName", Holds::Text, VALUE),
];
