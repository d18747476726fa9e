//! What a resource makes it lists, where it declares that it exports.

use serde_json::{Value as Json, json};
use stead_core::call::Execution;
use stead_host::provider::Plain;
use stead_resources::BuiltIn;

use super::support::World;
use super::{carried_out, example};

/// Those that list nothing of what their example makes here, and why.
const UNLISTED: &[(&str, &str)] = &[("Microsoft.DSC.Debug/Echo", "of 0 that are listed none is the example")];

/// What is wrong with the export of a system in which the example was made; `None` where it lists that.
fn missing(built_in: &BuiltIn) -> Option<String> {
    let name = built_in.manifest.type_name.as_str();
    let (world, stated) = (World::system(), example(name));
    let cx = world.context_for(name);
    let made = || built_in.provider.set(&cx, &Plain::new(stated.clone()), Execution::Actual);
    // What only reports is there already.
    if let Some(Err(failure)) = built_in.manifest.capabilities.set.then(made) {
        return Some(format!("its example is not made: {}", world.neutral(&failure.message)));
    }
    let filter = if name == "Stead/Directory" { json!({"path": "."}) } else { Json::Null };
    let listed = match built_in.provider.export(&cx, &Plain::new(filter)) {
        Ok(listed) => listed,
        Err(failure) => return Some(world.neutral(&failure.message)),
    };
    // A unit is listed with its suffix.
    let is = |listed: Option<&Json>, stated: &Json| {
        let text = || Some(listed?.as_str()?.strip_suffix(".service")? == stated.as_str()?);
        listed == Some(stated) || text() == Some(true)
    };
    let keys = || built_in.identity.iter().filter_map(|key| Some((*key, stated.get(*key)?)));
    let is_it = |listed: &Json| keys().all(|(key, stated)| is(listed.get(key), stated));
    let is_listed = listed.iter().any(|each| is_it(&each.properties.to_redacted_json()));
    (!is_listed).then(|| format!("of {} that are listed none is the example", listed.len()))
}

#[test]
fn each_lists_what_it_made() {
    let mut others = Vec::new();
    for built_in in carried_out().into_iter().filter(|built_in| built_in.manifest.capabilities.export) {
        let name = built_in.manifest.type_name.as_str();
        let known = UNLISTED.iter().find(|(known, _)| *known == name).map(|(_, why)| *why);
        let why = missing(built_in);
        if why.as_deref() != known {
            others.push(format!("{name}: {why:?}"));
        }
    }
    assert_eq!(others, [""; 0], "those that list otherwise than UNLISTED says");
}
