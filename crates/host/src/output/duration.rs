//! Times as people say them.

/// A time in the two largest units that it fills.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86400, seconds % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units() {
        let shown = [0.2, 59.0, 61.0, 3600.0, 100_000.0].map(duration);
        assert_eq!(shown, ["1 s", "59 s", "1 min 1 s", "1 h 0 min", "1 d 3 h"]);
    }
}
