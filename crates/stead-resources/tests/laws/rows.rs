//! The rows that laws draw: starts of a machine, and desired states of resources.

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

use super::support::{MACHINE, USERS};

/// The content that a file may have, as JSON text.
const CONTENTS: &[&str] = &[
    "",
    "a\\n",
    "b\\na\\n",
    "a\\r\\nb",
    "\\u00ff",
    "# BEGIN n\\na\\n# END n\\n",
    "b\\n# BEGIN n\\n# END n",
    "[s]\\nk = 1\\n",
    "k = \\\"x\\\" # why\\n[s]\\na = [1]\\n[s.k]\\nb = 1\\n",
    "{\\\"s\\\": {\\\"k\\\": 1, \\\"a\\\": [1]}}",
    "{\\n  \\\"s\\\": [] // c\\n}\\n",
    "s:\\n  k: 1 # why\\n  a:\\n  - 1\\n",
    "s: {k: x, a: [1]}\\nt: &t [1]\\n",
    "10.0.0.1 h # c\\n::1 h a\\nu soft nofile 1\\nu - nofile 2 # c\\n",
    "vm.k = 1\\t2\\nvm/k=1\\n",
    "s:\\n- k: 1\\n  a: |\\n    x\\n",
    "#X11Forwarding no\\nPort 22\\nPort 2222\\n\\nmatch user=u\\n  x11forwarding=no\\n",
];

/// Draws what is at the path in question, besides what is around it.
pub(super) fn start() -> impl Strategy<Value = String> {
    let around = "dir d 0755\nfile d/x 0644 \"x\"\nlink d/l -> x\ndir src 0700\nfile src/a 0600 \"a\"\nlink src/k -> a\ndir src/b 0755\ndir home/u 0755\narchive a.tar 0644 [[\"dir\",\"b\",\"0750\"],[\"file\",\"a\",\"0644\",\"A\"],[\"link\",\"k\",\"b/c\"],[\"file\",\"b/c\",\"0600\",\"c\"]]\narchive a.zip 0644 [[\"file\",\"t/a\",\"0755\",\"x\"],[\"link\",\"t/k\",\"a\"],[\"dir\",\"t/e\",\"0700\"]]\nfile etc/cron.d/j 0644 \"# c\\nA=c\\n1 2 * * * root x\\n\"\n";
    let mode = prop_oneof![Just("0600"), Just("0644"), Just("0755"), Just("4711")];
    let content = prop::sample::select(CONTENTS);
    let filled = "dir p 0755\nfile p/a 0644 \"A\"\ndir p/extra 0755\nlink p/k -> elsewhere\n";
    prop_oneof![
        1 => Just(String::new()),
        6 => (mode, content).prop_map(|(mode, content)| format!("file p {mode} \"{content}\"\n")),
        1 => Just("dir p 0700\n".to_owned()),
        2 => Just(filled.to_owned()),
        1 => Just("link p -> d/x\n".to_owned()),
        1 => Just("link p -> nowhere\n".to_owned()),
        1 => Just("fifo p 0600\n".to_owned()),
    ]
    .prop_map(move |at| around.to_owned() + USERS + MACHINE + &at)
}

