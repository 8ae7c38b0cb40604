//! The table of deviations in `docs/parity.md`: what a comparison finds must not exceed what it says.

use std::sync::Mutex;

/// Other processors round otherwise.
const SLACK: f64 = 10.0;

/// Compares the largest deviation of a method with its row of the table; with `COMPFLOW_BLESS` set, writes it there.
pub(crate) fn check(method: &str, largest: f64) {
    static FILE: Mutex<()> = Mutex::new(());
    let _one_at_a_time = FILE.lock().unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/parity.md");
    let text = std::fs::read_to_string(path).unwrap();
    let row = text.lines().find(|line| line.starts_with(&format!("| {method} |"))).unwrap();
    let (rest, documented) = row.trim_end_matches(" |").rsplit_once("| ").unwrap();
    if std::env::var_os("COMPFLOW_BLESS").is_some() {
        std::fs::write(path, text.replace(row, &format!("{rest}| {largest:.1e} |"))).unwrap();
        return;
    }
    let documented: f64 = documented.parse().unwrap();
    assert!(largest <= SLACK * documented, "{method} deviates by {largest:e}; docs/parity.md says {documented:e}");
}
