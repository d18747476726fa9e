//! A resource of PowerShell is taken back by its state where its module says that it can be.

use std::fs;

use serde_json::json;

use super::{Place, printed};

/// A file of which the resource is the text.
const CLASS: &str = r"
enum Ensure { Present; Absent }
[DscResource()] class NAME {
  [DscProperty(Key)] [string] $Path
  [DscProperty()] [string] $Text
  [DscProperty()] [Ensure] $Ensure = 'Present'
  [DscProperty(NotConfigurable)] [int] $Size
  [NAME] Get() {
    $now = [NAME]::new()
    $now.Path = $this.Path
    if (Test-Path $this.Path) {
      $now.Text = [IO.File]::ReadAllText($this.Path)
      $now.Size = $now.Text.Length
    } else { $now.Ensure = 'Absent' }
    return $now
  }
  [bool] Test() {
    $now = $this.Get()
    return $now.Ensure -eq $this.Ensure -and ($this.Ensure -eq 'Absent' -or $now.Text -ceq $this.Text)
  }
  [void] Set() {
    if ($this.Ensure -eq 'Absent') { Remove-Item $this.Path } else { [IO.File]::WriteAllText($this.Path, $this.Text) }
  }
}
";

fn module(place: &Place, name: &str, private: &str) {
    place.write(&format!("modules/{name}/{name}.psm1"), &CLASS.replace("NAME", name));
    let manifest = format!(
        "@{{ RootModule = '{name}.psm1'; ModuleVersion = '1.0.0'; DscResourcesToExport = '{name}'; PrivateData = @{{ {private} }} }}\n"
    );
    place.write(&format!("modules/{name}/{name}.psd1"), &manifest);
}

#[test]
fn a_module_says_that_its_resources_are_taken_back_by_their_state() {
    let Some(place) = Place::new("a_module_says_that_its_resources_are_taken_back_by_their_state") else { return };
    module(&place, "All", "Stead = @{ Undo = 'State' }");
    module(&place, "One", "Stead = @{ Undo = @{ one = 'State' } }");
    module(&place, "Other", "Stead = @{ Undo = @{ Another = 'State' } }");
    let path = |name: &str| place.path(name).display().to_string();
    place.write("changed", "old");
    place.write("gone", "was");
    let instance = |kind: &str, name: &str, mut properties: serde_json::Value| {
        properties["Path"] = json!(path(name));
        json!({ "name": name, "type": format!("{kind}/{kind}"), "properties": properties })
    };
    let document = json!({ "resources": [
        instance("All", "changed", json!({ "Text": "new" })),
        instance("One", "made", json!({ "Text": "new" })),
        instance("All", "gone", json!({ "Ensure": "Absent" })),
        instance("Other", "stays", json!({ "Text": "new" })),
    ] });
    place.write("main.json", &document.to_string());
    let applied = place.command(&["apply", "main.json", "--yes", "--brief"]).output().unwrap();
    assert!(applied.status.success(), "{applied:?}");
    let read = |name: &str| fs::read_to_string(place.path(name)).ok();
    let after = ["changed", "made", "gone", "stays"].map(read);
    assert_eq!(after, [Some("new"), Some("new"), None, Some("new")].map(|text| text.map(str::to_owned)));
    let planned = place.command(&["undo", "--plan"]).output().unwrap();
    let said = printed(&planned) + &String::from_utf8_lossy(&planned.stderr);
    assert!(said.contains("cannot be taken back: Other/Other:stays"), "{said}");
    assert!(!said.contains("All:changed:") && !said.contains("cannot be taken back: One"), "{said}");
    let undone = place.command(&["undo", "--yes"]).output().unwrap();
    let found = ["changed", "made", "gone", "stays"].map(read);
    let expected = [Some("old"), None, Some("was"), Some("new")].map(|text| text.map(str::to_owned));
    assert_eq!(found, expected, "{undone:?}");
}

#[test]
fn a_module_that_says_it_wrongly_is_not_valid() {
    let Some(place) = Place::new("a_module_that_says_it_wrongly_is_not_valid") else { return };
    module(&place, "Wrong", "Stead = @{ Undo = 'Sate' }");
    let got = place.command(&["invoke", "Wrong/Wrong", "--method", "get", "--property", "Path=a"]).output().unwrap();
    let said = String::from_utf8_lossy(&got.stderr).into_owned();
    assert!(said.contains("'PrivateData.Stead.Undo' must be 'State'"), "{said}");
}
