//! Laws of every expression, and of the table of functions.

#![expect(clippy::disallowed_methods, reason = "the tests read the corpus, which the core does not")]

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use stead_core::expr::{Expression, Fault, Stop, codes, functions};
use stead_core::value::Value;

mod expressions;

use expressions::World;

fn evaluate(text: &str, world: &World) -> Result<Value, Stop> {
    Expression::parse(text).map_err(Stop::Fault)?.evaluate(world)
}

fn fault(text: &str) -> Option<Fault> {
    match evaluate(text, &World::default()) {
        Err(Stop::Fault(fault)) => Some(fault),
        _ => None,
    }
}

/// Text that is near to being an expression.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("(".to_owned()),
        Just(")".to_owned()),
        Just(",".to_owned()),
        Just(".".to_owned()),
        Just("'".to_owned()),
        Just("''".to_owned()),
        Just(" \n".to_owned()),
        Just("-1".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("'ä💡'".to_owned()),
        Just("lambda('x',".to_owned()),
        Just("lambdaVariables('x')".to_owned()),
        Just("ns.f(".to_owned()),
        proptest::sample::select(functions()).prop_map(|function| format!("{}(", function.name)),
        ".{0,3}",
    ];
    proptest::collection::vec(scrap, 0..20).prop_map(|scraps| format!("[{}", scraps.concat()))
}

/// An expression that is well-formed, but need not have a value. `parameters('s')` and `parameters('o')` occur in it.
fn well_formed() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => Just("parameters('s')".to_owned()),
        1 => Just("parameters('n')".to_owned()),
        1 => Just("parameters('l')".to_owned()),
        1 => Just("parameters('o')".to_owned()),
        1 => Just("'canary'".to_owned()),
        1 => Just("'x'".to_owned()),
        1 => (-3_i64..4).prop_map(|integer| integer.to_string()),
        1 => Just("true".to_owned()),
        1 => Just("null()".to_owned()),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let call = (proptest::sample::select(pure_functions()), proptest::collection::vec(inner.clone(), 4));
        let call = call.prop_map(|((name, count), arguments)| format!("{name}({})", arguments[..count].join(",")));
        let mapped = (prop_oneof!["map", "filter"], inner.clone(), inner.clone());
        let mapped = mapped.prop_map(|(name, array, body)| {
            // The parameter of the lambda takes the place of one leaf.
            format!("{name}({array},lambda('x',{}))", body.replacen("'x'", "lambdaVariables('x')", 1))
        });
        let access = (inner.clone(), inner).prop_map(|(of, index)| {
            if of.ends_with(')') { format!("{of}[{index}]") } else { format!("createArray({of})[{index}]") }
        });
        prop_oneof![6 => call, 1 => mapped, 1 => access]
    })
}

/// The functions that depend on their arguments alone, each with a number of arguments that it accepts.
fn pure_functions() -> Vec<(&'static str, usize)> {
    let asks = ["deployment", "date", "lambda", "system", "resource"];
    let is_pure = |name: &str, categories: &[&str]| {
        !["copyIndex", "range", "stead.file", "stead.templateFile"].contains(&name)
            && !categories.iter().any(|category| asks.contains(category))
    };
    let pure = functions().iter().filter(|function| is_pure(function.name, function.categories));
    pure.flat_map(|function| {
        (function.min..=function.max.unwrap_or(function.min + 2).min(4)).map(|count| (function.name, count))
    })
    .collect()
}

/// Builds an expression that is usually well typed out of a tape of choices; the end of the tape ends it soon.
struct Tape<'t>(&'t [u8]);

