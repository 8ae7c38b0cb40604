//! `compflow test-plugin`: does a library behave as a plugin must?
//!
//! Every component is tested in a process of its own, started by this one, so that a crash, a hang or a line on stdout is a
//! verdict too. The worker reports on stderr, the one channel that is left to it.

mod clusterer;
mod composer;
mod evaluator;
mod examples;
mod leak;
mod loader;
mod parameters;
mod report;
mod subject;
mod worker;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use compflow_engine::plugin::trust;

use crate::cli::TestPluginArgs;
use crate::commands::plugins::look_into;
use crate::commands::print;
use crate::conformance::report::{Event, MARK, Verdict};
use crate::failure::Failure;
use crate::terminal::{interrupt, to_stderr};

/// How long one point may take before it counts as hanging; generous, for those who test under Valgrind.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many points came out how.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    fn add(&mut self, about: &str, point: &str, verdict: &Verdict) -> Result<(), Failure> {
        let (word, count, reason) = match verdict {
            Verdict::Pass => ("ok  ", &mut self.passed, None),
            Verdict::Fail(reason) => ("FAIL", &mut self.failed, Some(reason)),
            Verdict::Skip(reason) => ("skip", &mut self.skipped, Some(reason)),
        };
        *count += 1;
        let reason = reason.map_or_else(String::new, |reason| format!(": {}", reason.replace('\n', "; ")));
        print(&format!("{word}  {about}: {point}{reason}\n")).map(|_| ())
    }
}

/// Tests a library, or, as a worker, one of its components.
///
/// # Errors
/// If there is no such file, or a verdict cannot be printed.
pub(crate) fn test_plugin(plugins: &[PathBuf], args: &TestPluginArgs) -> Result<i32, Failure> {
    let file = args
        .library
        .canonicalize()
        .map_err(|_| Failure::request(format!("{}: there is no such file", args.library.display())))?;
    if let Some(number) = args.worker {
        return worker::work(plugins, args, &file, number).map(|()| 0);
    }
    let cancel = interrupt::listen()?;
    // Processes that were started are ended.
    interrupt::working();
    let mut tally = Tally::default();
    let about = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = match trust::stem(&file) {
        Some(_) => Verdict::Pass,
        None => Verdict::Fail(format!(
            "compflow only looks for files named {}compflow_NAME{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        )),
    };
    tally.add(&about, "is named like a plugin", &named)?;
    let refused = |reason: String| Err(format!("is not loaded: {reason}"));
    let library = match trust::refusal(&args.library).map_or_else(|| look_into(&file), refused) {
        Ok(library) => library,
        Err(reason) => {
            tally.add(&about, "handshake", &Verdict::Fail(reason))?;
            return Ok(1);
        }
    };
    let handshake = match library.components.is_empty() {
        true => Verdict::Fail("offers no components".to_owned()),
        false => Verdict::Pass,
    };
    tally.add(&about, "handshake", &handshake)?;
    if let Some(unknown) = args.component.iter().find(|name| !library.components.iter().any(|c| c.name == **name))
    {
        return Err(Failure::request(format!("--component: {about} offers no `{unknown}`")));
    }
    let names: Vec<&str> = library.components.iter().map(|component| component.name.as_str()).collect();
    worker::check_params(&args.params, &names)?;
    for component in &library.components {
        worker::columns_for(&args.columns, &component.name)?;
    }
    for (number, component) in library.components.iter().enumerate() {
        if args.component.is_empty() || args.component.contains(&component.name) {
            let about = format!("{} {}", component.kind, component.name);
            test_component(plugins, args, &file, number, &about, &mut tally)?;
        }
        if cancel.requested() {
            return Err(Failure::Interrupted);
        }
    }
    let Tally { passed, failed, skipped } = tally;
    print(&format!("{passed} passed, {failed} failed, {skipped} skipped\n"))?;
    Ok(i32::from(failed > 0))
}

/// Runs a worker and prints its verdicts as they come.
fn test_component(
    plugins: &[PathBuf],
    args: &TestPluginArgs,
    file: &Path,
    number: usize,
    about: &str,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::run(format!("cannot start a worker: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
    for folder in plugins {
        command.arg("--plugins").arg(folder);
    }
    command.arg("test-plugin").arg(file).arg("--worker").arg(number.to_string());
    for (option, values) in [("--params", &args.params), ("--path", &args.path), ("--columns", &args.columns)] {
        for value in values {
            command.arg(option).arg(value);
        }
    }
    // glibc counts what threads have put aside for later as allocated, unless told to put nothing aside.
    let tunables = std::env::var("GLIBC_TUNABLES").map_or_else(|_| String::new(), |set| set + ":");
    command.env("GLIBC_TUNABLES", tunables + "glibc.malloc.tcache_count=0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    let stdout = child.stdout.take().map(|stdout| {
        std::thread::spawn(move || {
            let mut printed = Vec::new();
            // A plugin that never stops printing has failed long before this.
            let _ = stdout.take(1 << 20).read_to_end(&mut printed);
            printed
        })
    });
    let events = child.stderr.take().map(read_events);
    let mut point: Option<String> = None;
    while let Some(events) = &events {
        match events.recv_timeout(PATIENCE) {
            Ok(Event::Begin(name)) => point = Some(name),
            Ok(Event::End(verdict)) => {
                tally.add(about, point.take().as_deref().unwrap_or_default(), &verdict)?;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let hangs = Verdict::Fail(format!("no answer in {} s", PATIENCE.as_secs()));
                tally.add(about, point.take().as_deref().unwrap_or("the test"), &hangs)?;
                let _ = child.kill();
                break;
            }
        }
    }
    let status = child.wait().map_err(cannot)?;
    if let Some(point) = point {
        tally.add(about, &point, &Verdict::Fail(format!("the process ended: {status}")))?;
    } else if !status.success() {
        tally.add(about, "the process ends well", &Verdict::Fail(status.to_string()))?;
    }
    let printed = stdout.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let verdict = match printed.is_empty() {
        true => Verdict::Pass,
        false => {
            let text: String = String::from_utf8_lossy(&printed).chars().take(60).collect();
            Verdict::Fail(format!("printed {} bytes, {text:?}", printed.len()))
        }
    };
    tally.add(about, "prints nothing on stdout", &verdict)
}

/// The worker's events; other lines of its stderr are passed on.
fn read_events(stderr: impl Read + Send + 'static) -> Receiver<Event> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            let (noise, event) = line.split_once(MARK).unwrap_or((&line, ""));
            if !noise.is_empty() {
                to_stderr(noise);
            }
            if let Ok(event) = serde_json::from_str(event)
                && sender.send(event).is_err()
            {
                break;
            }
        }
    });
    receiver
}