/// The properties of an instance at the path `p`, or below it where directories above are created: each of a table or not, with one
/// of its values.
fn properties(table: Vec<(&'static str, Vec<Json>)>) -> impl Strategy<Value = Json> {
    members(table).prop_map(|mut members| {
        let is_below = members.get("parents") == Some(&Json::Bool(true));
        members.insert("path".to_owned(), json!(if is_below { "p/q/r" } else { "p" }));
        Json::Object(members)
    })
}

pub(super) fn members(table: Vec<(&'static str, Vec<Json>)>) -> impl Strategy<Value = Map<String, Json>> {
    let each: Vec<_> = table
        .into_iter()
        .map(|(name, values)| (Just(name), proptest::option::of(proptest::sample::select(values))))
        .collect();
    each.prop_map(|chosen| chosen.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

pub(super) fn desired() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let modes = || vec![json!("0644"), json!("755"), json!("2711")];
    let file = vec![
        ("content", vec![json!("a\n"), json!("other")]),
        ("contentBase64", vec![json!("/w==")]),
        ("source", vec![json!("d/x"), json!("d/l"), json!("src")]),
        ("mode", modes()),
        ("owner", vec![json!("0")]),
        ("backup", vec![json!(true), json!(".old")]),
        ("parents", flags()),
        ("_exist", flags()),
    ];
    let directory = vec![
        ("entries", vec![json!(["a"]), json!([])]),
        ("source", vec![json!("src"), json!("d")]),
        ("mode", modes()),
        ("_purge", flags()),
        ("recurse", flags()),
        ("parents", flags()),
        ("_exist", flags()),
    ];
    let symlink = vec![("target", vec![json!("d/x"), json!("y")]), ("force", flags()), ("_exist", flags())];
    let line = vec![
        ("line", vec![json!("a"), json!("new")]),
        ("match", vec![json!("^a"), json!("b$")]),
        ("after", vec![json!("^b"), json!("BOF")]),
        ("before", vec![json!("a"), json!("EOF")]),
        ("create", flags()),
        ("_exist", flags()),
    ];
    prop_oneof![
        1 => properties(file).prop_map(|state| ("Stead/File", state)),
        1 => properties(directory).prop_map(|state| ("Stead/Directory", state)),
        1 => properties(symlink).prop_map(|state| ("Stead/Symlink", state)),
        1 => properties(line).prop_map(|state| ("Stead/Line", state)),
        5 => desired_content(),
    ]
}

/// Resources whose content comes from elsewhere.
fn desired_content() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let modes = || vec![json!("0644"), json!("755"), json!("2711")];
    let template = vec![
        ("template", vec![json!("a\n"), json!("{{ v }}\n"), json!("{{ w }}")]),
        ("source", vec![json!("d/x"), json!("d/l"), json!("nothing")]),
        ("variables", vec![json!({"v": "a"})]),
        ("mode", modes()),
        ("backup", vec![json!(true)]),
        ("_exist", flags()),
    ];
    let archive = vec![
        ("source", vec![json!("a.tar"), json!("a.tar"), json!("a.zip"), json!("d/x"), json!("nothing")]),
        ("stripComponents", vec![json!(1)]),
        ("exclude", vec![json!(["b"]), json!(["**/c"])]),
        ("creates", vec![json!("a"), json!("t/a")]),
        ("owner", vec![json!("0")]),
        ("_exist", flags()),
    ];
    let checksum = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let download = vec![
        ("url", vec![json!("file:///d/x"), json!("file:///nothing"), json!("file:///src")]),
        ("checksum", vec![json!(checksum), json!(checksum.replace("sha256:2d", "sha256:00"))]),
        ("pin", vec![json!("firstUse")]),
        ("mode", modes()),
        ("_exist", flags()),
    ];
    prop_oneof![
        1 => properties(template).prop_map(|state| ("Stead/Template", state)),
        2 => properties(archive).prop_map(|state| ("Stead/Archive", state)),
        2 => properties(download).prop_map(|state| ("Stead/Download", state)),
    ]
}

/// Resources that manage a part of a file of any kind.
pub(super) fn desired_part() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let block = vec![
        ("name", vec![json!("n")]),
        ("content", vec![json!("a"), json!(""), json!("x\ny\n")]),
        ("after", vec![json!("^b"), json!("BOF")]),
        ("create", flags()),
        ("_exist", flags()),
    ];
    let ini = vec![
        ("section", vec![json!("s")]),
        ("key", vec![json!("k"), json!("a")]),
        ("value", vec![json!("1"), json!("x y"), json!("")]),
        ("create", flags()),
        ("_exist", flags()),
    ];
    let key = || {
        let values = [json!(1), json!("x"), json!(null), json!({"b": [1, {"c": "y: z"}]}), json!([])];
        vec![
            ("pointer", ["/s", "/s/k", "/s/k/b", "/s/a/0", "/s/a/1", "/s/0", "/s/0/k", "/k"].map(Json::from).to_vec()),
            ("value", values.to_vec()),
            ("create", flags()),
            ("_exist", flags()),
        ]
    };
    prop_oneof![
        properties(block).prop_map(|state| ("Stead/Block", state)),
        properties(ini).prop_map(|state| ("Stead/Ini", state)),
        properties(key()).prop_map(|state| ("Stead/Json", state)),
        properties(key()).prop_map(|state| ("Stead/Toml", state)),
        properties(key()).prop_map(|state| ("Stead/Yaml", state)),
    ]
}

/// Keywords of sshd in a file of any kind or in that of the system, without a check by a program of the one that runs the test.
fn sshd() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let table = || {
        vec![
            ("PermitRootLogin", vec![json!(false), json!("yes"), json!(null)]),
            ("x11forwarding", flags()),
            ("AllowUsers", vec![json!(["u"]), json!("u v"), json!(null)]),
            ("Port", vec![json!(22), json!([2222, 22])]),
            (
                "match",
                vec![
                    json!([{"criteria": {"user": "u"}, "X11Forwarding": true}]),
                    json!([{"criteria": {"group": ["g", "h"]}, "PermitTTY": null, "ForceCommand": "x # y"}]),
                ],
            ),
            ("_purge", flags()),
            ("create", flags()),
        ]
    };
    let unchecked = |mut properties: Json| {
        properties["validate"] = json!(false);
        ("Stead/SshdConfig", properties)
    };
    prop_oneof![
        properties(table()).prop_map(unchecked),
        members(table()).prop_map(move |state| unchecked(Json::Object(state))),
    ]
}

