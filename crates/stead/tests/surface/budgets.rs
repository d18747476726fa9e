//! Documents and answers that multiply are refused in little memory: the limit on it would end the program otherwise.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

use super::{Answer, Place, answer};

const HEAD: &str = "$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json\nresources:\n";

/// Runs the program with so many KiB of address space, of which threads reserve some hundred thousand without using them.
fn run_within(kibibytes: u64, place: &Place, arguments: &[&str]) -> Answer {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("ulimit -v {kibibytes}; exec \"$@\""), "sh"]).arg(place.program()).args(arguments);
    command
        .env_clear()
        .env("HOME", place.path())
        .env("STEAD_STATE", place.path().join("state"))
        .env("PATH", "/usr/bin:/bin");
    command.env("DSC_RESOURCE_PATH", place.path()).env("PSModulePath", place.path().join("modules"));
    answer(command.current_dir(place.path()).stdin(Stdio::null()))
}

/// Like [`run_within`], with standard input.
fn fed_within(kibibytes: u64, place: &Place, arguments: &[&str], input: &str) -> Answer {
    let path = place.write("input", input);
    let script = format!("{} <{}", arguments.join(" "), path.display());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("ulimit -v {kibibytes}; exec {} {script}", place.program().display())]);
    command.env_clear().env("HOME", place.path()).env("STEAD_STATE", place.path()).current_dir(place.path());
    answer(&mut command)
}

/// A session of `serve`, whose memory is looked at while it lasts.
struct Served {
    program: Child,
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Fails where a process used more than so many MiB at any time.
pub(super) fn was_below(process: u32, most: u64, what: &str) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let kibibytes: u64 = peak.trim_end_matches(" kB").parse().unwrap();
    let _ = writeln!(std::io::stderr(), "{what}: {} MiB at most", kibibytes >> 10);
    assert!(kibibytes <= most << 10, "{what}: {peak}");
}

impl Served {
    fn start(place: &Place) -> Self {
        let mut command = place.command(&["serve", "--stdio"]);
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, answers) = (program.stdin.take().unwrap(), BufReader::new(program.stdout.take().unwrap()));
        let mut served = Self { program, input, answers };
        let hello = served.ask(r#"{"id":1,"method":"initialize","params":{"protocol":1}}"#);
        assert!(hello.contains("\"engine\""), "{hello}");
        served
    }

