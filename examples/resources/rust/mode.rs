//! The permissions of a file. The desired state comes as JSON on standard input.

use std::error::Error;
use std::fs::{Permissions, metadata, set_permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let desired: Value = serde_json::from_reader(std::io::stdin())?;
    let path = desired["path"].as_str().ok_or("'path' is missing")?;
    if std::env::args().nth(1).as_deref() == Some("set")
        && let Some(mode) = desired["mode"].as_str()
    {
        set_permissions(path, Permissions::from_mode(u32::from_str_radix(mode, 8)?))?;
    }
    let mode = format!("{:03o}", metadata(path)?.permissions().mode() & 0o7777);
    serde_json::to_writer(std::io::stdout(), &json!({ "path": path, "mode": mode }))?;
    // An error above ends the program with 1, and its text goes to standard error.
    Ok(())
}
