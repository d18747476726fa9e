//! The cases with PowerShell: its modules, calls of its resources, and the module of stead.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{Bench, Limit, of_all};
use crate::meter::{self, Run};
use crate::module::{Figures, PWSH, session, wall};
use crate::table::{Row, Verdict, milliseconds};
use crate::work;

/// How many milliseconds reading so many modules may take, and finding one of them by the index.
const MODULES: (u32, f64, f64) = (1000, 100.0, 5.0);

/// Modules of PowerShell. What a search of one module takes, with the start of the program, is not counted.
pub(super) fn powershell(bench: &Bench) -> io::Result<Vec<Row>> {
    let (count, read_limit, found_limit) = MODULES;
    let (one, all) = (bench.path("one-module"), bench.path("modules"));
    work::modules(&one, 1)?;
    let lists = work::modules(&all, count)?;
    let [files, folders] = ["module-files", "module-folders"].map(|name| bench.path(name));
    fs::write(&files, lists.files)?;
    fs::write(&folders, lists.folders)?;
    // Changes of the last seconds could hide later ones, so that what was just written is not kept in an index.
    std::thread::sleep(Duration::from_secs(3));
    let list = ["resource", "list", "--adapter", "Microsoft.Adapter/PowerShell"];
    let anew = |modules: &Path| {
        let _ = fs::remove_dir_all(bench.path("CACHE"));
        bench.stead_with_modules(modules, &list)
    };
    let (base, read) = bench.in_turn(|| anew(&one), || anew(&all))?;
    let read_floor = of_all(
        (0..bench.runs)
            .map(|_| bench.floor(&["floor-read", &files.display().to_string()]))
            .collect::<io::Result<_>>()?,
    );
    let schema = ["resource", "schema", "-r", work::MODULE_RESOURCE];
    let (small, found) =
        bench.in_turn(|| bench.stead_with_modules(&one, &schema), || bench.stead_with_modules(&all, &schema))?;
    let found_floor = of_all(
        (0..bench.runs)
            .map(|_| bench.floor(&["floor-stat", &folders.display().to_string()]))
            .collect::<io::Result<_>>()?,
    );
    let mut rows = vec![
        over(&format!("{count} PowerShell modules, read"), base, read_floor, read, read_limit),
        over(&format!("one of {count}, by the index"), small, found_floor, found, found_limit),
    ];
    rows.extend(tests_of_classes(bench, &one)?);
    Ok(rows)
}

/// How many tests of a class there are in one run.
const TESTS: [u32; 4] = [1, 10, 100, 1000];

/// Tests of a class, beside one PowerShell that does the same and nothing else, and beside a PowerShell for each.
fn tests_of_classes(bench: &Bench, modules: &Path) -> io::Result<Vec<Row>> {
    let manifest = modules.join("Bench0000/Bench0000.psd1");
    let alone = |script: &str| {
        let arguments = ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command", script];
        meter::run(bench.folder.path(), modules, Path::new(PWSH), &arguments)
    };
    let script = work::settings_script(&manifest, 1);
    let (start, one) = bench.in_turn(|| alone("exit"), || alone(&script))?;
    let mut rows = vec![shown("PowerShell alone", start), shown("a fresh PowerShell for one Test", one)];
    let mut last = None;
    for count in TESTS {
        let (document, script) = (bench.document(&work::settings(count))?, work::settings_script(&manifest, count));
        let check = |more: &[&str]| bench.stead_with_modules(modules, &[&["check", "-q", &document], more].concat());
        let (floor, stead) = bench.in_turn(|| alone(&script), || check(&[]))?;
        rows.push(Limit::wall(1.5).row(&format!("{count} Tests of a class"), floor, stead.clone()));
        let (narrow, wide) = bench.in_turn(|| check(&["--width", "1"]), || check(&[]))?;
        rows.push(Limit::wall(1.05).row(&format!("{count} Tests, over --width 1"), narrow, wide));
        rows.extend(last.replace((count, stead.clone())).map(|before| warm(before, (count, stead))));
    }
    let (plain, secret) = (work::settings(100), work::settings_with_credentials(100));
    let check = |text: &str| bench.stead_with_modules(modules, &["check", "-q", &bench.document(text)?]);
    let (plain, secret) = bench.in_turn(|| check(&plain), || check(&secret))?;
    rows.push(Limit::wall(1.05).row("100 Tests with a credential, over none", plain, secret));
    Ok(rows)
}