impl Tape<'_> {
    fn choice(&mut self, of: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % of
    }

    fn text(&mut self, depth: usize) -> String {
        match self.choice(if depth == 0 { 3 } else { 13 }) {
            0 => "parameters('s')".to_owned(),
            1 => "'x'".to_owned(),
            2 => "parameters('o').canary".to_owned(),
            3 => format!("concat({}, {})", self.text(depth - 1), self.text(depth - 1)),
            4 => format!("toUpper({})", self.text(depth - 1)),
            5 => format!("format('{{0}}-{{1:>3}}', {}, {})", self.text(depth - 1), self.number(depth - 1)),
            6 => format!("base64({})", self.text(depth - 1)),
            7 => format!("string({})", self.array(depth - 1)),
            8 => format!("take({}, {})", self.text(depth - 1), self.number(depth - 1)),
            9 => format!("if({}, {}, {})", self.truth(depth - 1), self.text(depth - 1), self.text(depth - 1)),
            10 => format!("coalesce({}, {})", self.any(depth - 1), self.text(depth - 1)),
            11 => format!("ns.wrap({})", self.text(depth - 1)),
            _ => format!("createObject('k', {}).k", self.text(depth - 1)),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        match self.choice(if depth == 0 { 2 } else { 6 }) {
            0 => "parameters('n')".to_owned(),
            1 => ["0", "1", "-1", "2", "-3", "7"][self.choice(6)].to_owned(),
            2 => format!("add({}, {})", self.number(depth - 1), self.number(depth - 1)),
            3 => format!("length({})", self.any(depth - 1)),
            4 => format!("indexOf({}, {})", self.array(depth - 1), self.any(depth - 1)),
            _ => format!("div({}, {})", self.number(depth - 1), self.number(depth - 1)),
        }
    }

    fn truth(&mut self, depth: usize) -> String {
        match self.choice(if depth == 0 { 2 } else { 7 }) {
            0 => "true".to_owned(),
            1 => "equals(parameters('n'), 12345)".to_owned(),
            2 => format!("equals({}, {})", self.any(depth - 1), self.any(depth - 1)),
            3 => format!("and({}, {})", self.truth(depth - 1), self.truth(depth - 1)),
            4 => format!("or({}, {})", self.truth(depth - 1), self.truth(depth - 1)),
            5 => format!("contains({}, {})", self.array(depth - 1), self.any(depth - 1)),
            _ => format!("not({})", self.truth(depth - 1)),
        }
    }

    fn array(&mut self, depth: usize) -> String {
        match self.choice(if depth == 0 { 2 } else { 9 }) {
            0 => "parameters('l')".to_owned(),
            1 => "createArray('x', 1)".to_owned(),
            2 => format!("createArray({}, {})", self.any(depth - 1), self.any(depth - 1)),
            3 => format!("map({}, lambda('v', {}))", self.array(depth - 1), self.body(depth - 1)),
            4 => {
                let verdict = format!("equals({}, {})", self.body(depth - 1), self.any(depth - 1));
                format!("filter({}, lambda('v', 'i', {verdict}))", self.array(depth - 1))
            }
            5 => format!("union({}, {})", self.array(depth - 1), self.array(depth - 1)),
            6 => format!("skip({}, {})", self.array(depth - 1), self.number(depth - 1)),
            7 => format!("concat({}, {})", self.array(depth - 1), self.array(depth - 1)),
            _ => format!("items(createObject({}, {}))", self.text(depth - 1), self.any(depth - 1)),
        }
    }

    /// The body of a lambda whose element is `v`.
    fn body(&mut self, depth: usize) -> String {
        let other = self.any(depth.min(2));
        match self.choice(5) {
            0 => "lambdaVariables('v')".to_owned(),
            1 => format!("createArray(lambdaVariables('v'), {other})"),
            2 => format!("concat(string(lambdaVariables('v')), string({other}))"),
            3 => format!("if(equals(lambdaVariables('v'), {other}), 'same', {other})"),
            _ => "ns.wrap(string(lambdaVariables('v')))".to_owned(),
        }
    }

    fn any(&mut self, depth: usize) -> String {
        match self.choice(5) {
            0 => self.text(depth),
            1 => self.number(depth),
            2 => self.truth(depth),
            3 => self.array(depth),
            _ => "null()".to_owned(),
        }
    }
}

fn typed() -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<u8>(), 0..40).prop_map(|tape| Tape(&tape).any(4))
}

/// Returns worlds with the same values, in the open and as secrets.
fn worlds() -> (World, World) {
    let values = json!({"s": "canary", "n": 12345, "l": ["canary", 7, null], "o": {"canary": "canary", "x": [1]}});
    let functions = json!({"ns.wrap": {
        "parameters": {"t": "string"}, "output": "string", "value": "[concat('<', parameters('t'), '>')]"
    }});
    let open = json!({"parameters": values.clone(), "functions": functions.clone()});
    (world(open), world(json!({"parameters": {}, "secure": values, "functions": functions})))
}

