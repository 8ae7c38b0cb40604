//! What cells found, as far as it can be told without true sets: how many clusters, how large, and which are the largest.

use std::collections::HashMap;

use polars::prelude::*;

use super::read::{Results, Run, Selected, Table};
use crate::error::Result;

/// What one cell found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The data set.
    pub data: String,
    /// The trial's number.
    pub trial: u32,
    /// The clusterer, or a point of its grids.
    pub clusterer: String,
    /// How many examples.
    pub n: u32,
    /// How many singletons occur, alone or in a union.
    pub singletons: u32,
    /// How many unions occur.
    pub unions: u32,
    /// How many examples belong to nothing.
    pub unassigned: u32,
    /// What the method made as large or as small as it could, if it says so.
    pub objective: Option<f64>,
    /// Whether it converged.
    pub converged: bool,
    /// The agreement of two halves, if parameters were selected.
    pub stability: Option<f64>,
    /// The clusters that occur, the largest first.
    pub clusters: Vec<FoundCluster>,
}

/// A cluster and its size.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundCluster {
    /// What its singletons are called: by the user's names where there are some, else by their numbers.
    pub members: Vec<String>,
    /// How many examples.
    pub size: u32,
}

impl Found {
    /// The size of the cluster that stands in the middle; 0 if there are none.
    pub fn median_size(&self) -> u32 {
        self.clusters.get(self.clusters.len() / 2).map_or(0, |cluster| cluster.size)
    }
}

impl Results {
    /// What every finished cell of some data sets found, in the order of `runs.parquet`.
    ///
    /// # Errors
    /// If a table is missing or damaged.
    pub fn found(&self, of: &dyn Fn(&str) -> bool) -> Result<Vec<Found>> {
        let columns = ["data", "trial", "clusterer", "clusters", "size"];
        let mut clusters = Table::open_columns(&self.tables, "clusters", &columns, &["names"])?
            .read(|frame| read_clusters(frame, of))?;
        let selected = self.selected()?;
        let selected: HashMap<(&str, u32, &str), &Selected> = selected
            .iter()
            .map(|cell| ((cell.data.as_str(), cell.trial, cell.clusterer.as_str()), cell))
            .collect();
        let stability = |run: &Run| {
            let cell = selected.get(&(run.data.as_str(), run.trial, run.clusterer.as_str()))?;
            cell.candidates.iter().find(|candidate| candidate.chosen).map(|candidate| candidate.stability)
        };
        let finished = self.runs.iter().filter(|run| run.seconds.is_some() && of(&run.data));
        Ok(finished
            .map(|run| {
                let key = (run.data.clone(), run.trial, run.clusterer.clone());
                let mut clusters = clusters.remove(&key).unwrap_or_default();
                // The sort keeps the order of equals, which is that of the table.
                clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.size));
                let assigned: u32 = clusters.iter().map(|cluster| cluster.size).sum();
                Found {
                    n: run.n,
                    singletons: run.singletons.unwrap_or_default(),
                    unions: run.compositions.unwrap_or_default(),
                    unassigned: run.n.saturating_sub(assigned),
                    objective: run.objective,
                    converged: run.converged.unwrap_or_default(),
                    stability: stability(run),
                    clusters,
                    data: key.0,
                    trial: key.1,
                    clusterer: key.2,
                }
            })
            .collect())
    }
}

/// Data, trial and clusterer.
type Key = (String, u32, String);

fn read_clusters(frame: &DataFrame, of: &dyn Fn(&str) -> bool) -> PolarsResult<HashMap<Key, Vec<FoundCluster>>> {
    let (data, trial) = (frame.column("data")?.str()?, frame.column("trial")?.u32()?);
    let (clusterer, size) = (frame.column("clusterer")?.str()?, frame.column("size")?.u32()?);
    let clusters = frame.column("clusters")?.list()?;
    let names = frame.column("names").ok().map(|names| names.list()).transpose()?;
    let mut found: HashMap<Key, Vec<FoundCluster>> = HashMap::new();
    let rows = data.iter().zip(trial.iter()).zip(clusterer.iter()).zip(size.iter()).enumerate();
    for (row, (((data, trial), clusterer), size)) in rows {
        let (Some(data), Some(trial), Some(clusterer), Some(size)) = (data, trial, clusterer, size) else {
            continue;
        };
        let set = clusters.get_as_series(row);
        let set: Vec<u32> =
            set.iter().flat_map(|set| set.u32().into_iter().flat_map(|set| set.iter().flatten())).collect();
        if size == 0 || set.is_empty() || !of(data) {
            continue;
        }
        let called = names.and_then(|names| names.get_as_series(row));
        let called: Vec<String> = called
            .iter()
            .flat_map(|names| names.str().into_iter().flat_map(|names| names.iter().flatten()))
            .map(str::to_owned)
            .collect();
        let members = if called.is_empty() { set.iter().map(ToString::to_string).collect() } else { called };
        let key = (data.to_owned(), trial, clusterer.to_owned());
        found.entry(key).or_default().push(FoundCluster { members, size });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_read_with_their_names_and_empty_ones_left_out() -> PolarsResult<()> {
        let list = |values: &[u32]| Series::new("".into(), values);
        let frame = df![
            "data" => ["d", "d", "d", "other"],
            "trial" => [0u32, 0, 0, 0],
            "clusterer" => ["A", "A", "A", "A"],
            "clusters" => [list(&[0]), list(&[0, 2]), list(&[1]), list(&[0])],
            "size" => [3u32, 9, 0, 4],
        ]?;
        let found = read_clusters(&frame, &|data| data == "d")?;
        assert_eq!(found.len(), 1, "{found:?}");
        let clusters = &found[&("d".to_owned(), 0, "A".to_owned())];
        let texts: Vec<(String, u32)> =
            clusters.iter().map(|cluster| (cluster.members.join("+"), cluster.size)).collect();
        assert_eq!(texts, [("0".to_owned(), 3), ("0+2".to_owned(), 9)]);
        Ok(())
    }
}
