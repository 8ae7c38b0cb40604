//! The Python package, where there is a Python: runs `.ci/python`, which builds the wheel, installs it into an environment of its own
//! under `target/`, and runs `python/tests` there. Where there is none, it says so.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The name by which the test is filtered.
const NAME: &str = "python_package";

/// What a Python must be able to do.
const PROBE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    if !filters.is_empty() && !filters.iter().any(|filter| NAME.contains(filter.as_str())) {
        return done(0, 0);
    }
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    // Where it must not be left out, as in CI, that there is none is an error.
    let required = std::env::var_os("CI").is_some();
    if let Some(reason) = missing(&python) {
        println!("test {NAME} ... not run: {reason}");
        return done(0, usize::from(required));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let status = Command::new(root.join(".ci/python")).current_dir(&root).status();
    let passed = status.is_ok_and(|status| status.success());
    println!("test {NAME} ... {}", if passed { "ok" } else { "FAILED" });
    done(usize::from(passed), usize::from(!passed))
}

/// Why the package cannot be tried here.
fn missing(python: &str) -> Option<String> {
    let run = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !run(Command::new(python).args(["-c", PROBE])) {
        return Some(format!("`{python}` is no Python of at least 3.11 that can make environments"));
    }
    // What the tests need comes from a registry of packages.
    let pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", "target/python/reached", "tqdm"];
    if !run(Command::new(python).args(pip).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))) {
        return Some("pip reaches no packages".to_owned());
    }
    None
}

/// What the other tests say at their end.
fn done(passed: usize, failed: usize) -> ExitCode {
    let result = if failed == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {result}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out\n");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
