//! Rules of sudo.

use std::fs;

use super::{accepted, has, path, printed, text, values, written};
use serde_json::{Value as Json, json};

#[test]
fn sudo_reads_rules() {
    if !has("sudo", "visudo") || !has("sudo", "cvtsudoers") {
        return;
    }
    let mut read = 0;
    let tried = values((text(), text()), 60);
    let count = tried.len();
    for (user, arguments) in tried {
        let command = format!("/bin/x {arguments}");
        let desired = json!({"name": "s", "rules": [{"users": [user], "commands": [command], "nopasswd": true}]});
        let Some(world) = written("dir etc/sudoers.d 0755", "Stead/Sudoers", &desired) else { continue };
        read += 1;
        let file = path(&world, "etc/sudoers.d/s");
        printed("visudo", &["-c", "-f", &file], &(&desired, fs::read_to_string(&file)));
        let rules: Json = serde_json::from_str(&printed("cvtsudoers", &["-f", "json", &file], &desired)).unwrap();
        let specs = rules["User_Specs"].as_array().unwrap();
        assert_eq!(specs.len(), 1, "{desired}: {rules}");
        let spec = &specs[0]["Cmnd_Specs"];
        let blanks = |text: String| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let commands = blanks(named(&spec[0]["Commands"]));
        let found = (named(&specs[0]["User_List"]), spec.as_array().unwrap().len(), commands);
        // Two exclamation marks exclude nothing.
        let user = user.replace("!!", "");
        let meant = (unescaped(&user, |_| true), 1, blanks(unescaped(&command, |letter| "\\,:=# \t".contains(letter))));
        assert_eq!(found, meant, "{desired}: {rules}");
    }
    accepted("Stead/Sudoers", read, count, 4);
}

#[test]
fn sudo_reads_lists() {
    if !has("sudo lists", "visudo") || !has("sudo lists", "cvtsudoers") {
        return;
    }
    let mut read = 0;
    let tried = values((text(), text(), text(), text()), 60);
    let count = tried.len();
    for (at, (group, host, user, other)) in tried.into_iter().enumerate() {
        // Four odd texts at once are hardly ever accepted.
        let odd = |place: usize, text: String| if at % 4 == place { text } else { format!("p{place}") };
        let [group, host, user, other] = [odd(0, group), odd(1, host), odd(2, user), odd(3, other)];
        let desired = json!({"name": "s", "rules": [{"groups": ["g", group], "hosts": [host], "runAs": [user], "runAsGroups": [other],
            "commands": ["/bin/x", "/bin/y"], "setenv": true}]});
        let Some(world) = written("dir etc/sudoers.d 0755", "Stead/Sudoers", &desired) else { continue };
        read += 1;
        let file = path(&world, "etc/sudoers.d/s");
        printed("visudo", &["-c", "-f", &file], &(&desired, fs::read_to_string(&file)));
        let rules: Json = serde_json::from_str(&printed("cvtsudoers", &["-f", "json", &file], &desired)).unwrap();
        let spec = &rules["User_Specs"][0];
        let commands = &spec["Cmnd_Specs"];
        assert_eq!(
            (rules["User_Specs"].as_array().unwrap().len(), commands.as_array().unwrap().len()),
            (1, 1),
            "{rules}"
        );
        let plain = |text: &str| unescaped(&text.replace("!!", ""), |_| true);
        let lists = [
            &spec["User_List"],
            &spec["Host_List"],
            &commands[0]["runasusers"],
            &commands[0]["runasgroups"],
            &commands[0]["Commands"],
        ];
        let mut found =
            lists.map(|list| list.as_array().unwrap().iter().map(|one| named(&json!([one]))).collect::<Vec<_>>());
        // Where groups are listed, the sign of a group is not stated; an alias has none.
        let [groups, _, _, run_as_groups, _] = &mut found;
        for name in groups.iter_mut().chain(run_as_groups) {
            *name = name.strip_prefix('%').unwrap_or(name).to_owned();
        }
        let meant = [
            vec!["g".to_owned(), plain(&group)],
            vec![plain(&host)],
            vec![plain(&user)],
            vec![plain(&other)],
            vec!["/bin/x".to_owned(), "/bin/y".to_owned()],
        ];
        assert_eq!(found, meant, "{desired}: {rules}");
    }
    accepted("Stead/Sudoers, lists", read, count, 15);
}

/// A text without the backslashes in front of certain letters.
fn unescaped(text: &str, is_certain: fn(char) -> bool) -> String {
    let (mut plain, mut letters) = (String::new(), text.chars().peekable());
    while let Some(letter) = letters.next() {
        let next = letters.next_if(|next| letter == '\\' && is_certain(*next));
        plain.push(next.unwrap_or(letter));
    }
    plain
}

/// The only member of a list of sudo's, as rules have it.
fn named(list: &Json) -> String {
    let only = list.as_array().filter(|all| all.len() == 1).and_then(|all| all[0].as_object());
    let named = only.and_then(|only| only.iter().find(|(kind, _)| *kind != "negated"));
    let (kind, name) = named.unwrap_or_else(|| panic!("{list}"));
    let excluded = if only.is_some_and(|only| only.contains_key("negated")) { "!" } else { "" };
    let sign = match kind.as_str() {
        "usergroup" => "%",
        "userid" => "#",
        "netgroup" => "+",
        "nonunixgroup" => "%:",
        _ => "",
    };
    format!("{excluded}{sign}{}", name.as_str().map_or_else(|| name.to_string(), str::to_owned))
}
