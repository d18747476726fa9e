//! The cost of a program: processor time of it and all its children, time on the clock, and memory.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// The cost of one run.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sample {
    /// User and system time of the process and of all its descendants that were waited for.
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
    /// Of the largest process, in KiB.
    pub(crate) memory: u64,
    /// Of a median: whether the processor times that it was taken from differ by more than a factor of two.
    pub(crate) unsteady: bool,
}

/// One run: what it took, or how it failed.
pub(crate) type Run = Result<Sample, String>;

/// Runs a program and prints what it took: microseconds of processor, of clock, and KiB.
///
/// This is a process of its own for each run, because the kernel adds up the children of a process over its life and
/// keeps only the largest of their memories.
pub(crate) fn meter(output: &str, program: &str, arguments: &[&str]) -> io::Result<ExitCode> {
    let output = File::create(output)?;
    let began = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()?;
    let wall = began.elapsed();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = usage.user_time().tv_sec() * 1_000_000
        + usage.user_time().tv_usec()
        + usage.system_time().tv_sec() * 1_000_000
        + usage.system_time().tv_usec();
    writeln!(io::stdout(), "{cpu} {} {}", wall.as_micros(), usage.max_rss())?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::from(255), ExitCode::from))
}

/// Runs a command by way of [`meter`], with a folder of PowerShell modules. Its output is in `folder/output` afterwards.
pub(crate) fn run(folder: &Path, modules: &Path, program: &Path, arguments: &[&str]) -> io::Result<Run> {
    let output = folder.join("output");
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("meter").arg(&output).arg(program).args(arguments);
    // Nothing of the user is read or written: what a program keeps for itself lies in the folder.
    command.env("HOME", folder).env("DSC_RESOURCE_PATH", folder.join("resources")).env("PSModulePath", modules);
    command.env("STEAD_STATE", folder.join("STATE"));
    for kind in ["CONFIG", "DATA", "STATE", "CACHE"] {
        command.env(format!("XDG_{kind}_HOME"), folder.join(kind));
    }
    let measured = command.output()?;
    if !measured.status.success() {
        let mut said = fs::read_to_string(&output).unwrap_or_default();
        said.push_str(&String::from_utf8_lossy(&measured.stderr));
        let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let code = measured.status.code().unwrap_or(-1);
        return Ok(Err(format!("exit code {code}: {first}")));
    }
    parse(&String::from_utf8_lossy(&measured.stdout)).map(Ok)
}

fn parse(text: &str) -> io::Result<Sample> {
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [cpu, wall, memory] => Ok(Sample {
            cpu: Duration::from_micros(*cpu),
            wall: Duration::from_micros(*wall),
            memory: *memory,
            unsteady: false,
        }),
        _ => Err(io::Error::other(format!("the meter printed {text}"))),
    }
}

/// The median of each figure. Of an even number of samples, the upper one of the middle.
pub(crate) fn median(samples: &[Sample]) -> Sample {
    fn middle<T: Ord + Copy + Default>(samples: &[Sample], figure: impl Fn(&Sample) -> T) -> T {
        let mut figures: Vec<T> = samples.iter().map(figure).collect();
        figures.sort_unstable();
        figures.get(figures.len() / 2).copied().unwrap_or_default()
    }
    let times = samples.iter().map(|sample| sample.cpu);
    let (least, most) = (times.clone().min().unwrap_or_default(), times.max().unwrap_or_default());
    Sample {
        unsteady: most > least * 2,
        cpu: middle(samples, |sample| sample.cpu),
        wall: middle(samples, |sample| sample.wall),
        memory: middle(samples, |sample| sample.memory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_each_figure() {
        let sample = |cpu, wall, memory| Sample {
            cpu: Duration::from_micros(cpu),
            wall: Duration::from_micros(wall),
            memory,
            unsteady: false,
        };
        let middle = median(&[sample(1, 9, 5), sample(3, 7, 4), sample(2, 8, 6)]);
        assert_eq!((middle.cpu.as_micros(), middle.wall.as_micros(), middle.memory), (2, 8, 5));
        assert!(middle.unsteady);
        assert!(!median(&[sample(2, 1, 1), sample(4, 9, 1)]).unsteady);
    }

    #[test]
    fn what_the_meter_prints_is_read() {
        let sample = parse("1500 2000 300\n").expect("three numbers");
        assert_eq!((sample.cpu.as_micros(), sample.wall.as_micros(), sample.memory), (1500, 2000, 300));
        assert!(parse("1500 2000").is_err());
    }
}