fn world(json: Json) -> World {
    World::new(json).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: stead_testkit::cases(stead_testkit::ALL_LAWS, 2000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused_within_it(text in scraps()) {
        let (_, world) = worlds();
        if let Err(Stop::Fault(fault)) = evaluate(&text, &world) {
            prop_assert!(text.get(fault.at.clone()).is_some(), "{:?} is not in {text:?}", fault.at);
            prop_assert!(!fault.message.is_empty());
        }
    }

    #[test]
    fn text_in_quotes_means_itself(content in any::<String>()) {
        let text = format!("[concat('{}', '')]", content.replace('\'', "''"));
        prop_assert_eq!(evaluate(&text, &World::default()), Ok(content.into()));
    }

    #[test]
    fn space_means_nothing(text in well_formed()) {
        let (world, _) = worlds();
        let spread = text.replace('(', " (\n").replace(',', " , ").replace(')', " )");
        let results = [text, spread].map(|text| evaluate(&format!("[if(true, {text}, 1)]"), &world));
        match &results {
            [Err(Stop::Fault(one)), Err(Stop::Fault(two))] => prop_assert_eq!(&one.code, &two.code),
            [one, two] => prop_assert_eq!(one, two),
        }
    }

    #[test]
    fn integers_are_exact_or_refused(left in edge(), right in edge()) {
        let (wide_left, wide_right) = (i128::from(left), i128::from(right));
        let oracle = [
            ("add", Some(wide_left + wide_right)),
            ("sub", Some(wide_left - wide_right)),
            ("mul", Some(wide_left * wide_right)),
            ("div", wide_left.checked_div(wide_right)),
            ("mod", wide_left.checked_rem(wide_right)),
            ("min", Some(wide_left.min(wide_right))),
            ("max", Some(wide_left.max(wide_right))),
        ];
        for (name, expected) in oracle {
            let text = format!("[{name}({left}, {right})]");
            let result = evaluate(&text, &World::default());
            if let Some(expected) = expected.and_then(|wide| i64::try_from(wide).ok()) {
                prop_assert_eq!(result, Ok(expected.into()), "{}", text);
            } else {
                prop_assert_eq!(fault(&text).map(|fault| fault.code), Some(&codes::ARITHMETIC), "{}", text);
            }
        }
        let less = evaluate(&format!("[less({left}, {right})]"), &World::default());
        prop_assert_eq!(less, Ok((left < right).into()));
    }

    #[test]
    fn the_ends_of_a_sequence_make_it_whole(items in proptest::collection::vec(-9_i64..9, 0..8), at in -2_i64..10) {
        let items = items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let array = format!("createArray({items})");
        let text = format!("string({array})");
        for whole in [array, text] {
            let joined = evaluate(&format!("[concat(take({whole}, {at}), skip({whole}, {at}))]"), &World::default());
            prop_assert_eq!(joined, evaluate(&format!("[if(true, {whole}, 1)]"), &World::default()));
        }
    }

    #[test]
    fn encodings_can_be_undone(content in any::<String>()) {
        let quoted = content.replace('\'', "''");
        for (there, back) in [
            ("base64", "base64ToString"),
            ("dataUri", "dataUriToString"),
            ("uriComponent", "uriComponentToString"),
        ] {
            let text = format!("[{back}({there}('{quoted}'))]");
            prop_assert_eq!(evaluate(&text, &World::default()), Ok(content.as_str().into()), "{}", text);
        }
    }

    #[test]
    fn a_union_holds_each_once(left in small(), right in small()) {
        let union = evaluate(&format!("[union({left}, {right})]"), &World::default()).unwrap();
        let items = union.as_array().unwrap();
        for (at, item) in items.iter().enumerate() {
            prop_assert!(!items[..at].contains(item));
        }
        let all = evaluate(&format!("[concat({left}, {right})]"), &World::default()).unwrap();
        prop_assert!(all.as_array().unwrap().iter().all(|item| items.contains(item)));
    }

    /// Opening what was computed from secrets gives what is computed from their plaintext, and nothing shows it before.
    /// An expression that fails with the plaintext need not fail then: a sealed part that is carried along may never
    /// be needed.
    #[test]
    fn sealing_changes_only_when_it_is_computed(text in prop_oneof![1 => well_formed(), 3 => typed()]) {
        // The canary that the expression itself spells out is not secret.
        let text = format!("[if(true, {}, 1)]", text.replace("'canary'", "'plain'"));
        let (open_world, sealed_world) = worlds();
        let sealed = evaluate(&text, &sealed_world);
        prop_assert!(!format!("{sealed:?}").contains("canary"), "{:?}", sealed);
        if let Ok(value) = &sealed {
            prop_assert!(!value.to_redacted_json().to_string().contains("canary"));
        }
        let opened = sealed.map(|value| sealed_world.open(&value));
        match (evaluate(&text, &open_world), opened) {
            (Ok(plain), Ok(Ok(opened))) => prop_assert_eq!(plain, opened),
            (Err(Stop::Fault(_)), Ok(Err(error))) => prop_assert!(!error.to_string().contains("canary")),
            (Err(Stop::Fault(_)), Ok(Ok(_)) | Err(Stop::Fault(_))) => {}
            (plain, opened) => prop_assert!(false, "{text}\nplain {plain:?}\nsealed {opened:?}"),
        }
    }
}

fn edge() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -10_i64..10,
        proptest::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX, 1 << 32, -(1 << 31)]),
    ]
}

