//! `cargo xtask package vsix`: the extension for VS Code, with the library that it uses, out of packages of npm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::package::{Work, failed, files, output};
use crate::repository::root;

/// Packs the extension into one file that an editor installs. Fetches packages of npm.
pub(crate) fn vsix(out: &Path) -> Result<PathBuf, String> {
    let work = Work::below(out)?;
    let (source, stage) = (root().join("editors/vscode"), work.folder().join("vscode"));
    let extra = [("schema.json", "schemas/configuration.json"), ("LICENSE", "LICENSE-MIT")];
    let own = files(&source)?.into_iter().filter(|file| !file.to_string_lossy().contains("/node_modules/"));
    let own = own.map(|file| (stage.join(file.strip_prefix(&source).unwrap_or(&file)), file));
    let extra = extra.map(|(name, file)| (stage.join(name), root().join(file)));
    for (to, from) in own.chain(extra) {
        fs::create_dir_all(to.parent().unwrap_or(&stage)).map_err(failed(&to))?;
        fs::copy(&from, &to).map_err(failed(&from))?;
    }
    let npm = |words: &[&str]| output(Command::new("npm").args(words).current_dir(&stage));
    npm(&["install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"])?;
    let file = out.join(format!("stead-{}.vsix", env!("CARGO_PKG_VERSION")));
    // Links of its page lead into this repository, which has no address yet.
    let words = ["exec", "--no", "--", "vsce", "package", "--skip-license", "--no-rewrite-relative-links", "--out"];
    npm(&[&words[..], &[&*file.to_string_lossy()]].concat())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_packed_with_what_it_uses() {
        const TEST: &str = "an_extension_is_packed_with_what_it_uses";
        /// Uses what was unpacked as an editor does: its library is found, and it brings its schema and snippets.
        const SCRIPT: &str = r#"
const { createRequire } = require("node:module");
const manifest = require(process.argv[1] + "/package.json");
const own = createRequire(process.argv[1] + "/" + manifest.main);
console.log(own.resolve("vscode-languageclient/node"));
const { snippets, yamlValidation } = manifest.contributes;
console.log(Object.keys(own(snippets[0].path)).length, Object.keys(own(yamlValidation[0].url).properties).join(" "));
console.log(own("./server").serverCommand({ path: "stead" }).args.join(" "));
"#;
        if stead_testkit::asked("STEAD_NPM").is_none() {
            return stead_testkit::skip(TEST, "it fetches packages of npm when STEAD_NPM is set");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = vsix(folder.path()).unwrap();
        let unpacked = folder.path().join("unpacked");
        output(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&file).arg(&unpacked)).unwrap();
        let extension = unpacked.join("extension");
        let said = output(Command::new("node").args(["-e", SCRIPT]).arg(&extension)).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with(&*extension.to_string_lossy()), "{said}");
        assert!(lines[1].starts_with(|first: char| first.is_ascii_digit()) && lines[1].contains("resources"), "{said}");
        assert_eq!(lines[2], "lsp");
        assert!(!extension.join("test").exists() && !extension.join("node_modules/@vscode").exists());
    }
}