    fn ask(&mut self, request: &str) -> String {
        writeln!(self.input, "{request}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer
    }

    /// Ends the session, in which at most so many MiB were used at any time.
    fn ends_below(mut self, most: u64, what: &str) {
        was_below(self.program.id(), most, what);
        assert!(self.ask(r#"{"id":3,"method":"shutdown"}"#).contains("\"result\":null"));
        assert!(self.program.wait().unwrap().success());
    }
}

#[test]
fn a_loop_that_multiplies_is_refused_before_its_first_iteration() {
    let place = Place::new();
    for (count, elements) in [(50_000, 1000), (1_000_000, 10_000)] {
        let properties = format!("    output: \"[range(0, {elements})]\"\n");
        let instance = "- type: Microsoft.DSC.Debug/Echo\n  name: \"[string(copyIndex())]\"\n";
        let copy = format!("  copy: {{name: l, count: {count}}}\n");
        place.write("a.yaml", &format!("{HEAD}{instance}{copy}  properties:\n{properties}"));
        let output = run_within(600_000, &place, &["plan", "a.yaml"]);
        assert_eq!(output.exit, 3, "{}", output.stderr);
        assert!(output.stderr.contains("error[E0409]"), "{}", output.stderr);
        assert!(output.stderr.contains("a.yaml:5:26"), "{}", output.stderr);
        assert!(output.stderr.contains(&format!("{count} iterations of about")), "{}", output.stderr);
    }
}

#[test]
fn variables_that_multiply_are_refused() {
    let place = Place::new();
    let mut text = "$schema: https://aka.ms/dsc/schemas/v3/bundled/config/document.json\nvariables:\n".to_owned();
    for at in 0..200 {
        writeln!(text, "  v{at}: \"[map(range(0, 100), lambda('x', range(0, 10000)))]\"").unwrap();
    }
    place.write("a.yaml", &(text + "resources: []\n"));
    let output = run_within(600_000, &place, &["plan", "a.yaml"]);
    assert_eq!(output.exit, 3, "{}", output.stderr);
    assert!(output.stderr.contains("error[E0409]: the document takes more than"), "{}", output.stderr);
}

#[test]
fn hostile_documents_are_refused_in_little_memory() {
    let nested = |open: &str, close: &str| format!("{HEAD}- {}x{}", open.repeat(10_000), close.repeat(10_000));
    let aliases = |level: usize| format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(","));
    let doubled = |at: usize| format!("  v{at}: \"[concat(variables('v{}'), variables('v{}'))]\"\n", at - 1, at - 1);
    let echo = |output: &str| {
        format!("{HEAD}- {{type: Microsoft.DSC.Debug/Echo, name: a, properties: {{output: {output}}}}}\n")
    };
    let include = "- {type: Microsoft.DSC/Include, name: i, properties: {configurationFile: a.yaml}}\n";
    let circle = "parameters:\n  a: {type: string, defaultValue: \"[parameters('b')]\"}\n  b: {type: string, defaultValue: \"[parameters('a')]\"}\nresources: []\n";
    let documents = [
        ("a hundred MiB", format!("a: {}\n", "x".repeat(100 << 20)), "more than 16777216 bytes"),
        (
            "a million instances",
            HEAD.to_owned() + &"- {type: Test/None, name: n}\n".repeat(1_000_000),
            "16777216 bytes",
        ),
        ("lists in lists", nested("[", "]"), "error[E0117]"),
        ("objects in objects", nested("{a: ", "}"), "error[E0117]"),
        (
            "calls in calls",
            echo(&format!("\"[{}'x'{}]\"", "string(".repeat(10_000), ")".repeat(10_000))),
            "error[E0306]",
        ),
        (
            "aliases of aliases",
            "a0: &a0 [x,x]\n".to_owned() + &(1..30).map(aliases).collect::<String>(),
            "error[E0117]",
        ),
        (
            "values that double",
            format!(
                "variables:\n  v0: aaaaaaaa\n{}{}",
                (1..60).map(doubled).collect::<String>(),
                echo("\"[variables('v59')]\"").split_once('\n').map_or("", |(_, rest)| rest)
            ),
            "error[E0409]",
        ),
        ("parameters in a circle", circle.to_owned(), "error[E0710]"),
        ("an include of itself", HEAD.to_owned() + include, "error[E0509]"),
    ];
    for (what, text, expected) in documents {
        let place = Place::new();
        place.write("a.yaml", &text);
        let output = run_within(600_000, &place, &["plan", "a.yaml"]);
        assert!(output.exit == 3 && output.stderr.contains(expected), "{what}: {} {}", output.exit, output.stderr);
    }
}

/// A mistake that is there thousands of times is refused as soon as enough of it was found.
#[test]
fn what_is_wrong_over_and_over_is_refused_at_once() {
    const MANY: usize = 20_000;
    let declared = |section: &str, one: &dyn Fn(usize) -> String| {
        let line = |at| format!("  v{at}: {}\n", one(at));
        let lines: String = (0..MANY).map(line).collect();
        format!("{section}:\n{lines}resources: []\n")
    };
    let forward = |at: usize| format!("\"[variables('v{}')]\"", at + 1);
    let default = |at: usize| format!("{{type: string, defaultValue: \"[parameters('v{}')]\"}}", at + 1);
    let long = "x".repeat(1 << 20);
    let instance = |at: usize| {
        let needs = format!("[\"[resourceId('Microsoft.DSC.Debug/Echo', 'm{at}')]\"]");
        format!("- {{type: Microsoft.DSC.Debug/Echo, name: n{at}, properties: {{output: x}}, dependsOn: {needs}}}\n")
    };
    let state = |name: &str| format!("a:\n  file.managed:\n  - name: \"{name}\"\n");
    let cases = [
        (
            "plan a",
            declared("variables", &forward),
            "error[E0404]: Variable 'v1' does not exist or has not been initialized yet",
        ),
        (
            "lint a",
            declared("variables", &forward),
            "error[E0404]: Variable 'v1' does not exist or has not been initialized yet",
        ),
        ("plan a", declared("variables", &|at| format!("[{}]", forward(at))), "error[E0404]"),
        ("plan a", declared("parameters", &default), "error[E04"),
        ("plan a", format!("variables:\n  {long}y: 1\n  b: \"[variables('{long}')]\"\nresources: []\n"), "error[E0"),
        ("plan a", format!("resources:\n{}", (0..MANY).map(instance).collect::<String>()), "error[E05"),
        ("sls convert a", state(&"{{ params.get(".repeat(MANY)), "unsupported Jinja"),
        ("sls convert a", state(&"{{ ".repeat(MANY)), "unsupported Jinja"),
        ("sls convert a", state(&"{".repeat(1 << 20)), "unsupported Jinja"),
        ("sls convert a", state(&"{{ params.get('p') }}".repeat(MANY)), ""),
        ("sls convert a", state("x") + &"{% if a %}\n".repeat(MANY), "unsupported Jinja"),
    ];
    for (line, text, expected) in cases {
        let place = Place::new();
        place.write("a", &text);
        let began = std::time::Instant::now();
        let output = run_within(600_000, &place, &line.split(' ').collect::<Vec<_>>());
        let shown =
            format!("{line} {:.60}: {} {:.500}", text.get(..60).unwrap_or_default(), output.exit, output.stderr);
        let _ = writeln!(std::io::stderr(), "{:?}", began.elapsed());
        assert!(output.exit == i32::from(!expected.is_empty()) * 3 && output.stderr.contains(expected), "{shown}");
        // A few hundred milliseconds; what is quadratic takes minutes.
        assert!(began.elapsed().as_secs() < 30, "{shown}");
    }
}

/// Modules of PowerShell whose values or classes multiply are read in little memory: what is too large of them is left out.
#[test]
fn modules_that_multiply_are_read_in_little_memory() {
    const RESOURCE: &str =
        "class Scripted : OMI_BaseResource { [Key] String Name; [Write, EmbeddedInstance(\"E0\")] String A; };";
    const SCRIPT: &str = "function Get-TargetResource { param([string] $Name) @{ Name = $Name } }
function Test-TargetResource { param([string] $Name) $false }
function Set-TargetResource { param([string] $Name) }
";
    let place = Place::new();
    let module = |name: &str, file: &str, text: &str| {
        place.write(&format!("modules/{name}/{file}"), text);
    };
    let embedded = |at: usize, name: &str| format!("[Write, EmbeddedInstance(\"E{}\")] String {name}; ", at + 1);
    let class = |at: usize| {
        let properties: String = ["A", "B", "C", "D"].map(|name| embedded(at, name)).concat();
        format!("[ClassVersion(\"1.0\")] class E{at} {{ {properties}}};\n")
    };
    let classes = format!(
        "[ClassVersion(\"1.0\")] class E40 {{ [Write] String X; }};\n{}",
        (0..40).map(class).collect::<String>()
    );
    module("Classes", "Classes.psd1", "@{ ModuleVersion = '1.0' }\n");
    module("Classes", "DSCResources/Scripted/Scripted.psm1", SCRIPT);
    module(
        "Classes",
        "DSCResources/Scripted/Scripted.schema.mof",
        &format!("{classes}[ClassVersion(\"1.0\")] {RESOURCE}\n"),
    );
    let entry = |at| format!("k{at} = 'x'*1MB;");
    let manifests = [
        vec!["('x'*1MB)"; 2000].join(" + "),
        format!("@({})", vec!["('x'*1MB)"; 2000].join(", ")),
        format!("@({})", vec!["('x'*1MB)"; 2000].join("; ")),
        format!("@() + {}", vec!["('x'*1MB)"; 2000].join(" + ")),
        format!("@{{{}}}", (0..2000).map(entry).collect::<String>()),
        format!("\"{}\"", "$('x'*1MB)".repeat(2000)),
        "'x'*1MB*1MB".to_owned(),
        format!("'{}'", "x".repeat(1 << 20)),
    ];
    for (at, value) in manifests.iter().enumerate() {
        module(
            &format!("M{at}"),
            &format!("M{at}.psd1"),
            &format!("@{{ ModuleVersion = '1.0'; PrivateData = {value} }}\n"),
        );
    }
    for line in [["resource", "list", "-a", "*"], ["resource", "schema", "-r", "Classes/Scripted"]] {
        let began = std::time::Instant::now();
        let output = run_within(800_000, &place, &line);
        assert_eq!(output.exit, 0, "{line:?}: {:.500}", output.stderr);
        assert!(output.stdout.contains("Classes/Scripted") || line.contains(&"schema"), "{:.500}", output.stdout);
        assert!(output.stdout.len() < 4 << 20 && began.elapsed().as_secs() < 30, "{line:?}: {}", output.stdout.len());
    }
}

#[test]
fn instances_of_one_unknown_type_are_counted() {
    let place = Place::new();
    let instance = |at: usize| format!("- {{type: Test/None, name: n{at}}}\n");
    place.write("a.yaml", &(HEAD.to_owned() + &(0..5000).map(instance).collect::<String>()));
    let output = run_within(600_000, &place, &["lint", "a.yaml"]);
    assert_eq!(output.stderr.matches("error[E0506]").count() + output.stdout.matches("error[E0506]").count(), 101);
    assert!((output.stderr + &output.stdout).contains("4900 more instances have this type"));
}

#[test]
fn an_answer_of_millions_of_values_is_refused() {
    let place = Place::new();
    let manifest = r#"{"$schema": "https://aka.ms/dsc/schemas/v3/bundled/resource/manifest.json", "type": "Test/Many",
        "version": "1.0.0", "get": {"executable": "sh", "args": ["-c",
        "printf '{\"a\":[1'; yes ,1 | head -n 7000000 | tr -d '\\n'; printf ']}'"]},
        "schema": {"embedded": {"type": "object"}}}"#;
    place.write("many.dsc.resource.json", manifest);
    let output = run_within(800_000, &place, &["resource", "get", "--resource", "Test/Many"]);
    assert_eq!(output.exit, 2, "{}", output.stderr);
    assert!(output.stderr.contains("it holds more than 500000 values"), "{}", output.stderr);
}

/// Each of the templates is refused for that, or, where it is nothing, rendered or refused; within little memory.
fn are_answered<const COUNT: usize>(what: &str, templates: [(String, &str); COUNT]) {
    let place = Place::new();
    place.write("f", "former");
    let mut served = Served::start(&place);
    for (template, expected) in templates {
        let params = json!({ "type": "Stead/Template", "properties": { "path": "f", "template": template } });
        let answer = served.ask(&json!({ "id": 2, "method": "test", "params": params }).to_string());
        let shown = template.get(..200).unwrap_or(&template);
        // What is not refused is rendered, or fails by itself.
        let is_answered = serde_json::from_str::<Json>(&answer).is_ok_and(|answer| answer["id"] == 2);
        assert!(is_answered && answer.contains(expected), "{shown}: {answer}");
    }
    served.ends_below(256, what);
}

/// Of what a template makes on its way, as of what it yields, only so much is made; and nothing is so deep or long that it ends the
/// program.
#[test]
fn templates_that_multiply_are_refused() {
    let steps = |count: usize, step: &str| {
        let start = "{% set n = namespace(a='x', l=[1], d={'a': 1}, r=range(9)) %}";
        format!("{start}{{% for i in range({count}) %}}{{% set {step} %}}{{% endfor %}}{{{{ n.l|length }}}}")
    };
    let written = |step: &str| format!("{{% set l = [1] %}}{}{{{{ l|length }}}}", step.repeat(60));
    let templates = [
        (steps(60, "n.a = n.a ~ n.a"), "steps"),
        (steps(60, "n.a = n.a + n.a"), "steps"),
        (steps(60, "n.a = n.a * 8"), "steps"),
        (steps(60, "n.l = n.l + n.l"), "a list of more than"),
        (steps(60, "n.l = [] + n.l + n.l"), "a list of more than"),
        (steps(60, "n.l = (n.l + n.l)|map('abs')"), "a list of more than"),
        (steps(60, "n.l = n.l|chain(n.l)"), "a list of more than"),
        (steps(60, "n.l = [n.l, n.l]|sum(start=[])"), "a list of more than"),
        (steps(60, "n.l = n.l * 8"), "a list of more than"),
        (steps(60, "n.l = [n.l, n.l]"), "steps"),
        (steps(60, "n.d = {'a': n.d, 'b': n.d}"), "steps"),
        (steps(60, "n.d = n.d|chain(n.d)") + "{{ n.d.missing|default(1) }}", ""),
        (steps(90_000, "n.l = [n.l]"), "levels deep"),
        (steps(90_000, "n.d = {'a': n.d}"), "levels deep"),
        (steps(90_000, "n.n = n"), "levels deep"),
        (steps(20_000, "n.r = n.r[1:] + n.r"), "a list of more than"),
        (steps(9000, "n.r = n.r[::-1]"), ""),
        (written("{% set l = l + l %}"), "a list of more than"),
        ("{% macro f(l, n) %}{% if n %}{{ f(l + l, n - 1) }}{% else %}{{ l|length }}{% endif %}{% endmacro %}{{ f([1], 60) }}".to_owned(), ""),
        (format!("{{{{ [1]{} }}}}", "|list".repeat(50_000)), "too many operators"),
        (format!("{{{{ 1{} }}}}", " + [1] * 1000000000".repeat(40)), "invalid operation"),
        ("{% set a %}{% for i in range(99999) %}{{ 'x' * 10000 }}{% endfor %}{% endset %}".to_owned(), "steps"),
        ("{{ (range(99999) | join('x' * 100000)) | length }}".to_owned(), "steps"),
        ("{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}".to_owned(), "steps"),
    ];
    are_answered("templates", templates);
}

/// Nothing in a template is so deep or long that recursion through it ends the program.
#[test]
fn templates_that_nest_are_refused() {
    are_answered(
        "templates that nest",
        [
            (format!("{{{{ {}1{} }}}}", "[".repeat(50_000), "]".repeat(50_000)), "nested too deeply"),
            (format!("{{{{ {}1{} }}}}", "dict(".repeat(150), ")".repeat(150)), "nested too deeply"),
            (format!("{{{{ {}1{} }}}}", "1|default(".repeat(150), ")".repeat(150)), "nested too deeply"),
            (format!("{{{{ {}1{} }}}}", "x[".repeat(150), "]".repeat(150)), "nested too deeply"),
            (format!("{{{{ {}1 }}}}", "not ".repeat(3000)), "too many operators"),
            (format!("{{{{ 1{} }}}}", " == 1".repeat(9000)), "too many operators"),
            (format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(1000)), "nested too deeply"),
            (
                format!("{{% raw %}}{{% endraw x %}}{{{{ \"{{% endraw %}}{{{{ 1{} }}}}", "+1".repeat(9000)),
                "too many operators",
            ),
            (format!("{{% for a in [1] %}}{}1{}{{% endfor %}}", "{% if 1 %}".repeat(49), "{% endif %}".repeat(49)), ""),
            (format!("{{{{ {}1{} }}}}", "1|default(".repeat(49), ")".repeat(49)), ""),
            (
                format!(
                    "{{% macro f(n) %}}{{{{ {}f(n + 1){} }}}}{{% endmacro %}}{{{{ f(1) }}}}",
                    "(".repeat(40),
                    ")".repeat(40)
                ),
                "",
            ),
        ],
    );
}

