//! Pipelines with something wrong in them: every one is fine or refused, and none ends the process or takes for ever.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Found, Tally, repeated};
use crate::common::Folder;

const PIPELINE: &str = r#"
name = "mutated"
seed = 3
degree = 2
space = { normalize = "l2" }
composer = { use = "max" }

[[data]]
name = "points"
loader = "csv"
path = "points.csv"
columns = { embedding = ["x", "y"], truth = "who", id = "n" }

[[data]]
name = "others"
role = "tune"
loader = "json"
path = "others.jsonl"
columns = { embedding = "e", truth = "who" }

[tune]
data = "others"
metric = "cri"

[[clusterer]]
name = "CKM"
use = "ckm"
params = { k = { grid = [2, 3] }, init = { use = "kmeans", params = { k = 3 } } }

[[clusterer]]
use = "kmeans"
params = { k = { select = [2, 3] }, restarts = 3 }

[[clusterer]]
use = "cap"
params = { preference = -1.5 }

[[evaluator]]
use = "cri"
"#;

/// What may stand where something else is meant.
const VALUES: [&str; 24] = [
    "-1",
    "0",
    "1e400",
    "-0.0",
    "nan",
    "18446744073709551616",
    "9223372036854775807",
    "true",
    "1979-05-27",
    "''",
    "'-'",
    "'.'",
    "'no/such'",
    "'${NOTHING}'",
    "\"\\u202E\\u0000\"",
    "[]",
    "[[[[]]]]",
    "[1, 'a', {}]",
    "{}",
    "{ grid = [] }",
    "{ grid = [1, 'a', { grid = [1] }] }",
    "{ select = [1, 'a'] }",
    "{ use = 'ckm', params = { k = { grid = [1] } } }",
    "{ use = 'no such' }",
];

/// Numbers that are the same every time.
struct Stream(u64);

impl Stream {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// The pipeline with something wrong in it.
fn mutated(random: &mut Stream) -> Vec<u8> {
    let mut bytes = PIPELINE.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        let line = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end + 1);
        match random.below(8) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at] ^= 1 << random.below(8),
            2 => drop(bytes.drain(line..end)),
            3 => {
                let again = bytes[line..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, again);
            }
            4 => drop(bytes.drain(at..(at + 1 + random.below(12)).min(end.max(at + 1)))),
            5 => drop(bytes.splice(at..at, *b"\"")),
            // Most of what can be wrong is one value in the place of another.
            _ => {
                let values: Vec<usize> = (0..bytes.len()).filter(|at| b"=,[".contains(&bytes[*at])).collect();
                let Some(start) = values.get(random.below(values.len())).map(|at| at + 1) else { continue };
                let rest = bytes[start..].iter().position(|byte| b",]}\n".contains(byte));
                let value = format!(" {} ", VALUES[random.below(VALUES.len())]);
                bytes.splice(start..start + rest.unwrap_or(0), value.into_bytes());
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

/// What is wrong with how a file was checked.
fn checked(folder: &Folder, name: &str) -> Option<String> {
    let said = folder.path(&format!("{name}.said"));
    let mut command = folder.compflow(&["check", name]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&said).unwrap());
    let (mut child, patience) = (command.spawn().unwrap(), Instant::now() + Duration::from_secs(30));
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if Instant::now() > patience => {
                child.kill().unwrap();
                child.wait().unwrap();
                return Some("takes for ever".to_owned());
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let said = String::from_utf8(std::fs::read(said).unwrap()).unwrap();
    let is_fine =
        matches!(code, Some(0 | 2)) && !said.contains("panicked") && (code == Some(0) || !said.is_empty());
    (!is_fine).then(|| format!("ended with {code:?}: {said}"))
}

#[test]
fn mutated_pipelines_are_fine_or_refused() {
    let folder = Folder::new();
    let csv = (0..8).map(|row| format!("{row},{}.5,{},{}\n", row % 3, row * row % 5, ["a", "b"][row % 2]));
    folder.write("points.csv", &format!("n,x,y,who\n{}", csv.collect::<String>()));
    let json = (0..8).map(|row| {
        format!("{{\"e\": [{}.5, {}], \"who\": [\"a\", {:?}]}}\n", row % 3, row * row % 5, ["b", "c"][row % 2])
    });
    folder.write("others.jsonl", &json.collect::<String>());
    folder.write("whole.toml", PIPELINE);
    folder.run(&["check", "whole.toml"], 0);
    let (tally, next) = (Tally::default(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let trial = next.fetch_add(1, Ordering::Relaxed);
                    if trial >= repeated(600) {
                        break;
                    }
                    let (name, content) = (format!("p{trial}.toml"), mutated(&mut Stream(trial as u64)));
                    std::fs::write(folder.path(&name), &content).unwrap();
                    let wrong = checked(&folder, &name).into_iter().collect();
                    tally.note(Found { lost: 0, wrong }, &String::from_utf8_lossy(&content));
                }
            });
        }
    });
    tally.row("mutated pipelines, fine or refused by `check`");
}
