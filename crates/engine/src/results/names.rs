//! What clusters are called where the user has named some of them.

use compflow_api::Clustering;
use polars::prelude::{
    Column, IntoColumn, ListBuilderTrait, ListStringChunkedBuilder, NewChunkedArray, StringChunked,
};

use crate::plan::Plan;
use crate::run::row::Row;

/// Whether the tables have names: if a set of any data is known beforehand.
pub(super) fn are_there(plan: &Plan) -> bool {
    plan.data.iter().flat_map(|data| &data.dataset.trials).any(|trial| trial.seeds.is_some())
}

/// The name of every singleton of a cell, by its number: the user's, and `cluster 7` for those that the user has not named.
/// None if the clusterer does not keep to what is known.
pub(super) fn of_cell(plan: &Plan, row: &Row, clustering: &Clustering) -> Option<Vec<String>> {
    Some(singleton_names(&row.cell.seeds(plan)?.names, clustering))
}

/// The name of every singleton by its number, the first of which are known.
pub(crate) fn singleton_names(known: &[String], clustering: &Clustering) -> Vec<String> {
    let numbers = [clustering.assignments.values(), clustering.clusters.values(), &clustering.singletons.numbers];
    let count = numbers.into_iter().flatten().max().map_or(0, |last| *last as usize + 1);
    complete(known, count)
}

/// Names for `count` singletons, no two alike, the first of which are known.
fn complete(known: &[String], count: usize) -> Vec<String> {
    let mut names = known.to_vec();
    for number in known.len()..count {
        let mut name = format!("cluster {number}");
        while known.contains(&name) {
            name.push('\'');
        }
        names.push(name);
    }
    names
}

/// The column `names` of tables whose rows are sets: null where there are none.
pub(super) fn lists<'a, 'b>(sets: impl Iterator<Item = (Option<&'a [String]>, &'b [u32])>) -> Column {
    let mut builder = ListStringChunkedBuilder::new("names".into(), 0, 0);
    for (names, set) in sets {
        match names {
            None => builder.append_null(),
            Some(names) => {
                builder
                    .append_values_iter(set.iter().filter_map(|at| names.get(*at as usize)).map(String::as_str));
            }
        }
    }
    builder.finish().into_column()
}

/// The column `name` of a table whose rows are singletons.
pub(super) fn texts<'a>(names: impl Iterator<Item = Option<&'a str>>) -> Column {
    StringChunked::from_iter_options("name".into(), names).into_column()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singletons_that_nobody_named_are_called_by_their_number_unless_that_is_a_name() {
        let known = ["ann", "cluster 3"].map(str::to_owned);
        assert_eq!(complete(&known, 4), ["ann", "cluster 3", "cluster 2", "cluster 3'"]);
    }
}