/// Values within values are counted as often as they occur, wherever they are handed over, gone through, compared or filled in.
#[test]
fn templates_with_shared_values_are_refused() {
    are_answered("templates with shared values", [
        ("{% macro f(x, n) %}{% if n > 0 %}{{ f([x, x], n - 1) }}{% else %}{{ x|string|length }}{% endif %}{% endmacro %}{{ f([1], 60) }}".to_owned(), "steps"),
        ("{% macro f(x, y, n) %}{% if n > 0 %}{{ f([x, x], [y, y], n - 1) }}{% else %}{{ x == y }}{% endif %}{% endmacro %}{{ f([1], [1], 60) }}".to_owned(), "steps"),
        ("{% macro f(x, n) %}{% if n > 0 %}{{ f(*[(x, x), n - 1]) }}{% else %}{{ x|string|length }}{% endif %}{% endmacro %}{{ f([1], 60) }}".to_owned(), "steps"),
        (format!("{{% set a = [1] %}}{}{{{{ a|string|length }}}}{}", "{% with a = [a, a] %}".repeat(45), "{% endwith %}".repeat(45)), "steps"),
        (format!("{{% set a = [1] %}}{}{{{{ a|string|length }}}}{}", "{% for a in [[a, a]] %}".repeat(45), "{% endfor %}".repeat(45)), "steps"),
        ("{% for x in [[1]] recursive %}{{ loop([[x, x]]) if loop.depth < 60 else x|string|length }}{% endfor %}".to_owned(), "steps"),
        (format!("{{{{ {}1{}|string|length }}}}", "[".repeat(45), "] * 2".repeat(45)), "many times"),
        (format!("{{{{ {}1{}|string|length }}}}", "[none, none]|map('default', ".repeat(24), ", true)|list".repeat(24)), "steps"),
        ("{% set x = range(50000)|list %}{{ ([none] * 50000)|map('default', x, true)|list|string|length }}".to_owned(), "steps"),
        ("{% set x = range(50000)|list %}{{ ([x] * 50000)|string|length }}".to_owned(), "many times"),
        ("{{ range(100000)|batch(1)|map('batch', 1000, 'x')|map('list')|list|length }}".to_owned(), "steps"),
        ("{{ range(100000)|batch(1)|map('batch', 1000)|list|length }}".to_owned(), "steps"),
        ("{{ range(100000)|batch(1)|map('slice', 1000, 'x')|list|length }}".to_owned(), "steps"),
        ("{{ range(99999)|map('replace', '1', 'x' * 10000)|list|length }}".to_owned(), "steps"),
        ("{{ (['a'] * 20000)|map('indent', 1000000, true)|list|length }}".to_owned(), "steps"),
        ("{{ (['%100000s'] * 20000)|map('format', 'x')|list|length }}".to_owned(), ""),
        ("{{ range(99999)|batch(2)|map('join', 'x' * 100000)|list|length }}".to_owned(), "steps"),
        ("{% set a = 1 %}\n".repeat(20_000), ""),
        ("{% set x = [range(50000)|list] %}{% set y = [range(50000)|list] %}{% for i in range(90000) %}{{ x == y }}{% endfor %}".to_owned(), "steps"),
        ("{% set x = [range(50000)|list] %}{% set y = [range(50000)|list] %}{% for i in range(90000) %}{{ x in [y] }}{% endfor %}".to_owned(), "steps"),
        ("{% set x = [range(50000)|list, range(50000)|list] %}{% for i in range(90000) %}{{ x|sort|length }}{% endfor %}".to_owned(), "steps"),
    ]);
}

