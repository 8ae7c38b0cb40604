//! Parameters that were selected or that methods settled by themselves, over all trials.

use std::collections::HashMap;

use serde_json::Value;

use super::read::Results;
use super::units::score_text;
use compflow_api::Unit;

/// What became of one parameter of one clusterer on one data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The data set.
    pub data: String,
    /// The clusterer, or a point of its grids.
    pub clusterer: String,
    /// The parameter.
    pub parameter: String,
    /// Its value, or the range of its values over the trials.
    pub text: String,
}

impl Results {
    /// What `resolved` says in `runs.parquet`, in the order of the runs.
    pub fn settled(&self) -> Vec<Settled> {
        let mut values: Vec<(Settled, Vec<Value>)> = Vec::new();
        let mut known: HashMap<(&str, &str, String), usize> = HashMap::new();
        let tested = self.data();
        for run in self.runs.iter().filter(|run| tested.contains(&run.data.as_str())) {
            let resolved: Value = serde_json::from_str(run.resolved.as_deref().unwrap_or("")).unwrap_or_default();
            for (parameter, value) in resolved.as_object().into_iter().flatten() {
                let at = *known.entry((&run.data, &run.clusterer, parameter.clone())).or_insert(values.len());
                if at == values.len() {
                    let (data, clusterer) = (run.data.clone(), run.clusterer.clone());
                    let settled = Settled { data, clusterer, parameter: parameter.clone(), text: String::new() };
                    values.push((settled, Vec::new()));
                }
                values[at].1.push(value.clone());
            }
        }
        values.into_iter().map(|(settled, values)| Settled { text: text(&values), ..settled }).collect()
    }
}

/// One value, the range of several numbers, or how many different ones there are.
fn text(values: &[Value]) -> String {
    let shown = |value: &Value| match value.as_f64() {
        Some(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
        Some(number) => score_text(Unit::Number, number),
        None => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    };
    let mut distinct: Vec<&Value> = Vec::new();
    values.iter().for_each(|value| {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    });
    let numbers: Option<Vec<f64>> = distinct.iter().map(|value| value.as_f64()).collect();
    match (&distinct[..], numbers) {
        ([only], _) => shown(only),
        (_, Some(mut numbers)) => {
            numbers.sort_by(f64::total_cmp);
            let [first, last] =
                [numbers.first(), numbers.last()].map(|number| shown(&number.copied().unwrap_or(f64::NAN).into()));
            if first == last { first } else { format!("{first} to {last}") }
        }
        (several, None) => several.iter().map(|value| shown(value)).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_over_trials_are_one_or_a_range() {
        assert_eq!(text(&[json!(5), json!(5)]), "5");
        assert_eq!(text(&[json!(-2.123_456), json!(-4.5), json!(-3)]), "-4.500 to -2.123");
        assert_eq!(text(&[json!(0.300_000_1), json!(0.3)]), "0.3000");
        assert_eq!(text(&[json!("ward"), json!("average")]), "ward, average");
    }
}
