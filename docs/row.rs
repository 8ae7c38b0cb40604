//! The table in `reliability.md`, for the tests that it tells of: all that include this file hold it to what they have tried.

/// The numbers in the row of a fault: how often it was tried and survived, how much was lost and wrong.
pub(crate) fn row(fault: &str) -> Vec<usize> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reliability.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = page.lines().find_map(|line| line.strip_prefix(&format!("| {fault} | ")));
    let row = row.unwrap_or_else(|| panic!("docs/reliability.md has no row for `{fault}`"));
    row.split('|').filter_map(|number| number.trim().parse().ok()).collect()
}
