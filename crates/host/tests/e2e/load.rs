//! Many cells: what is remembered of one that is kept is less than what it is.

use std::process::Stdio;
use std::time::Duration;

use crate::common::Folder;

/// Cells of 500 examples that take a millisecond, forty of a trial.
const PIPELINE: &str = r#"
seed = 3

[[data]]
name = "made"
loader = "synthetic"
params = { n = 500, dim = 2, k = 3, noise = 0.05, trials = 1 }

[[clusterer]]
use = "kmeans"
params = { k = { grid = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11] }, max_iter = { grid = [1, 2, 3, 4] }, restarts = 1 }

[[evaluator]]
use = "ari"
"#;

/// Cells of a trial.
const CELLS: u64 = 40;

/// The most memory that a run over so many trials has had, in bytes, as far as the system has told of it while it ran.
fn memory(folder: &Folder, trials: u64) -> u64 {
    let (trials, out) = (format!("data.made.trials={trials}"), format!("{trials} trials"));
    let args = ["run", "p.toml", "--out", &out, "--set", &trials, "--jobs", "1", "--threads", "1", "--quiet"];
    let mut command = folder.compflow(&args);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let ended = child.try_wait().unwrap();
        if let Some(ended) = ended {
            assert!(ended.success());
            return most << 10;
        }
        // One that has just ended has none any more.
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        most = kilobytes.unwrap_or(most);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The clusters and distances of 500 examples are more than 8 kB; the data of a trial, which is in memory all the time, is less than
/// 1 kB for each of its cells.
#[test]
fn cells_that_are_kept_are_let_go_of() {
    let folder = Folder::new();
    folder.write("p.toml", PIPELINE);
    let [few, many] = [40, 120].map(|trials| memory(&folder, trials));
    let each = many.saturating_sub(few) / (80 * CELLS);
    // It is about 3 kB, and 1 kB more or less from run to run.
    assert!(few > 0 && each < 6_000, "{each} bytes a cell: {few} for 1600 cells, {many} for 4800");
}
