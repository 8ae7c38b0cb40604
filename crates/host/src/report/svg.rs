//! What the figures have in common: numbers as text, scales and their ticks.

/// A coordinate with at most one digit behind the point: figures are looked at, not measured.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Values to coordinates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    logarithmic: bool,
}

impl Scale {
    /// A linear scale from `low..high` to `start..end`; a range of nothing is widened.
    pub(crate) fn linear([low, high]: [f64; 2], [start, end]: [f64; 2]) -> Self {
        let (low, high) = if high > low { (low, high) } else { (low - 0.5, low + 0.5) };
        Self { low, high, start, end, logarithmic: false }
    }

    /// A logarithmic scale; both ends are positive.
    pub(crate) fn logarithmic([low, high]: [f64; 2], [start, end]: [f64; 2]) -> Self {
        let (low, high) = if high > low { (low, high) } else { (low / 2.0, low * 2.0) };
        Self { low: low.ln(), high: high.ln(), start, end, logarithmic: true }
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.ln() } else { value };
        self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)
    }

    /// Round values within the scale: about `count` of them, or the powers of ten.
    pub(crate) fn ticks(&self, count: usize) -> Vec<f64> {
        if self.logarithmic {
            let powers = (self.low / std::f64::consts::LN_10 - 1e-9).ceil() as i32
                ..=(self.high / std::f64::consts::LN_10 + 1e-9).floor() as i32;
            return powers.map(|power| 10f64.powi(power)).collect();
        }
        let step = round_step((self.high - self.low) / count.max(1) as f64);
        let (first, last) = ((self.low / step - 1e-9).ceil() as i64, (self.high / step + 1e-9).floor() as i64);
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|round| *round >= step * 0.999)
        .unwrap_or(10.0 * power)
}

/// The least and the greatest of the values; `None` if there are none.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    values.fold(None, |range, value| match range {
        None => Some([value, value]),
        Some([low, high]) => Some([low.min(value), high.max(value)]),
    })
}

/// A value on an axis: short, without trailing zeros.
pub(crate) fn short(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e6).contains(&magnitude) {
        return format!("{value:.1e}").replace(".0e", "e");
    }
    let digits = (2 - magnitude.log10().floor() as i32).clamp(0, 4) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Values on one axis, with as many digits as it takes to tell them apart.
pub(crate) fn labels(values: &[f64]) -> Vec<String> {
    let brief: Vec<String> = values.iter().map(|value| short(*value)).collect();
    let least = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(f64::INFINITY, f64::min);
    let is_near =
        |(text, value): (&String, &f64)| text.parse().is_ok_and(|read: f64| (read - value).abs() < 0.1 * least);
    if brief.iter().zip(values).all(is_near) {
        return brief;
    }
    let digits = (1.0 - (1.001 * least).log10().floor()).clamp(0.0, 9.0) as usize;
    let texts: Vec<String> = values.iter().map(|value| format!("{value:.digits$}")).collect();
    // A last digit that is nought everywhere says nothing.
    let spare = |texts: &[String]| texts.iter().all(|text| text.contains('.') && text.ends_with('0'));
    if spare(&texts) { values.iter().map(|value| format!("{value:.0$}", digits - 1)).collect() } else { texts }
}

/// Text cut to a number of characters, so that it stays within its place.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The union of some names in a number of characters. Names differ at their ends more often than at their beginnings, so that is
/// what is kept of each.
pub(crate) fn union(names: &[String], most: usize) -> String {
    let whole = names.join("∪");
    if names.len() < 2 || whole.chars().count() <= most {
        return cut(&whole, most);
    }
    let each = ((most + 1) / names.len()).saturating_sub(1).max(2);
    let end = |name: &String| {
        let characters: Vec<char> = name.chars().collect();
        match characters.len() <= each {
            true => name.clone(),
            false => {
                std::iter::once('…').chain(characters[characters.len() + 1 - each..].iter().copied()).collect()
            }
        }
    };
    cut(&names.iter().map(end).collect::<Vec<String>>().join("∪"), most)
}

/// A duration with the unit that suits it.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        value if value < 1e-3 => format!("{} µs", short(value * 1e6)),
        value if value < 1.0 => format!("{} ms", short(value * 1e3)),
        value if value < 120.0 => format!("{} s", short(value)),
        value => format!("{} min", short(value / 60.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([number(3.0), number(-0.04), number(2.25)], ["3", "0", "2.2"]);
        assert_eq!([short(0.05), short(1500.0), short(1e-7), short(12.34)], ["0.05", "1500", "1e-7", "12.3"]);
        assert_eq!([seconds(0.0005), seconds(0.25), seconds(90.0)], ["500 µs", "250 ms", "90 s"]);
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(Scale::linear([0.0, 10.0], [0.0, 1.0]).ticks(5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let ticks = Scale::linear([83.7, 91.2], [0.0, 1.0]).ticks(4);
        assert_eq!(ticks, [84.0, 86.0, 88.0, 90.0]);
        assert_eq!(Scale::logarithmic([0.002, 3.0], [0.0, 1.0]).ticks(0), [0.01, 0.1, 1.0]);
        assert_eq!(Scale::logarithmic([0.01, 1.0], [0.0, 1.0]).ticks(0), [0.01, 0.1, 1.0]);
    }

    #[test]
    fn labels_of_one_axis_differ() {
        assert_eq!(labels(&[0.0, 0.5, 1.0]), ["0", "0.5", "1"]);
        assert_eq!(labels(&[100.0, 100.1, 100.2]), ["100.0", "100.1", "100.2"]);
        assert_eq!(labels(&[12_345.25, 12_345.5]), ["12345.25", "12345.50"]);
        assert_eq!(labels(&[1_000_000.0, 1_000_001.0]), ["1000000", "1000001"]);
        assert_eq!(labels(&[7.0]), ["7"]);
    }

    #[test]
    fn a_scale_maps_its_ends() {
        let scale = Scale::logarithmic([1.0, 100.0], [10.0, 30.0]);
        assert!((scale.at(10.0) - 20.0).abs() < 1e-12);
        let flat = Scale::linear([5.0, 5.0], [0.0, 1.0]);
        assert!((flat.at(5.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn the_names_of_a_union_keep_their_ends() {
        let union =
            |names: &[&str], most| union(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), most);
        assert_eq!(union(&["0", "12"], 13), "0∪12");
        assert_eq!(union(&["speaker 1", "speaker 17"], 13), "…ker 1∪…er 17");
        assert_eq!(union(&["speaker 1"], 5), "spea…");
        assert_eq!(union(&["alpha", "beta", "gamma"], 7), "…a∪…a∪…");
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("Ölübü", 4), "Ölü…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
