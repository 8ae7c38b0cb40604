//! Names of methods, brief enough to stand beside a figure and still different from one another.

use std::collections::BTreeSet;

use super::svg::cut;

/// Longer names leave too little room for the figure.
const MOST: usize = 22;
/// Room for a character of 12 px: rather too much, since the reader's font is not known.
const CHARACTER: f64 = 7.5;

/// The names as they stand beside figures, in their order.
///
/// A sweep calls its methods `name parameter=value ...`. Values tell them apart, so parameters are shortened first, and
/// in all names alike.
pub(crate) fn brief(names: &[&str]) -> Vec<String> {
    let all = |shorten: &dyn Fn(&str) -> String| names.iter().map(|name| shorten(name)).collect::<Vec<_>>();
    let values = |name: &str| abridge(name, |_| String::new());
    [
        all(&str::to_owned),
        all(&|name| abridge(name, |key| format!("{}=", key.rsplit('.').next().unwrap_or(key)))),
        all(&|name| abridge(name, initials)),
        all(&values),
        all(&|name| cut_middle(&values(name))),
    ]
    .into_iter()
    .find(|brief| {
        let distinct: BTreeSet<&String> = brief.iter().collect();
        distinct.len() == names.len() && brief.iter().all(|name| name.chars().count() <= MOST)
    })
    .unwrap_or_else(|| (1..).zip(names).map(|(at, name)| format!("{at} {}", cut(name, MOST - 4))).collect())
}

/// The room that the longest of the names takes.
pub(crate) fn width(names: &[String]) -> f64 {
    CHARACTER * names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64
}

/// The name with what stands before its values replaced.
fn abridge(name: &str, key: impl Fn(&str) -> String) -> String {
    let word = |word: &str| match word.split_once('=') {
        Some((parameter, value)) => format!("{}{value}", key(parameter)),
        None => word.to_owned(),
    };
    name.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// `oc=` for `base.on_conflict`.
fn initials(key: &str) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    last.split('_').filter_map(|word| word.chars().next()).chain(['=']).collect()
}

/// Names differ at their ends more often than within.
fn cut_middle(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= MOST {
        return name.to_owned();
    }
    let (start, end) = (MOST / 2 - 1, characters.len() - MOST / 2);
    characters[..start].iter().chain(&['…']).chain(&characters[end..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_fit_stay() {
        assert_eq!(brief(&["ckmstream", "k-means k=10"]), ["ckmstream", "k-means k=10"]);
        assert_eq!(width(&brief(&["AP", "ckm"])), 3.0 * CHARACTER);
    }

    #[test]
    fn a_sweep_keeps_its_values() {
        assert_eq!(brief(&["GCR base.params.k=5", "GCR base.params.k=10000"]), ["GCR k=5", "GCR k=10000"]);
        let gcr = "GCR base.params.k=15 threshold=0.2 on_conflict=skip";
        assert_eq!(brief(&[gcr, "KM k=5 restarts=10"]), ["GCR k=15 t=0.2 oc=skip", "KM k=5 r=10"]);
        assert_eq!(brief(&[&gcr.replace("0.2", "0.25"), "KM k=5"]), ["GCR 15 0.25 skip", "KM 5"]);
    }

    #[test]
    fn long_names_differ_and_fit() {
        let names = ["compositional clustering, first", "compositional clustering, second"];
        assert_eq!(brief(&names), ["compositio…ring, first", "compositio…ing, second"]);
        let names = ["the same start, a, and the same end", "the same start, b, and the same end"];
        assert_eq!(brief(&names), ["1 the same start, a…", "2 the same start, b…"]);
        let names = ["a=1 is all that differs", "b=1 is all that differs"];
        assert_eq!(brief(&names), ["1 a=1 is all that d…", "2 b=1 is all that d…"]);
    }
}
