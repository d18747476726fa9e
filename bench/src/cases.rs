//! The cases: what is run, how often, and what the limit is.

mod pwsh;

use std::cell::Cell;
use std::fs::{self, FileTimes};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::editor::Editor;
use crate::meter::{self, Run, Sample};
use crate::table::{Row, Verdict, milliseconds};
use crate::work;
use pwsh::{module, powershell};

/// Something to measure.
pub(crate) type Case = fn(&Bench) -> io::Result<Vec<Row>>;

/// Every case by its name.
pub(crate) const CASES: &[(&str, Case)] = &[
    ("start", start),
    ("files", files),
    ("left", left),
    ("lines", lines),
    ("echo", echo),
    ("resident", resident),
    ("scale", scale),
    ("idem", idem),
    ("powershell", powershell),
    ("module", module),
    ("editor", editor),
];

/// Where and with what is measured.
pub(crate) struct Bench {
    folder: TempDir,
    /// How many folders of managed files there are.
    folders: Cell<u32>,
    /// How many documents there are.
    documents: Cell<u32>,
    this: PathBuf,
    stead: PathBuf,
    linked_statically: Option<PathBuf>,
    runs: usize,
}

impl Bench {
    /// Prepares a folder that goes away with this.
    pub(crate) fn new(stead: PathBuf, linked_statically: Option<PathBuf>, runs: usize) -> io::Result<Self> {
        let folder = TempDir::with_prefix("stead-bench")?;
        fs::create_dir(folder.path().join("resources"))?;
        fs::write(folder.path().join("resources/bench-echo.dsc.resource.json"), work::ECHO_MANIFEST)?;
        Ok(Self {
            folder,
            folders: Cell::new(0),
            documents: Cell::new(0),
            this: std::env::current_exe()?,
            stead,
            linked_statically,
            runs,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A document at a place of its own, so that none leaves behind what another has managed.
    fn document(&self, text: &str) -> io::Result<String> {
        let folder = self.path(&format!("document-{}", self.documents.get()));
        self.documents.set(self.documents.get() + 1);
        fs::create_dir(&folder)?;
        let path = folder.join("document.dsc.yaml");
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    fn floor(&self, arguments: &[&str]) -> io::Result<Run> {
        meter::run(self.folder.path(), &self.path("no modules"), &self.this, arguments)
    }

    fn stead(&self, arguments: &[&str]) -> io::Result<Run> {
        self.program(&self.stead, &self.path("no modules"), arguments)
    }

    /// Runs stead where PowerShell looks for modules in a folder.
    fn stead_with_modules(&self, modules: &Path, arguments: &[&str]) -> io::Result<Run> {
        self.program(&self.stead, modules, arguments)
    }

    fn program(&self, program: &Path, modules: &Path, arguments: &[&str]) -> io::Result<Run> {
        if !program.is_file() {
            return Ok(Err(format!("{} is not there", program.display())));
        }
        meter::run(self.folder.path(), modules, program, arguments)
    }

    /// Runs two things in turn, so that what disturbs one disturbs the other, and gives the medians of both.
    fn in_turn(
        &self,
        mut one: impl FnMut() -> io::Result<Run>,
        mut other: impl FnMut() -> io::Result<Run>,
    ) -> io::Result<(Run, Run)> {
        let (mut ones, mut others) = (Vec::new(), Vec::new());
        for _ in 0..self.runs {
            ones.push(one()?);
            others.push(other()?);
        }
        Ok((of_all(ones), of_all(others)))
    }
}

/// The median, or the first failure.
fn of_all(runs: Vec<Run>) -> Run {
    let samples: Vec<Sample> = runs.into_iter().collect::<Result<_, _>>()?;
    Ok(meter::median(&samples))
}

/// A limit: its text, and how far two samples are from it.
struct Limit {
    text: String,
    /// The text that is shown, and whether the figures are within the limit.
    judge: fn(Sample, Sample, f64, f64) -> (String, bool),
    factor: f64,
    extra: f64,
}

impl Limit {
    /// Processor time: at most so many times the floor and some milliseconds.
    fn cpu(factor: f64, extra: f64) -> Self {
        let text = if extra > 0.0 { format!("CPU <= {factor}x + {extra} ms") } else { format!("CPU <= {factor}x") };
        Self { text, judge: judge_cpu, factor, extra }
    }

    /// Time on the clock: at most so many times the floor.
    fn wall(factor: f64) -> Self {
        Self { text: format!("wall <= {factor}x"), judge: judge_wall, factor, extra: 0.0 }
    }

    fn row(&self, name: &str, floor: Run, stead: Run) -> Row {
        match (floor, stead) {
            (Ok(floor), Ok(stead)) => {
                let (compared, holds) = (self.judge)(floor, stead, self.factor, self.extra);
                Row {
                    name: name.to_owned(),
                    floor: Some(floor),
                    stead: Some(stead),
                    compared,
                    limit: self.text.clone(),
                    verdict: if holds { Verdict::Holds } else { Verdict::Exceeded },
                }
            }
            (Err(reason), _) => Row::not_measured(name, None, &self.text, format!("floor: {reason}")),
            (Ok(floor), Err(reason)) => Row::not_measured(name, Some(floor), &self.text, reason),
        }
    }
}

fn judge_cpu(floor: Sample, stead: Sample, factor: f64, extra: f64) -> (String, bool) {
    let (floor, stead) = (milliseconds(floor.cpu), milliseconds(stead.cpu));
    (format!("{:.2}x", stead / floor), stead <= floor * factor + extra)
}

fn judge_wall(floor: Sample, stead: Sample, factor: f64, _: f64) -> (String, bool) {
    let ratio = stead.wall.as_secs_f64() / floor.wall.as_secs_f64();
    (format!("{ratio:.2}x"), ratio <= factor)
}

fn start(bench: &Bench) -> io::Result<Vec<Row>> {
    let empty = bench.document(&work::empty())?;
    let row = |name: &str, arguments: &[&str]| {
        let (floor, stead) = bench.in_turn(|| bench.floor(&["floor-nothing"]), || bench.stead(arguments))?;
        Ok(Row { limit: "CPU < 3 ms".to_owned(), ..Limit::cpu(0.0, 3.0).row(name, floor, stead) })
    };
    let alone = [row("stead --version", &["--version"]), row("an empty document", &["apply", &empty])];
    let beside = bench.linked_statically.iter().map(|program| {
        let of_static = || bench.program(program, &bench.path("no modules"), &["--version"]);
        let (dynamic, found) = bench.in_turn(|| bench.stead(&["--version"]), of_static)?;
        Ok(Limit::cpu(1.0, 0.0).row("a static stead --version", dynamic, found))
    });
    alone.into_iter().chain(beside).collect()
}

fn files(bench: &Bench) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in [1000, 10_000] {
        for (language, write) in LANGUAGES {
            rows.push(files_created(bench, count, language, *write)?);
            rows.push(files_kept(bench, count, language, *write)?);
        }
    }
    rows.push(files_recorded(bench, 10_000)?);
    rows.push(hidden_drift(bench)?);
    Ok(rows)
}

/// Writes a document about as many files in a folder.
type Write = fn(&Path, u32) -> String;

/// The languages of documents.
const LANGUAGES: &[(&str, Write)] = &[("YAML", work::files), ("JSON", work::files_in_json)];

/// Files to be managed: their folder, which is new and empty, the document and the list.
struct Managed {
    folder: PathBuf,
    document: String,
    list: String,
}

/// A folder is never used twice or emptied before the end: ext4 passes over inodes that were freed in the last minute one
/// by one, so that creating files where others have just been removed takes ten times as long.
fn prepare_files(bench: &Bench, count: u32, write: Write) -> io::Result<Managed> {
    let folder = bench.path(&format!("managed-{}", bench.folders.get()));
    bench.folders.set(bench.folders.get() + 1);
    fs::create_dir(&folder)?;
    let list = bench.path("list");
    fs::write(&list, work::file_list(&folder, count))?;
    let document = bench.document(&write(&folder, count))?;
    Ok(Managed { folder, document, list: list.display().to_string() })
}

fn files_created(bench: &Bench, count: u32, language: &str, write: Write) -> io::Result<Row> {
    let floor = || bench.floor(&["floor-write", &prepare_files(bench, count, write)?.list]);
    let stead = || {
        let managed = prepare_files(bench, count, write)?;
        let run = bench.stead(&["apply", "--no-record", &managed.document])?;
        let checked = bench.floor(&["floor-check", &managed.list])?;
        Ok(run.and_then(|sample| checked.map(|_| sample).map_err(|_| "not all files are as wanted".to_owned())))
    };
    let (floor, stead) = bench.in_turn(floor, stead)?;
    Ok(Limit::cpu(1.3, 0.0).row(&format!("{count} files, {language}, to be created"), floor, stead))
}

/// The cost of keeping what can be taken back, which the floor does not.
fn files_recorded(bench: &Bench, count: u32) -> io::Result<Row> {
    let created = |more: &[&str]| {
        let document = prepare_files(bench, count, work::files)?.document;
        bench.stead(&[&["apply", &document], more].concat())
    };
    let (alone, recorded) = bench.in_turn(|| created(&["--no-record"]), || created(&[]))?;
    Ok(Limit::cpu(1.5, 0.0).row(&format!("{count} files created, over --no-record"), alone, recorded))
}

fn files_kept(bench: &Bench, count: u32, language: &str, write: Write) -> io::Result<Row> {
    let Managed { document, list, .. } = prepare_files(bench, count, write)?;
    if let Err(reason) = bench.floor(&["floor-write", &list])? {
        return Err(io::Error::other(reason));
    }
    let (floor, stead) =
        bench.in_turn(|| bench.floor(&["floor-check", &list]), || bench.stead(&["apply", &document]))?;
    Ok(Limit::cpu(2.2, 5.0).row(&format!("{count} files, {language}, nothing to do"), floor, stead))
}

/// Returns a row that tells whether a file is restored whose content was exchanged so that size and times look as
/// before.
fn hidden_drift(bench: &Bench) -> io::Result<Row> {
    let (name, limit) = ("drift that size and times hide", "is found and restored");
    let Managed { folder, document, list } = prepare_files(bench, 10, work::files)?;
    if let Err(reason) = bench.stead(&["apply", &document])? {
        return Ok(Row::not_measured(name, None, limit, reason));
    }
    for number in [0, 4, 9] {
        exchange(&folder.join(format!("f{number}")))?;
    }
    if bench.floor(&["floor-check", &list])?.is_ok() {
        return Err(io::Error::other("the drift was not made"));
    }
    let run = match bench.stead(&["apply", &document])? {
        Ok(sample) => sample,
        Err(reason) => return Ok(Row::not_measured(name, None, limit, reason)),
    };
    let fixed = bench.floor(&["floor-check", &list])?.is_ok();
    Ok(Row {
        name: name.to_owned(),
        floor: None,
        stead: Some(run),
        compared: if fixed { "yes" } else { "no" }.to_owned(),
        limit: limit.to_owned(),
        verdict: if fixed { Verdict::Holds } else { Verdict::Exceeded },
    })
}

/// A document that has ten files, and had many more.
fn left(bench: &Bench) -> io::Result<Vec<Row>> {
    const MANY: u32 = 10_000;
    const FEW: u32 = 10;
    let (name, limit) = (format!("{} files left behind", MANY - FEW), Limit::cpu(1.0, 5.0));
    let Managed { document: base, .. } = prepare_files(bench, FEW, work::files)?;
    let Managed { folder, document, .. } = prepare_files(bench, MANY, work::files)?;
    let created = [bench.stead(&["apply", &base])?, bench.stead(&["apply", &document])?];
    fs::write(&document, work::files(&folder, FEW))?;
    // The first run of the document as it is now compares it with all of them.
    for run in created.into_iter().chain([bench.stead(&["apply", &document])?]) {
        if let Err(reason) = run {
            return Ok(vec![Row::not_measured(&name, None, &limit.text, reason)]);
        }
    }
    let said = fs::read_to_string(bench.path("output"))?;
    if !said.contains("W0533") {
        return Ok(vec![Row::not_measured(&name, None, &limit.text, "nothing was said to be left behind")]);
    }
    let (none, many) = bench.in_turn(|| bench.stead(&["apply", &base]), || bench.stead(&["apply", &document]))?;
    Ok(vec![limit.row(&name, none, many)])
}

/// Other content of the same length, with the times and the mode that the file had.
fn exchange(path: &Path) -> io::Result<()> {
    let status = fs::metadata(path)?;
    let content: Vec<u8> = fs::read(path)?.iter().rev().copied().collect();
    fs::write(path, content)?;
    fs::set_permissions(path, fs::Permissions::from_mode(status.permissions().mode()))?;
    let times = FileTimes::new().set_accessed(status.accessed()?).set_modified(status.modified()?);
    fs::File::options().write(true).open(path)?.set_times(times)
}

fn lines(bench: &Bench) -> io::Result<Vec<Row>> {
    let count = 100;
    let file = bench.path("lines.conf");
    fs::write(&file, work::line_file(count))?;
    let empty = bench.path("empty.dsc.yaml");
    fs::write(&empty, work::empty())?;
    let empty = empty.display().to_string();
    let document = bench.document(&work::lines(&file, count))?;
    // What an empty document takes is the floor here: the limit is about what the lines add.
    let (base, stead) = bench.in_turn(|| bench.stead(&["apply", &empty]), || bench.stead(&["apply", &document]))?;
    Ok(vec![Limit::cpu(1.0, 5.0).row("100 lines, over an empty document", base, stead)])
}

fn echo(bench: &Bench) -> io::Result<Vec<Row>> {
    let count = 1000;
    let width = std::thread::available_parallelism()?;
    let (amount, at_once) = (count.to_string(), width.to_string());
    let document = bench.document(&work::echo_commands(count))?;
    let (floor, stead) = bench.in_turn(
        || bench.floor(&["floor-spawn", work::ECHO_PROGRAM, &amount, &at_once]),
        || bench.stead(&["config", "get", "-f", &document]),
    )?;
    Ok(vec![Limit::wall(1.2).row(&format!("1000 programs, {width} at once"), floor, stead)])
}

/// How much processor time 1,000 instances of a resident may take that have nothing to do, and how much of it is ours for each.
const RESIDENT: (Duration, Duration) = (Duration::from_millis(250), Duration::from_micros(100));

fn resident(bench: &Bench) -> io::Result<Vec<Row>> {
    let count = 1000;
    let (resident, once) = ("Bench.Resident/Note", "Bench.Once/Note");
    let folder = bench.path("note");
    if let Err(reason) =
        bench.stead(&["new", "resource", resident, &folder.display().to_string(), "--language", "python"])?
    {
        return Ok(vec![Row::not_measured("1000 instances of a resident", None, "-", reason)]);
    }
    work::note_resources(&folder, &bench.path("resources"), resident, once)?;
    let requests = bench.path("requests");
    fs::write(&requests, work::note_requests(&bench.path("notes"), count)?)?;
    let document = bench.document(&work::notes(resident, &bench.path("notes"), count))?;
    let program = bench.path("resources/note.py").display().to_string();
    let (floor, stead) = bench.in_turn(
        || bench.floor(&["floor-talk", "python3", &program, "resident", &requests.display().to_string()]),
        || bench.stead(&["apply", &document]),
    )?;
    let limit = format!("<= {} ms, {} us each of ours", RESIDENT.0.as_millis(), RESIDENT.1.as_micros());
    let name = "1000 instances of a resident in Python";
    let row = match (floor, stead) {
        (Ok(floor), Ok(stead)) => {
            let ours = stead.cpu.saturating_sub(floor.cpu) / count;
            let holds = stead.cpu <= RESIDENT.0 && ours <= RESIDENT.1;
            let verdict = if holds { Verdict::Holds } else { Verdict::Exceeded };
            let compared = format!("{} us each of ours", ours.as_micros());
            Row { name: name.to_owned(), floor: Some(floor), stead: Some(stead), compared, limit, verdict }
        }
        (floor, stead) => {
            let reason = stead.err().or(floor.err()).unwrap_or_default();
            Row::not_measured(name, None, &limit, reason)
        }
    };
    // Few: a process for each call takes long, and what one takes does not depend on how many there are.
    let few = 50;
    let document = bench.document(&work::notes(once, &bench.path("notes"), few))?;
    let each = match bench.stead(&["apply", &document])? {
        Err(reason) => Row::not_measured("50 of them, a process for each call", None, "-", reason),
        Ok(sample) => Row {
            name: "50 of them, a process for each call".to_owned(),
            floor: None,
            stead: Some(sample),
            compared: format!("{:.1} ms each", sample.cpu.as_secs_f64() * 1000.0 / f64::from(few)),
            limit: "-".to_owned(),
            verdict: Verdict::Holds,
        },
    };
    Ok(vec![row, each])
}

/// How many instances, and how many milliseconds they may take: 450 for the most, and for fewer their share of it and what
/// the start takes.
const PLANNED: &[(u32, u64)] = &[(1000, 10), (10_000, 50), (100_000, 450)];

/// How much memory any of them may take, in MiB.
const MEMORY: u64 = 120;

fn scale(bench: &Bench) -> io::Result<Vec<Row>> {
    let empty = bench.document(&work::empty())?;
    let start = of_all((0..bench.runs).map(|_| bench.stead(&["plan", &empty])).collect::<io::Result<_>>()?);
    let mut planned = Vec::new();
    for (count, _) in PLANNED {
        let document = bench.document(&work::echoes(*count))?;
        let runs = (0..bench.runs).map(|_| bench.stead(&["plan", &document])).collect::<io::Result<_>>()?;
        planned.push((*count, of_all(runs)));
    }
    let with_limits = PLANNED.iter().zip(&planned);
    let mut rows: Vec<Row> =
        with_limits.map(|((count, limit), (_, run))| planned_row(*count, Duration::from_millis(*limit), run)).collect();
    rows.push(linear_row(&start, &planned));
    Ok(rows)
}

fn planned_row(count: u32, time: Duration, run: &Run) -> Row {
    let (name, limit) = (format!("{count} instances planned"), format!("<= {} ms, {MEMORY} MiB", time.as_millis()));
    match run {
        Err(reason) => Row::not_measured(&name, None, &limit, reason),
        Ok(sample) => Row {
            name,
            floor: None,
            stead: Some(*sample),
            compared: format!("{:.1} us each", sample.cpu.as_secs_f64() * 1e6 / f64::from(count)),
            limit,
            verdict: if sample.cpu <= time && sample.memory <= MEMORY * 1024 {
                Verdict::Holds
            } else {
                Verdict::Exceeded
            },
        },
    }
}

/// Compares the time of one instance among many with that of one among few.
fn linear_row(start: &Run, planned: &[(u32, Run)]) -> Row {
    let (name, limit) = ("one of 100000 against one of 1000", "CPU <= 1.5x");
    match each(start, planned, 1000).and_then(|few| Ok((few, each(start, planned, 100_000)?))) {
        Err(reason) => Row::not_measured(name, None, limit, reason),
        Ok((few, many)) => Row {
            name: name.to_owned(),
            floor: None,
            stead: None,
            compared: format!("{:.2}x", many / few),
            limit: limit.to_owned(),
            verdict: if many <= few * 1.5 { Verdict::Holds } else { Verdict::Exceeded },
        },
    }
}

/// Seconds of processor time that one of so many instances takes, over an empty document.
fn each(start: &Run, planned: &[(u32, Run)], wanted: u32) -> Result<f64, String> {
    let found = planned.iter().find(|(count, _)| *count == wanted);
    let (count, run) = found.ok_or_else(|| format!("{wanted} were not planned"))?;
    let (start, run) = (start.clone()?, run.clone()?);
    Ok(run.cpu.saturating_sub(start.cpu).as_secs_f64() / f64::from(*count))
}

type Document = fn() -> String;

/// Documents of states that do nothing, and what Idem 25.0.1 took for the same, as recorded on a machine of this kind. Of
/// the chain a half was recorded: what is above was not waited for.
const IDEM: &[(&str, Document, Duration)] = &[
    ("1000 independent states", || work::echoes(1000), Duration::from_millis(1600)),
    ("3000 independent states", || work::echoes(3000), Duration::from_millis(3610)),
    ("1000 states that require one", || work::dependent_echoes(1000, |_| 0), Duration::from_millis(7600)),
    ("3000 states that require one", || work::dependent_echoes(3000, |_| 0), Duration::from_millis(74_400)),
    ("a chain of 1000 states", || work::dependent_echoes(1000, |number| number - 1), Duration::from_secs(182)),
];

fn idem(bench: &Bench) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, document, recorded) in IDEM {
        let (name, document) = (format!("{name}, basic"), bench.document(&document())?);
        let apply = || bench.stead(&["apply", "--reconcile", "basic", &document]);
        let limit = format!("{:.0} ms / 100", milliseconds(*recorded));
        rows.push(match of_all((0..bench.runs).map(|_| apply()).collect::<io::Result<_>>()?) {
            Err(reason) => Row::not_measured(&name, None, &limit, reason),
            Ok(sample) => Row {
                name,
                floor: None,
                stead: Some(sample),
                compared: format!("{:.0}x less", recorded.as_secs_f64() / sample.cpu.as_secs_f64()),
                limit,
                verdict: if sample.cpu * 100 <= *recorded { Verdict::Holds } else { Verdict::Exceeded },
            },
        });
    }
    Ok(rows)
}

/// How many instances the document has that is edited, and how many milliseconds an edit may take.
const EDITED: (u32, u64) = (10_000, 50);

/// An edit in the middle of a document, until its findings are published.
fn editor(bench: &Bench) -> io::Result<Vec<Row>> {
    const EDITS: usize = 20;
    let (count, limit) = EDITED;
    let (name, limit_text) = (format!("an edit among {count} instances"), format!("CPU <= {limit} ms"));
    if !bench.stead.is_file() {
        let reason = format!("{} is not there", bench.stead.display());
        return Ok(vec![Row::not_measured(&name, None, &limit_text, reason)]);
    }
    let text = work::echoes(count);
    let line = text.lines().count() / 2;
    // In front of a quote, so that the document stays valid.
    let at = text.lines().skip(line).position(|line| line.ends_with('"')).unwrap_or_default() + line;
    let column = text.lines().nth(at).map_or(0, |line| line.len().saturating_sub(1));
    let mut editor = Editor::open(&bench.stead, bench.folder.path(), &text)?;
    let samples = (0..bench.runs * EDITS).map(|_| editor.edit(at, column)).collect::<io::Result<Vec<Sample>>>()?;
    let sample = meter::median(&samples);
    Ok(vec![Row {
        name,
        floor: None,
        stead: Some(sample),
        compared: format!("{:.1} us each", sample.cpu.as_secs_f64() * 1e6 / f64::from(count)),
        limit: limit_text,
        verdict: if sample.cpu <= Duration::from_millis(limit) { Verdict::Holds } else { Verdict::Exceeded },
    }])
}