#[test]
fn a_million_instances_are_refused() {
    let place = Place::new();
    let instance = "- type: Microsoft.DSC.Debug/Echo\n  name: \"[string(copyIndex())]\"\n";
    let copy = "  copy: {name: l, count: 1000000}\n  properties: {output: x}\n";
    place.write("a.yaml", &format!("{HEAD}{instance}{copy}"));
    let output = run_within(400_000, &place, &["plan", "a.yaml"]);
    assert!(output.exit == 3 && output.stderr.contains("error[E0409]: 1000000 iterations"), "{}", output.stderr);
}

#[test]
fn a_request_costs_little_however_it_is_made() {
    let place = Place::new();
    let call = |output: &str| {
        let properties = format!("{{\"output\":{output}}}");
        format!(
            r#"{{"id":2,"method":"test","params":{{"type":"Microsoft.DSC.Debug/Echo","properties":{properties}}}}}"#
        )
    };
    let text = |length: usize| call(&format!("\"{}\"", "x".repeat(length)));
    let requests = [
        (call(&format!("[{}[]]", "[],".repeat(5_000_000))), "more than 500000 values"),
        (call(&format!("{{{}\"b\":1}}", "\"a\":{},".repeat(1_000_000))), "more than 500000 values"),
        (text(15 << 20), "\"inDesiredState\":true"),
        (call(&format!("[{}0]", "0,".repeat(200_000))), "\"inDesiredState\":true"),
    ];
    let mut served = Served::start(&place);
    for (request, expected) in requests {
        let answer = served.ask(&request);
        assert!(answer.contains(expected), "{expected}: {}", answer.get(..300).unwrap_or(&answer));
    }
    served.ends_below(256, "requests");
    let output = fed_within(600_000, &place, &["serve", "--stdio"], &text(63 << 20));
    assert!(output.stderr.contains("a request is too long"), "{} {}", output.exit, output.stderr);
}

