//! Which methods figures show where there are too many to look at.

use compflow_engine::Results;
use compflow_engine::results::lead;
use maud::{Markup, html};

use crate::output::latex::metric_name;

/// Some methods of a run, in their order, each with its number among all.
pub(crate) struct Shown<'a> {
    pub(crate) methods: Vec<(usize, &'a str)>,
    all: usize,
    /// By what they were chosen.
    metric: Option<&'a str>,
}

/// The `most` best methods by the leading metric, averaged over data sets; the first if nothing was scored.
pub(crate) fn best(results: &Results, most: usize) -> Shown<'_> {
    let clusterers = results.clusterers();
    let metric = lead(&results.metrics());
    let mut methods: Vec<(usize, &str)> = clusterers.iter().copied().enumerate().collect();
    if let Some(metric) = metric.filter(|_| clusterers.len() > most) {
        let sign = if results.larger_is_better(metric) { 1.0 } else { -1.0 };
        let score = |clusterer: &str| {
            let means =
                results.data().into_iter().filter_map(|data| Some(results.entry(data, clusterer, metric)?.mean));
            let means: Vec<f64> = means.filter(|mean| mean.is_finite()).collect();
            match means.is_empty() {
                true => f64::NEG_INFINITY,
                false => sign * means.iter().sum::<f64>() / means.len() as f64,
            }
        };
        let mut scored: Vec<(f64, (usize, &str))> =
            methods.iter().map(|(at, clusterer)| (score(clusterer), (*at, *clusterer))).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        methods = scored.into_iter().map(|(_, method)| method).take(most).collect();
        methods.sort_unstable();
    }
    methods.truncate(most);
    Shown { methods, all: clusterers.len(), metric }
}

impl<'a> Shown<'a> {
    pub(crate) fn names(&self) -> Vec<&'a str> {
        self.methods.iter().map(|(_, name)| *name).collect()
    }

    pub(crate) fn contains(&self, clusterer: &str) -> bool {
        self.methods.iter().any(|(_, name)| *name == clusterer)
    }

    /// What is left out, if something is.
    pub(crate) fn note(&self) -> Markup {
        let shown = self.methods.len();
        html! {
            @if shown < self.all {
                p.note {
                    @match self.metric {
                        Some(metric) => { "The " (shown) " best of " (self.all) " methods by " (metric_name(metric)) "; " }
                        None => { "The first " (shown) " of " (self.all) " methods; " }
                    }
                    "the other " (self.all - shown) " are left out here, and are in the tables."
                }
            }
        }
    }
}
