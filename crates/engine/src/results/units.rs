//! Scores as people read them.

use compflow_api::Unit;

/// A score as it is shown: a share in per cent, everything else as it is.
pub fn shown(unit: Unit, value: f64) -> f64 {
    if unit == Unit::Share { 100.0 * value } else { value }
}

/// A score in words: a share in per cent with one decimal, a count with one, everything else with four digits.
pub fn score_text(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share | Unit::Count => format!("{:.1}", shown(unit, value)),
        Unit::Number | Unit::Distance => {
            let magnitude = if value == 0.0 || !value.is_finite() { 0.0 } else { value.abs().log10().floor() };
            let decimals = (3.0 - magnitude).max(0.0) as usize;
            // Beyond some zeros nobody counts them.
            if decimals > 9 { format!("{value:.3e}") } else { format!("{value:.decimals$}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_no_share() {
        assert_eq!(score_text(Unit::Share, 0.9651), "96.5");
        assert_eq!(score_text(Unit::Count, 6.0), "6.0");
        assert_eq!(score_text(Unit::Distance, 1234.567), "1235");
        assert_eq!(score_text(Unit::Number, -0.012_345_6), "-0.01235");
        assert_eq!(score_text(Unit::Number, 0.0), "0.000");
        assert_eq!(score_text(Unit::Number, -1.234_56e-12), "-1.235e-12");
    }
}