fn small() -> impl Strategy<Value = String> {
    let item = prop_oneof![(0_i64..4).prop_map(|n| n.to_string()), Just("'a'".to_owned()), Just("null()".to_owned())];
    proptest::collection::vec(item, 0..6).prop_map(|items| format!("createArray({})", items.join(",")))
}

#[test]
fn calls_are_found_and_their_arguments_computed_alone() {
    let text = "[concat(reference(resourceId('A/B', parameters('n'))).x, if(true(), 'a', string(reference('A/B:c'))))]";
    let expression = Expression::parse(text).unwrap();
    let world = World::new(json!({"parameters": {"n": "d e"}})).unwrap();
    let ids: Vec<Value> =
        expression.calls("reference").map(|call| call.arguments().next().unwrap().evaluate(&world).unwrap()).collect();
    assert_eq!(ids, [Value::from("A/B:d%20e"), Value::from("A/B:c")]);
    let places: Vec<&str> = expression.calls("reference").map(|call| &text[call.at()]).collect();
    assert_eq!(places, ["reference(resourceId('A/B', parameters('n')))", "reference('A/B:c')"]);
    assert_eq!(expression.calls("stateChanged").count(), 0);
    let users = Expression::parse("[a.b(c.d(1), map(createArray(), lambda('x', e.f())))]").unwrap();
    assert_eq!(users.user_functions().collect::<Vec<_>>(), ["a.b", "c.d", "e.f"]);
}

#[test]
fn recipes_that_share_their_parts_neither_explode_nor_recurse_without_end() {
    // Each variable doubles the one before: the recipe is small, its plaintext is not.
    let mut value = expressions::sealed("canary".into());
    let doubled = Expression::parse("[concat(variables('v'), variables('v'))]").unwrap();
    let (mut steps, mut stopped) = (0, false);
    while steps < 1000 && !stopped {
        let world = Variable(value.clone());
        match doubled.evaluate(&world) {
            Ok(next) => value = next,
            Err(Stop::Fault(fault)) => stopped = fault.code == &codes::LIMIT,
            Err(other) => panic!("{other:?}"),
        }
        steps += 1;
    }
    assert!(stopped, "nested without end");
    assert_eq!(World::default().open(&value), Err(stead_core::expr::UnsealError::TooLarge));
}

struct Variable(Value);

impl stead_core::expr::Environment for Variable {
    fn variable(&self, _: &str) -> stead_core::expr::Answer {
        stead_core::expr::Answer::Value(self.0.clone())
    }
}

#[test]
fn the_secrets_of_a_value_are_known_before_it_is_opened() {
    let world =
        World::new(json!({"parameters": {}, "secure": {"l": [1]}, "secrets": {"a": "1", "b": "2", "v/c": "3"}}));
    let text = "[createArray(secret('a'), map(parameters('l'), lambda('x', concat(secret('b'), string(lambdaVariables('x'))))), secret('c', 'v'))]";
    let value = evaluate(text, &world.unwrap()).unwrap();
    let names: Vec<String> = value.secrets().iter().map(|name| name.0.to_string()).collect();
    assert_eq!(names, ["a", "b", "sealed in a test: [1]", "v/c"]);
}

#[test]
fn functions_of_a_later_version_are_named_when_a_value_is_opened() {
    let later = [
        json!({"$sealed": {"steps": [{"apply": {"function": "later", "arguments": [1]}}]}}),
        json!({"$sealed": {"steps": [{"each": {
            "array": [1], "closure": {"source": "[map(later(1), lambda('x', 1))]", "captured": [], "functions": []}
        }}]}}),
    ];
    for written in later {
        let value: Value = serde_json::from_value(written).unwrap();
        let unknown = stead_core::expr::UnsealError::UnknownFunction { function: "later".to_owned() };
        assert_eq!(World::default().open(&value), Err(unknown));
    }
}