/// Resources that manage an entry in a file of the system.
pub(super) fn desired_entry() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let host = vec![
        ("name", vec![json!("h"), json!("g")]),
        ("ip", vec![json!("10.0.0.1"), json!("::2")]),
        ("aliases", vec![json!(["a", "b"]), json!([])]),
        ("comment", vec![json!("c"), json!("")]),
        ("_exist", flags()),
    ];
    let limits = vec![
        ("domain", vec![json!("u")]),
        ("type", vec![json!("soft"), json!("-")]),
        ("item", vec![json!("nofile")]),
        ("value", vec![json!("2"), json!("unlimited")]),
        ("_exist", flags()),
    ];
    let sysctl = vec![
        ("name", vec![json!("vm.k"), json!("k.a")]),
        ("value", vec![json!("1"), json!("1 2")]),
        ("live", flags()),
        ("_exist", flags()),
    ];
    let cron = vec![
        ("name", vec![json!("j"), json!("k")]),
        ("schedule", vec![json!("@daily"), json!("1 2 * * *")]),
        ("user", vec![json!("root")]),
        ("command", vec![json!("x y")]),
        ("environment", vec![json!({}), json!({"A": "b"})]),
        ("_exist", flags()),
    ];
    let hostname = vec![("name", vec![json!("a"), json!("web1")])];
    let ssh_key = vec![
        ("user", vec![json!("u"), json!("nobody-here")]),
        ("key", vec![json!("AAAA")]),
        ("type", vec![json!("ssh-rsa")]),
        ("options", vec![json!("no-pty"), json!("")]),
        ("comment", vec![json!("c"), json!("")]),
        ("exclusive", flags()),
        ("_exist", flags()),
    ];
    prop_oneof![
        sshd(),
        properties(host).prop_map(|state| ("Stead/Host", state)),
        properties(limits).prop_map(|state| ("Stead/Limits", state)),
        properties(sysctl).prop_map(|state| ("Stead/Sysctl", state)),
        members(cron).prop_map(|state| ("Stead/Cron", Json::Object(state))),
        members(hostname).prop_map(|state| ("Stead/Hostname", Json::Object(state))),
        members(ssh_key).prop_map(|state| ("Stead/SshKey", Json::Object(state))),
    ]
}

