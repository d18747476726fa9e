//! Links the unwinder of GCC into the program (docs/decisions/0026).

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let target = |key: &str| env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    if target("OS") != "linux" || target("ENV") != "gnu" {
        return;
    }
    let linker = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let found = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output();
    // A path where there is one, the bare name where there is none: then the shared library is used, as without this.
    let is_there =
        |output: std::process::Output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_absolute();
    if found.is_ok_and(is_there) {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}
