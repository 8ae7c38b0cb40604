//! What the machine has.

/// How much memory may be used if nobody says otherwise: three quarters of the machine's.
pub(crate) fn memory_budget() -> u64 {
    const UNKNOWN: u64 = 8 << 30;
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    total.map_or(UNKNOWN, |kibibytes| kibibytes * 1024 / 4 * 3)
}