/// Draws files of the system that have one owner, or an entry on each line.
pub(super) fn system() -> impl Strategy<Value = String> {
    let fstab = prop::sample::select(vec![
        "",
        "file etc/fstab 0644 \"# c\\n\\nLABEL=a  /m  ext4 ro,noatime\\n\"\n",
        "file etc/fstab 0600 \"/dev/b / ext4 defaults 0 1\\nUUID=1\\tnone\\tswap\\tsw\\t0\\t0\\n/d /a\\\\040b none bind 0 0 # c\"\n",
        "file etc/fstab 0644 \"x /m tmpfs\\ny /m xfs size=1m 1 2\\nbroken\\n\"\n",
        "link etc/fstab -> ../d/x\n",
    ]);
    let sudoers = prop::sample::select(vec![
        "dir etc/sudoers.d 0750\n",
        "file etc/sudoers.d/s 0440 \"u ALL=ALL\\n\"\n",
        "file etc/sudoers.d/s 0644 \"u ALL=NOPASSWD: /bin/x\\n\"\n",
        "link etc/sudoers.d/s -> ../passwd\n",
        "",
    ]);
    let units = prop::sample::subsequence(
        vec![
            "file etc/systemd/system/t.timer 0644 \"[Timer]\\nOnCalendar=daily\\n[Install]\\nWantedBy=timers.target\\n\"\n",
            "file etc/systemd/system/t.service 0600 \"[Service]\\nNice=1\\nExecStart=/bin/a\\n\"\n",
            "link etc/systemd/system/timers.target.wants/t.timer -> /etc/systemd/system/t.timer\n",
            "file usr/lib/systemd/system/p.timer 0644 \"[Timer]\\nOnBootSec=1\\n\"\n",
            "link etc/systemd/system/q.timer -> /dev/null\n",
        ],
        0..=5,
    );
    let tables = prop::sample::subsequence(
        vec![
            "file etc/nftables.conf 0755 \"#!/usr/sbin/nft -f\\n\\nflush ruleset\\n\"\n",
            "file etc/nftables.d/inet-t.nft 0644 \"table inet t {\\n}\\n\"\n",
            "file etc/sysconfig/nftables.conf 0600 \"include \\\"/etc/nftables.d/*.nft\\\"\"\n",
            "link etc/nftables.d/ip-t.nft -> inet-t.nft\n",
        ],
        0..=4,
    );
    (fstab, sudoers, units, tables).prop_map(|(fstab, sudoers, units, tables)| {
        ["dir etc 0755\nfile d/x 0644 \"x\"\n", fstab, sudoers, &units.concat(), &tables.concat()].concat()
    })
}

type Table = Vec<(&'static str, Vec<Json>)>;

/// Properties of which some are always stated.
fn with(always: Table, others: Table) -> impl Strategy<Value = Json> {
    let always: Vec<_> =
        always.into_iter().map(|(name, values)| (Just(name.to_owned()), prop::sample::select(values))).collect();
    (always, members(others)).prop_map(|(always, mut members)| {
        members.extend(always);
        Json::Object(members)
    })
}

fn mount() -> impl Strategy<Value = Json> {
    let flags = || vec![json!(true), json!(false)];
    let mount = with(
        vec![
            ("path", vec![json!("/m"), json!("/a b"), json!("/new"), json!("/")]),
            ("device", vec![json!("x"), json!("/d"), json!("LABEL=a")]),
            ("fstype", vec![json!("ext4"), json!("tmpfs"), json!("none")]),
        ],
        vec![
            ("options", vec![json!("noatime,ro"), json!("defaults"), json!("size=1m"), json!("bind")]),
            ("dump", vec![json!(1)]),
            ("pass", vec![json!(2), json!(0)]),
            ("state", vec![json!("mounted"), json!("unmounted")]),
            ("_exist", flags()),
        ],
    );
    let device = ("device", vec![json!("UUID=1"), json!("/s")]);
    let swap = with(
        vec![("path", vec![json!("none")]), ("fstype", vec![json!("swap")]), device],
        vec![("options", vec![json!("sw"), json!("pri=1")]), ("_exist", flags())],
    );
    prop_oneof![2 => mount, 1 => swap]
}

fn sudoers() -> impl Strategy<Value = Json> {
    let rules = |command: &str| json!([{"users": ["u"], "commands": [command]}]);
    let stated = |property: &'static str, values: Vec<Json>| {
        let always = vec![("name", vec![json!("s"), json!("t")]), ("validate", vec![json!(false)]), (property, values)];
        with(always, vec![("_exist", vec![json!(true), json!(false)])])
    };
    let content = vec![json!("u ALL=ALL\n"), json!("Defaults insults\n")];
    prop_oneof![stated("rules", vec![rules("ALL"), rules("/bin/x")]), stated("content", content)]
}