/// A figure to compare with.
fn shown(name: &str, run: Run) -> Row {
    match run {
        Err(reason) => Row::not_measured(name, None, "", reason),
        Ok(floor) => Row {
            name: name.to_owned(),
            floor: Some(floor),
            stead: None,
            compared: "-".to_owned(),
            limit: String::new(),
            verdict: Verdict::Holds,
        },
    }
}

/// What each Test takes on the clock that one run has more than another.
fn warm((few, least): (u32, Run), (many, most): (u32, Run)) -> Row {
    let (name, limit) = (format!("each Test from {few} to {many}"), "wall <= 2 ms");
    match (least, most) {
        (Err(reason), _) | (_, Err(reason)) => Row::not_measured(&name, None, limit, reason),
        (Ok(least), Ok(most)) => {
            let each = milliseconds(most.wall.saturating_sub(least.wall)) / f64::from(many - few);
            let verdict = if each <= 2.0 || many < 1000 { Verdict::Holds } else { Verdict::Exceeded };
            let limit = if many < 1000 { "" } else { limit };
            Row { name, floor: None, stead: None, compared: format!("{each:.2} ms"), limit: limit.to_owned(), verdict }
        }
    }
}

/// So many milliseconds of processor time more than another run.
fn over(name: &str, base: Run, floor: Run, stead: Run, limit: f64) -> Row {
    let text = format!("CPU <= one + {limit} ms");
    match (base, floor, stead) {
        (Ok(base), Ok(floor), Ok(stead)) => {
            let more = milliseconds(stead.cpu.saturating_sub(base.cpu));
            Row {
                name: name.to_owned(),
                floor: Some(floor),
                stead: Some(stead),
                compared: format!("+{more:.2} ms"),
                limit: text,
                verdict: if more <= limit { Verdict::Holds } else { Verdict::Exceeded },
            }
        }
        (Err(reason), ..) | (_, Err(reason), _) | (.., Err(reason)) => Row::not_measured(name, None, &text, reason),
    }
}

/// The figures of the module: each with the name, the one beside it, and the limit, in milliseconds or times the other.
const OF_MODULE: [(&str, &str, Option<&str>, &str, f64); 4] = [
    ("the first call of a session", "first", None, "wall <= 1,200 ms", 1200.0),
    ("a call, beside an empty pipe", "call", Some("pipe"), "wall <= 35 ms", 35.0),
    ("four Gets at once, beside one", "four", Some("one"), "wall <= 2x", 2.0),
    ("Get-DscResource of 1,000", "list", None, "wall <= 300 ms", 300.0),
];

/// Calls of the PowerShell module.
pub(super) fn module(bench: &Bench) -> io::Result<Vec<Row>> {
    let modules = bench.path("modules-of-module");
    work::modules(&modules, MODULES.0)?;
    // As for `powershell`: what was just written is not kept in an index.
    std::thread::sleep(Duration::from_secs(3));
    let mut sessions = Vec::new();
    for _ in 0..bench.runs {
        match session(&bench.stead, bench.folder.path(), &modules)? {
            Ok(figures) => sessions.push(figures),
            Err(reason) => return Ok(vec![Row::not_measured("the PowerShell module", None, "", reason)]),
        }
    }
    Ok(OF_MODULE.iter().map(|case| of_module(&sessions, case)).collect())
}

fn of_module(
    sessions: &[Figures],
    (name, measured, beside, text, limit): &(&str, &str, Option<&str>, &str, f64),
) -> Row {
    let median = |name: &str| {
        let mut all: Vec<f64> = sessions.iter().filter_map(|figures| figures.get(name).copied()).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    };
    let Some(time) = median(measured) else { return Row::not_measured(name, None, text, "there is no figure") };
    let beside = beside.and_then(median);
    let ratio = beside.map(|beside| time / beside);
    let judged = if text.ends_with('x') { ratio.unwrap_or(f64::INFINITY) } else { time };
    Row {
        name: (*name).to_owned(),
        floor: beside.map(wall),
        stead: Some(wall(time)),
        compared: ratio.map_or_else(|| format!("{time:.0} ms"), |ratio| format!("{ratio:.2}x")),
        limit: (*text).to_owned(),
        verdict: if judged <= *limit { Verdict::Holds } else { Verdict::Exceeded },
    }
}
