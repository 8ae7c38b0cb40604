//! However much goes on at the same time, what comes out is the same.

use super::{Found, Tally, shim};
use crate::common::{Folder, finished};
use crate::parts::assert_same;
use crate::same_bits::ALL;

#[test]
fn the_number_of_jobs_and_threads_changes_no_byte() {
    let folder = Folder::new();
    folder.write("all.toml", ALL);
    folder.run(&["run", "all.toml", "--out", "as it comes", "--quiet"], 0);
    let tally = Tally::default();
    for jobs in ["1", "2", "3"] {
        for threads in ["1", "2", "3"] {
            let out = format!("{jobs} jobs of {threads}");
            let run = ["run", "all.toml", "--out", &out, "--jobs", jobs, "--threads", threads];
            // A machine with fewer cores would run fewer jobs, and say so.
            let mut command = folder.compflow(&run);
            let output = command.env("LD_PRELOAD", shim()).env("FAULT_CORES", "3").output().unwrap();
            finished(output, 0);
            assert_same(&folder.path("as it comes"), &folder.path(&out));
            tally.note(Found::default(), &out);
        }
    }
    tally.row("1 to 3 jobs of 1 to 3 threads, and the same bytes");
}