/// Results that are long are made and written a few at a time, however many are asked for.
#[test]
fn long_answers_cost_little_however_many_there_are() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let call = r#"{"type":"Stead/Command","properties":{"get":"head -c 4000000 /dev/zero | tr '\\0' a"}}"#;
    for id in 10..70 {
        writeln!(served.input, r#"{{"id":{id},"method":"get","params":{call}}}"#).unwrap();
    }
    for _ in 10..70 {
        let mut answer = String::new();
        served.answers.read_line(&mut answer).unwrap();
        assert!(answer.len() > 4_000_000, "{}", answer.get(..300).unwrap_or(&answer));
    }
    served.ends_below(512, "long answers");
}

/// No memory is reserved for a length that an editor only announces.
#[test]
fn a_message_that_is_announced_costs_nothing() {
    let place = Place::new();
    let message = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let values = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":[{}[]]}}"#, "[],".repeat(3_000_000));
    let cases = [
        ("Content-Length: 99999999999999\r\n\r\n".to_owned(), "is too long"),
        ("Content-Length: 18446744073709551615\r\n\r\n{".to_owned(), "is too long"),
        ("Content-Length: 2000000000\r\n\r\n{".to_owned(), "is too long"),
        ("Content-Length: 99999999999999999999\r\n\r\n{".to_owned(), "malformed"),
        (format!("X: {}\r\n\r\n", "x".repeat(1 << 20)), "malformed header"),
        (message(&values), "more than 500000 values"),
        (message("[1"), "malformed message"),
    ];
    for (input, expected) in cases {
        let output = fed_within(400_000, &place, &["lsp"], &input);
        assert!(output.exit == 1 && output.stderr.contains(expected), "{expected}: {} {}", output.exit, output.stderr);
    }
}