/// Takes secrets and counts them.
#[derive(Default)]
struct Counting(std::sync::atomic::AtomicUsize);

impl stead_core::value::Seal for Counting {
    fn seal(&self, _: Value) -> stead_core::id::SecretName {
        let number = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        stead_core::id::SecretName(number.to_string().into())
    }
}

#[test]
fn no_value_of_the_core_holds_what_was_sealed() {
    let seal = Counting::default();
    let canary = Value::from(json!({"secureObject": {"password": "canary"}}));
    let sealed = [
        stead_core::value::sealing_wrapped(canary.clone(), &seal),
        canary.sealed_as(stead_core::value::DataType::SecureObject, &seal),
    ];
    for value in sealed {
        let whole = Expression::parse("[createObject('a', concat('x', string(variables('v'))))]").unwrap();
        let computed = whole.evaluate(&Variable(value)).unwrap();
        let written = serde_json::to_string(&computed).unwrap();
        assert!(!written.contains("canary"), "{written}");
    }
    assert_eq!(seal.0.into_inner(), 2);
}

#[test]
fn every_code_is_explained_and_has_a_case() {
    let folder = stead_testkit::repository().join("corpus/expression");
    let cases = std::fs::read_dir(folder).unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let cases: String = cases.collect();
    assert!(!codes::CODES.is_empty());
    for code in codes::CODES {
        assert!(code.explanation.len() > 80, "{code} is not explained");
        assert!(cases.contains(code.id), "{code} has no case in corpus/expression");
    }
}

#[test]
fn the_table_of_functions_is_consistent() {
    let mut names = std::collections::BTreeSet::new();
    for function in functions() {
        assert!(names.insert(function.name), "{} occurs twice", function.name);
        assert!(function.accepts.len() <= function.max.unwrap_or(usize::MAX), "{}", function.name);
        assert!(function.max.is_some() || function.rest.is_some(), "{}", function.name);
        assert!(function.max.is_none_or(|max| max >= function.min), "{}", function.name);
        assert!(function.description.ends_with('.') && function.syntax.starts_with(function.name), "{}", function.name);
        assert!(!function.categories.is_empty() && !function.returns.is_empty(), "{}", function.name);
    }
}

/// The functions that accept more here than in the peer: any value where the peer takes only some for no reason.
const WIDER: [&str; 6] = ["array", "createArray", "indexOf", "lastIndexOf", "equals", "if"];

/// Compares with the functions that DSC v3 lists, when the folder with its recorded facts lies beside the repository.
#[test]
fn the_functions_are_those_of_dsc() {
    let file = stead_testkit::repository().join("../shared/reference/dsc/functions.jsonl");
    let Ok(text) = std::fs::read_to_string(&file) else {
        return stead_testkit::skip("the_functions_are_those_of_dsc", &format!("{} is not there", file.display()));
    };
    let listed: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let own = functions().iter().filter(|function| function.is_own()).count();
    assert_eq!(listed.len() + own, functions().len());
    for theirs in &listed {
        let name = theirs["name"].as_str().unwrap();
        let ours = functions().iter().find(|function| function.name == name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(theirs["category"], json!(ours.categories), "{name}");
        assert_eq!(theirs["minArgs"], json!(ours.min), "{name}");
        assert_eq!(theirs["maxArgs"].as_u64().filter(|max| *max < 1000), ours.max.map(|max| max as u64), "{name}");
        let words =
            |kinds: &[stead_core::expr::ValueKind]| kinds.iter().map(|kind| json!(kind.as_str())).collect::<Vec<_>>();
        let covers = |ours: Vec<Json>, theirs: &Json| {
            let theirs = theirs.as_array().cloned().unwrap_or_default();
            let same = theirs.len() == ours.len() || WIDER.contains(&name);
            same && theirs.iter().all(|kind| ours.contains(kind))
        };
        let ordered = theirs["acceptedArgOrderedTypes"].as_array().unwrap();
        assert_eq!(ordered.len(), ours.accepts.len(), "{name}");
        for (theirs, ours) in ordered.iter().zip(ours.accepts) {
            assert!(covers(words(ours), theirs), "{name}: {theirs}");
        }
        assert!(covers(ours.rest.map(words).unwrap_or_default(), &theirs["remainingArgAcceptedTypes"]), "{name}");
        let returned = words(ours.returns);
        assert!(theirs["returnTypes"].as_array().unwrap().iter().all(|kind| returned.contains(kind)), "{name}");
    }
}