fn timer() -> impl Strategy<Value = Json> {
    let flags = || vec![json!(true), json!(false)];
    with(
        vec![("name", vec![json!("t"), json!("t.timer"), json!("p"), json!("q"), json!("n")])],
        vec![
            ("onCalendar", vec![json!("daily"), json!(["daily"]), json!(["a", "b"])]),
            ("onBootSec", vec![json!("1"), json!("1h 5min")]),
            ("command", vec![json!("/bin/a"), json!("/bin/b c")]),
            ("unit", vec![json!("u"), json!("t.service")]),
            ("persistent", flags()),
            ("user", vec![json!("u")]),
            ("description", vec![json!("D")]),
            ("enabled", flags()),
            ("state", vec![json!("running"), json!("stopped")]),
            ("_exist", flags()),
        ],
    )
}

fn nftables() -> impl Strategy<Value = Json> {
    let flags = || vec![json!(true), json!(false)];
    let contents = ["", "chain c {\n}\n", "set s {\n\ttype ipv4_addr\n}", "# }\nchain c { counter; }", "}\n"];
    with(
        vec![("name", vec![json!("t"), json!("a.b")]), ("content", contents.map(Json::from).to_vec())],
        vec![("family", vec![json!("inet"), json!("ip")]), ("boot", flags()), ("_exist", flags())],
    )
}

/// Resources that manage such files.
pub(super) fn desired_system() -> impl Strategy<Value = (&'static str, Json)> {
    prop_oneof![
        3 => mount().prop_map(|state| ("Stead/Mount", state)),
        2 => sudoers().prop_map(|state| ("Stead/Sudoers", state)),
        2 => nftables().prop_map(|state| ("Stead/Nftables", state)),
        4 => timer().prop_map(|state| ("Stead/Timer", state)),
    ]
}

/// Resources that manage several files of the system, or one that is shared by many.
pub(super) fn desired_setting() -> impl Strategy<Value = (&'static str, Json)> {
    let flags = || vec![json!(true), json!(false)];
    let crontab = vec![
        ("name", vec![json!("j"), json!("a b")]),
        ("table", vec![json!("user")]),
        ("user", vec![json!("u"), json!("nobody-here")]),
        ("schedule", vec![json!("@reboot"), json!("1 2 * * *")]),
        ("command", vec![json!("x y")]),
        ("environment", vec![json!({}), json!({"A": "b"})]),
        ("_exist", flags()),
    ];
    let timezone = vec![("name", ["UTC", "Europe/Berlin", "Etc/Old", "No/Where"].map(Json::from).to_vec())];
    let locale = vec![
        ("variables", vec![json!({"LANG": "de_DE.UTF-8", "LC_TIME": ""}), json!({})]),
        ("generated", vec![json!(["de_DE.utf8"]), json!(["C.UTF-8", "fr_FR.UTF-8"]), json!(["xx"])]),
    ];
    let module = vec![
        ("name", vec![json!("br_netfilter"), json!("packaged")]),
        ("boot", flags()),
        ("options", vec![json!("a=1 b"), json!("")]),
        ("blacklisted", flags()),
        ("loaded", flags()),
    ];
    prop_oneof![
        members(crontab).prop_map(|state| ("Stead/Cron", Json::Object(state))),
        members(timezone).prop_map(|state| ("Stead/Timezone", Json::Object(state))),
        members(locale).prop_map(|state| ("Stead/Locale", Json::Object(state))),
        members(module).prop_map(|state| ("Stead/KernelModule", Json::Object(state))),
    ]
}
