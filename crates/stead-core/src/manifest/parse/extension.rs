//! Extensions.

use super::Parser;
use crate::diag::Diagnostic;
use crate::manifest::read::{Unknown, plain, present};
use crate::manifest::{
    DiscoverArgument, DiscoverMethod, Extension, ImportArgument, ImportMethod, SecretArgument, SecretMethod, Version,
    codes,
};
use crate::text::Node;

const EXTENSION_KEYS: [&str; 13] = [
    "$schema",
    "type",
    "version",
    "condition",
    "deprecationMessage",
    "description",
    "tags",
    "discover",
    "import",
    "importParameters",
    "secret",
    "exitCodes",
    "metadata",
];

impl Parser<'_> {
    pub(super) fn extension(&mut self, node: &Node) -> Option<Extension> {
        self.reader.members(node, "an extension manifest", &EXTENSION_KEYS, Unknown::Refused)?;
        let type_name = self.reader.type_name(node, "type", "the manifest");
        let version = self.semantic_version(node);
        let description = self.reader.optional_text(node, "description");
        let deprecation = self.reader.optional_text(node, "deprecationMessage");
        let tags = self.reader.tags(node);
        self.reader.object(node, "metadata");
        let discover = present(node, "discover").and_then(|method| self.discover(method));
        let import = present(node, "import").and_then(|method| self.import(method));
        let secret = present(node, "secret").and_then(|method| self.secret(method));
        Some(Extension {
            exit_codes: self.reader.exit_codes(node),
            manifest_path: self.path.to_owned(),
            manifest: plain(node),
            type_name: type_name?,
            version: version?,
            description,
            deprecation,
            tags,
            discover,
            import,
            secret,
        })
    }

    fn semantic_version(&mut self, node: &Node) -> Option<semver::Version> {
        let (version, span) = self.any_version(node)?;
        match version {
            Version::Semantic(version) => Some(version),
            Version::Date(date) => {
                let message = format!("the version of an extension cannot be a date such as '{date}'");
                self.reader.note(Diagnostic::error(&codes::VERSION, span, message));
                None
            }
        }
    }

    fn discover(&mut self, node: &Node) -> Option<DiscoverMethod> {
        self.reader.members(node, "'discover'", &["executable", "args"], Unknown::Ignored)?;
        let arguments =
            self.extension_arguments(node, "'discover'", &["extensionsArg"], |parser, node, key, text| match key {
                Some(_) => DiscoverArgument::Endings { name: text, quoted: parser.quoted(node) },
                None => DiscoverArgument::Literal(text),
            });
        Some(DiscoverMethod { executable: self.executable(node, "'discover'")?, arguments })
    }

    fn import(&mut self, node: &Node) -> Option<ImportMethod> {
        self.reader.members(node, "'import'", &["fileExtensions", "executable", "args", "output"], Unknown::Ignored)?;
        let arguments = self.extension_arguments(node, "'import'", &["fileArg"], |_, _, key, text| match key {
            Some(_) => ImportArgument::File(text),
            None => ImportArgument::Literal(text),
        });
        self.reader.required(node, "fileExtensions", "'import'")?;
        let file_extensions = self.reader.texts(node, "fileExtensions");
        Some(ImportMethod {
            file_extensions: file_extensions.iter().map(|each| each.trim_start_matches('.').to_owned()).collect(),
            executable: self.executable(node, "'import'")?,
            arguments,
            output: self.reader.expression(node, "output"),
        })
    }

    fn secret(&mut self, node: &Node) -> Option<SecretMethod> {
        self.reader.members(node, "'secret'", &["executable", "args"], Unknown::Ignored)?;
        let keys = ["nameArg", "vaultArg"];
        let arguments = self.extension_arguments(node, "'secret'", &keys, |_, _, key, text| match key {
            Some("nameArg") => SecretArgument::Name(text),
            Some(_) => SecretArgument::Vault(text),
            None => SecretArgument::Literal(text),
        });
        Some(SecretMethod { executable: self.executable(node, "'secret'")?, arguments })
    }

    fn extension_arguments<T>(
        &mut self,
        node: &Node,
        what: &str,
        allowed: &[&'static str],
        make: impl Fn(&mut Self, &Node, Option<&'static str>, String) -> T,
    ) -> Vec<T> {
        let mut arguments = Vec::new();
        for element in self.reader.elements(node, "args") {
            if let Some((key, text)) = self.argument_form(element, what, allowed) {
                arguments.push(make(self, element, key, text));
            }
        }
        arguments
    }
}
