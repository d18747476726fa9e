//! Root runs and reads nothing that others can change.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::Site;

/// A user that is not root.
const NOBODY: u32 = 65534;

/// A Python of its own for Ansible, which only root can change.
fn environment(site: &Site) -> PathBuf {
    let own = site.home.path().join("env");
    let program =
        std::env::split_paths(&site.path).map(|folder| folder.join("ansible")).find(|program| program.exists());
    let start = fs::read_to_string(program.unwrap()).unwrap();
    let python = start.lines().next().unwrap().trim_start_matches("#!").split_whitespace().next().unwrap().to_owned();
    let said = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let python = Path::new(&python);
    said(python, &["-m", "venv", "--without-pip", own.to_str().unwrap()]);
    let peer = said(python, &["-c", "import ansible, os; print(os.path.dirname(os.path.dirname(ansible.__file__)))"]);
    let place = ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"];
    let packages = PathBuf::from(said(&own.join("bin/python3"), &place).trim());
    fs::write(packages.join("peer.pth"), peer).unwrap();
    std::os::unix::fs::symlink(&packages, own.join("packages")).unwrap();
    let program = own.join("bin/ansible");
    fs::write(&program, format!("#!{}\n", own.join("bin/python3").display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    own
}

/// The ways in which others hold a place that root's Python or Ansible looks at.
#[derive(Clone, Copy)]
enum Hold {
    Own,
    Write,
    Link,
}

impl Hold {
    fn take(self, place: &Path) {
        match self {
            Self::Own => std::os::unix::fs::lchown(place, Some(NOBODY), None).unwrap(),
            Self::Write => fs::set_permissions(place, fs::Permissions::from_mode(0o775)).unwrap(),
            Self::Link => {
                let theirs = place.with_extension("theirs");
                fs::rename(place, &theirs).unwrap();
                std::os::unix::fs::symlink(&theirs, place).unwrap();
                Self::Own.take(&theirs);
            }
        }
    }
}

/// Code is put where Python and Ansible look for it. It runs while that is root's, and not once it is another user's, may be
/// changed by a group, or is a link to what is another's.
#[test]
fn root_runs_nothing_of_others() {
    const TEST: &str = "root_runs_nothing_of_others";
    const ACTION: &str = "from ansible.plugins.action.normal import ActionModule\n";
    const MODULE: &str = "from ansible.module_utils.basic import AnsibleModule\n";
    const COLLECTION: &str = ".ansible/collections/ansible_collections/own";
    const EVIL: &str = ".ansible/collections/ansible_collections/own/site/plugins/modules/evil.py";
    // The type, the file, its text besides what writes the mark, and the part of its path that others hold.
    const PLACES: [(&str, &str, &str, &str, Hold); 6] = [
        ("ansible.builtin/file", "env/packages/a.pth", "", "env/packages/a.pth", Hold::Write),
        ("ansible.builtin/file", "env/packages/a.pth", "", "env/lib", Hold::Own),
        ("ansible.builtin/file", "env/packages/yaml.py", "", "env/packages/yaml.py", Hold::Link),
        ("ansible.builtin/file", ".ansible/plugins/action/file.py", ACTION, ".ansible/plugins", Hold::Link),
        ("own.site/evil", EVIL, MODULE, COLLECTION, Hold::Link),
        ("own.site/evil", EVIL, MODULE, COLLECTION, Hold::Own),
    ];
    if !stead_testkit::is_root(TEST) {
        return;
    }
    for (of, file, text, held, hold) in PLACES {
        let Some(mut site) = Site::new(TEST) else { return };
        let own = environment(&site);
        site.path =
            std::env::join_paths(std::iter::once(own.join("bin")).chain(std::env::split_paths(&site.path))).unwrap();
        let home = site.home.path();
        site.plant(file, text);
        let resources = json!([{"name": "x", "type": format!("Ansible.{of}"), "properties": {"path": home.join("x"), "state": "touch"}}]);
        let ours = site.apply("plan", &resources);
        assert!(site.mark().exists(), "{held}: {}{}", ours.stdout, ours.stderr);
        fs::remove_file(site.mark()).unwrap();
        hold.take(&home.join(held));
        let theirs = site.apply("plan", &resources);
        assert!(!site.mark().exists() && theirs.code != Some(0), "{held}: {}{}", theirs.stdout, theirs.stderr);
    }
}

/// The environment and the working directory have no say in what root runs, nor has a home of another user.
#[test]
fn root_listens_to_no_environment() {
    const TEST: &str = "root_listens_to_no_environment";
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let Some(mut site) = Site::new(TEST) else { return };
    let theirs = site.folder(".");
    for file in ["sitecustomize.py", "usercustomize.py", "ansible.py", "file.py", ".ansible/plugins/modules/file.py"] {
        site.plant(file, "from ansible.plugins.action.normal import ActionModule\n");
    }
    let settings = "[defaults]\nlibrary = .\naction_plugins = .\n";
    fs::write(theirs.join(".ansible.cfg"), settings).unwrap();
    fs::write(site.folder("work").join("ansible.cfg"), settings).unwrap();
    Hold::Own.take(&theirs);
    let named = ["PYTHONPATH", "PYTHONUSERBASE", "ANSIBLE_LIBRARY", "ANSIBLE_ACTION_PLUGINS", "ANSIBLE_HOME"];
    site.more = named.map(|name| (name, theirs.clone().into_os_string())).to_vec();
    let mut resources =
        json!([{"name": "x", "type": "Ansible.ansible.builtin/file", "properties": {"path": "/x", "state": "touch"}}]);
    let plan = site.apply("plan", &resources);
    assert!(plan.statuses()["x"] == "changed" && !site.mark().exists(), "{}{}", plan.stdout, plan.stderr);
    for name in ["ansible.builtin/../../file", "ansible.legacy/file", "../file", "{{ansible}}.builtin/file"] {
        resources[0]["type"] = format!("Ansible.{name}").into();
        let refused = site.apply("plan", &resources);
        assert!(refused.code == Some(3) && !site.mark().exists(), "{name}: {}{}", refused.stdout, refused.stderr);
    }
}

/// A value is not an expression, whatever an action takes its options for; a template is, and root carries out none of another user.
#[test]
fn a_value_is_no_expression() {
    const TEST: &str = "a_value_is_no_expression";
    let Some(site) = Site::new(TEST) else { return };
    let folder = site.folder("work");
    let pipe = format!("lookup('pipe', 'touch {}')", site.mark().display());
    let braces = format!("{{{{ {pipe} }}}}");
    let instance = |of: &str, properties: Value| json!({"name": of, "type": format!("Ansible.ansible.builtin/{of}"), "properties": properties});
    let ended = site.apply(
        "apply",
        &json!([
            instance("debug", json!({"var": pipe})),
            instance("assert", json!({"that": [pipe]})),
            instance("fail", json!({"msg": braces})),
            instance("command", json!({"argv": ["echo", braces], "creates": braces})),
            instance("copy", json!({"content": braces, "dest": folder.join("copied")})),
        ]),
    );
    assert!(!site.mark().exists(), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(fs::read_to_string(folder.join("copied")).unwrap(), braces, "{}", ended.stdout);
    fs::write(folder.join("inner.j2"), braces).unwrap();
    fs::write(folder.join("outer.j2"), "{% include 'inner.j2' %}").unwrap();
    for name in ["inner.j2", "outer.j2"] {
        let written =
            json!([instance("template", json!({"src": name, "dest": folder.join(name).with_extension("out")}))]);
        let ours = site.apply("plan", &written);
        assert!(site.mark().exists(), "{}{}", ours.stdout, ours.stderr);
        fs::remove_file(site.mark()).unwrap();
        if stead_testkit::is_root(TEST) {
            Hold::Own.take(&folder.join("inner.j2"));
            let theirs = site.apply("plan", &written);
            assert!(!site.mark().exists(), "{}{}", theirs.stdout, theirs.stderr);
            assert!((theirs.stdout + &theirs.stderr).contains("can be changed by others"));
            std::os::unix::fs::lchown(folder.join("inner.j2"), Some(0), None).unwrap();
        }
    }
}

/// A program `ansible` names a Python, whose own library runs before anything else: it runs while that is root's, and not once it is
/// another user's. One of an environment has the library that the settings of that lead to.
#[test]
fn the_library_of_a_python_is_judged() {
    const TEST: &str = "the_library_of_a_python_is_judged";
    // The folder of the Python, and what others hold.
    const HELD: [(&str, &str); 3] =
        [("py", "py/lib/VERSION"), ("env", "py/lib/VERSION/encodings"), ("env", "env/pyvenv.cfg")];
    if !stead_testkit::is_root(TEST) {
        return;
    }
    for (folder, held) in HELD {
        let Some(mut site) = Site::new(TEST) else { return };
        let version = python_at(&mut site, folder);
        let resources = json!([{"name": "x", "type": "Ansible.ansible.builtin/file", "properties": {"path": "/x", "state": "touch"}}]);
        let ours = site.apply("plan", &resources);
        assert!(site.mark().exists(), "{held}: {}{}", ours.stdout, ours.stderr);
        fs::remove_file(site.mark()).unwrap();
        Hold::Own.take(&site.home.path().join(held.replace("VERSION", &version)));
        let theirs = site.apply("plan", &resources);
        assert!(!site.mark().exists(), "{held}: {}{}", theirs.stdout, theirs.stderr);
    }
}

/// Has the program `ansible` name a Python in a folder of its own, whose library is in `py`, and returns its name and version.
fn python_at(site: &mut Site, folder: &str) -> String {
    let said = site.run(
        "python3",
        Path::new("/"),
        &["-c", "import os, sys; print(os.path.realpath(sys.executable)); print('python%d.%d' % sys.version_info[:2])"],
    );
    let (python, version) = said.stdout.trim().split_once('\n').unwrap();
    let (tools, library) = (site.folder("tools"), site.folder("py/bin"));
    let own = site.folder(&format!("{folder}/bin")).join("python3");
    fs::copy(python, &own).unwrap();
    if folder != "py" {
        let settings = format!("home = {}\n", library.display());
        fs::write(site.home.path().join(folder).join("pyvenv.cfg"), settings).unwrap();
    }
    let program = tools.join("ansible");
    fs::write(&program, format!("#!{}\n", own.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for file in ["os.py", "encodings/__init__.py"] {
        site.plant(&format!("py/lib/{version}/{file}"), "");
    }
    site.path = std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(&site.path))).unwrap();
    version.to_owned()
}

/// Lists that are kept are read only where nobody else can have written them, and only in the form that they are written in.
#[test]
fn lists_of_others_are_not_read() {
    const TEST: &str = "lists_of_others_are_not_read";
    const SHOW: &str =
        "import sys; sys.path[:0] = sys.argv[1:3]\nfrom ansible_docs import kept\nprint(kept(sys.argv[3]))";
    if !stead_testkit::is_root(TEST) {
        return;
    }
    let Some(site) = Site::new(TEST) else { return };
    let adapters = stead_testkit::repository().join("adapters");
    let [common, own] = ["common", "ansible"].map(|name| adapters.join(name).display().to_string());
    let list = site.folder("lists").join("list.json");
    let read = |text: &str, mode: u32, owner: u32| {
        let _ = fs::remove_file(&list);
        fs::write(&list, text).unwrap();
        fs::set_permissions(&list, fs::Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(&list, Some(owner), None).unwrap();
        site.run("python3", Path::new("/"), &["-c", SHOW, &common, &own, list.to_str().unwrap()]).stdout
    };
    assert_eq!(read("{\"a\": 1}", 0o600, 0), "{'a': 1}\n");
    for (text, mode, owner) in [
        ("{\"a\": 1}", 0o622, 0),
        ("{\"a\": 1}", 0o600, NOBODY),
        ("[1]", 0o600, 0),
        ("null", 0o600, 0),
        ("{", 0o600, 0),
        (&"[".repeat(200_000), 0o600, 0),
    ] {
        assert_eq!(read(text, mode, owner), "{}\n", "{mode:o} {owner} {}", text.len());
    }
    let target = list.with_extension("other");
    fs::write(&target, "{\"a\": 1}").unwrap();
    fs::remove_file(&list).unwrap();
    std::os::unix::fs::symlink(&target, &list).unwrap();
    let linked = site.run("python3", Path::new("/"), &["-c", SHOW, &common, &own, list.to_str().unwrap()]);
    assert_eq!(linked.stdout, "{}\n", "{}", linked.stderr);
}

/// YAML that a template reads belongs to the document, and is kept nowhere.
#[test]
fn what_a_template_reads_is_not_kept() {
    let Some(site) = Site::new("what_a_template_reads_is_not_kept") else { return };
    let folder = site.folder("work");
    fs::write(folder.join("vars.yaml"), format!("word: sesame-4711\nlong: {}\n", "x".repeat(40_000))).unwrap();
    let template = format!("{{{{ (lookup('file', '{}/vars.yaml') | from_yaml).word }}}}\n", folder.display());
    fs::write(folder.join("a.j2"), template).unwrap();
    let (src, dest) = (folder.join("a.j2").display().to_string(), folder.join("a").display().to_string());
    let applied = site.apply(
        "apply",
        &json!([{"name": "a", "type": "Ansible.ansible.builtin/template", "properties": {"src": src, "dest": dest}}]),
    );
    assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "sesame-4711\n", "{}{}", applied.stdout, applied.stderr);
    let places = [Path::new("/var/cache/stead").to_owned(), site.home.path().join(".cache")];
    for place in places.into_iter().filter(|place| place.exists()) {
        super::assert_nowhere(&place, &["sesame-4711".to_owned()]);
    }
}
