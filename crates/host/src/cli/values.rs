//! Values of options that are more than a text.

use std::time::Duration;

/// A number of things that work at the same time.
pub(super) fn parse_count(text: &str) -> Result<u32, String> {
    let count = text.parse::<u32>().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "expected a whole number of at least 1; leave the option out to use all cores".to_owned())
}

/// How long something may take.
pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0, such as 90".to_owned())
}

/// A number of bytes with an optional unit: kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => f64::from(1 << 10),
        "mib" => f64::from(1 << 20),
        "gib" => f64::from(1 << 30),
        "tib" => 1024.0 * f64::from(1 << 30),
        _ => return Err(format!("`{unit}` is no unit of memory; use MB, GB, MiB or GiB")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a size such as 8GB or 512MiB".to_owned())?;
    match (number * factor) as u64 {
        0 => Err("expected more than nothing".to_owned()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("1024"), Ok(1024));
        assert_eq!(parse_size("1.5GB"), Ok(1_500_000_000));
        assert_eq!(parse_size("2 GiB"), Ok(2 << 30));
        assert!(parse_size("3 apples").is_err());
        assert!(parse_size("GB").is_err());
    }
}
