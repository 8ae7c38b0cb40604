//! One cell of a results folder, read back: its clusters and what they were made from.

use std::collections::{BTreeMap, HashMap};

use compflow_api::{Clustering, Densities, Sets, Singletons};
use polars::prelude::*;
use serde::{Deserialize, Serialize};

use super::read::{Results, Table};
use crate::error::{Error, Result};

/// What a cell found, without its examples.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct CellTables {
    /// The clusters.
    pub(crate) clusters: Sets,
    /// How many examples each has.
    pub(crate) sizes: Vec<u32>,
    /// Rows of the trial for each; empty if the method has none.
    pub(crate) exemplars: Vec<Vec<u32>>,
    /// A point of the space for each, row-major; empty if the method has none.
    pub(crate) centroids: Vec<f32>,
    pub(crate) singletons: Singletons,
    pub(crate) densities: Densities,
}

/// How many examples each cluster has.
pub(super) fn sizes(clustering: &Clustering) -> Vec<u32> {
    let mut counts: HashMap<&[u32], u32> = HashMap::new();
    clustering.assignments.iter().for_each(|set| *counts.entry(set).or_default() += 1);
    clustering.clusters.iter().map(|set| counts.get(set).copied().unwrap_or(0)).collect()
}

impl CellTables {
    /// What a clustering says.
    pub(crate) fn of(clustering: &Clustering) -> Self {
        Self {
            sizes: sizes(clustering),
            clusters: clustering.clusters.clone(),
            exemplars: clustering.exemplars.clone(),
            centroids: clustering.centroids.clone(),
            singletons: clustering.singletons.clone(),
            densities: clustering.densities.clone(),
        }
    }
}

impl Results {
    /// What a cell found; `dim` is the length of its embeddings.
    ///
    /// # Errors
    /// If a table is missing or damaged, or has nothing of the cell.
    pub(crate) fn cell_tables(&self, data: &str, trial: u32, clusterer: &str, dim: usize) -> Result<CellTables> {
        let key = (data, trial, clusterer);
        let table = Table::open(&self.tables, "clusters")?;
        let mut found = table.read(|frame| read_clusters(frame, key))?;
        if found.clusters.is_empty() {
            let path = table.path.display();
            return Err(Error::request(format!(
                "{path} has no clusters of {clusterer} on {data}, trial {trial}; run the pipeline again"
            )));
        }
        // Runs of earlier versions have no such tables.
        let there = |name: &str| self.tables.has(name);
        if there("singletons") {
            found.singletons =
                Table::open(&self.tables, "singletons")?.read(|frame| read_singletons(frame, key))?;
        }
        if there("densities") {
            found.densities = Table::open(&self.tables, "densities")?.read(|frame| read_densities(frame, key))?;
            if !found.densities.sets.is_empty() {
                found.densities.factors =
                    Table::open(&self.tables, "factors")?.read(|frame| vectors(frame, key, "values"))?.1.concat();
            }
        }
        let CellTables { clusters, centroids, singletons, densities, .. } = &found;
        let lengths = [
            ("clusters", centroids.len(), if centroids.is_empty() { 0 } else { clusters.len() * dim }),
            ("singletons", singletons.vectors.len(), singletons.numbers.len() * dim),
            ("densities", densities.centres.len(), densities.sets.len() * dim),
        ];
        if let Some((name, ..)) = lengths.into_iter().find(|(_, numbers, wanted)| numbers != wanted) {
            let folder = self.folder.display();
            return Err(Error::request(format!(
                "{folder}/{name}.parquet has vectors that are not {dim} numbers long, as the data was; run the pipeline again"
            )));
        }
        let of = densities.factors.len() / Densities::factor_len(dim);
        if densities.factor_of.iter().any(|&factor| factor as usize >= of) {
            let folder = self.folder.display();
            let text =
                format!("{folder}/factors.parquet lacks what densities.parquet refers to; run the pipeline again");
            return Err(Error::request(text));
        }
        Ok(found)
    }

    /// What the user calls the first `count` singletons of a cell; those without a name are called by their number, and all are
    /// none if the run has no names.
    ///
    /// # Errors
    /// If a table is damaged.
    pub(crate) fn cell_names(
        &self,
        data: &str,
        trial: u32,
        clusterer: &str,
        count: usize,
    ) -> Result<Option<Vec<String>>> {
        let (key, cell) = ((data, trial, clusterer), ["data", "trial", "clusterer"]);
        let open = |table: &str, number: &str, name: &str| {
            Table::open_columns(&self.tables, table, &[&cell[..], &[number]].concat(), &[name])
        };
        let mut known: BTreeMap<u32, String> =
            open("clusters", "clusters", "names")?.read(|frame| read_names(frame, key))?;
        if self.tables.has("singletons") {
            known.extend(open("singletons", "singleton", "name")?.read(|frame| read_name(frame, key))?);
        }
        if known.is_empty() {
            return Ok(None);
        }
        let name = |number: u32| {
            let mut name = format!("cluster {number}");
            while known.values().any(|known| *known == name) {
                name.push('\'');
            }
            name
        };
        Ok(Some((0..count as u32).map(|at| known.get(&at).cloned().unwrap_or_else(|| name(at))).collect()))
    }

    /// The distances of a cell's examples from their clusters; empty if clusters have no representatives.
    ///
    /// # Errors
    /// If the table is missing or damaged.
    pub(crate) fn cell_distances(&self, data: &str, trial: u32, clusterer: &str) -> Result<Vec<f32>> {
        Table::open_columns(&self.tables, "assignments", &["data", "trial", "clusterer", "distance"], &[])?.read(
            |frame| {
                let distances = frame.column("distance")?.f32()?;
                Ok(rows(frame, (data, trial, clusterer))?
                    .into_iter()
                    .filter_map(|row| distances.get(row))
                    .collect())
            },
        )
    }
}

/// Data, trial and clusterer.
type Key<'a> = (&'a str, u32, &'a str);

/// The rows of a cell.
fn rows(frame: &DataFrame, key: Key<'_>) -> PolarsResult<Vec<usize>> {
    let (data, trial) = (frame.column("data")?.str()?, frame.column("trial")?.u32()?);
    let clusterer = frame.column("clusterer")?.str()?;
    let all = data.iter().zip(trial.iter()).zip(clusterer.iter()).enumerate();
    let own = all.filter(|(_, ((data, trial), clusterer))| {
        (*data, *trial, *clusterer) == (Some(key.0), Some(key.1), Some(key.2))
    });
    Ok(own.map(|(row, _)| row).collect())
}

/// Names by the numbers of singletons, of a table whose rows are sets.
fn read_names(frame: &DataFrame, key: Key<'_>) -> PolarsResult<BTreeMap<u32, String>> {
    let Ok(names) = frame.column("names") else { return Ok(BTreeMap::new()) };
    let (names, rows) = (names.list()?, rows(frame, key)?);
    let mut known = BTreeMap::new();
    for (row, set) in rows.iter().zip(lists(frame, &rows, "clusters")?) {
        let (Some(set), Some(names)) = (set, names.get_as_series(*row)) else { continue };
        known.extend(set.into_iter().zip(names.str()?.iter().flatten().map(str::to_owned)));
    }
    Ok(known)
}

/// The same of a table whose rows are singletons.
fn read_name(frame: &DataFrame, key: Key<'_>) -> PolarsResult<BTreeMap<u32, String>> {
    let Ok(names) = frame.column("name") else { return Ok(BTreeMap::new()) };
    let (names, numbers) = (names.str()?, frame.column("singleton")?.u32()?);
    let of = |row: usize| Some((numbers.get(row)?, names.get(row)?.to_owned()));
    Ok(rows(frame, key)?.into_iter().filter_map(of).collect())
}

/// A column of lists, at some rows; null where there is none.
fn lists(frame: &DataFrame, rows: &[usize], name: &str) -> PolarsResult<Vec<Option<Vec<u32>>>> {
    let column = frame.column(name)?.list()?;
    rows.iter()
        .map(|&row| match column.get_as_series(row) {
            None => Ok(None),
            Some(set) => Ok(Some(set.u32()?.iter().flatten().collect())),
        })
        .collect()
}

/// The rows of a cell, and a column of vectors at them that are there.
fn vectors(frame: &DataFrame, key: Key<'_>, name: &str) -> PolarsResult<(Vec<usize>, Vec<Vec<f32>>)> {
    let rows = rows(frame, key)?;
    let column = frame.column(name)?.cast(&DataType::List(Box::new(DataType::Float32)))?;
    let column = column.list()?;
    let found = rows.iter().filter_map(|&row| column.get_as_series(row));
    let found = found.map(|vector| Ok(vector.f32()?.iter().flatten().collect())).collect::<PolarsResult<_>>()?;
    Ok((rows, found))
}

fn read_clusters(frame: &DataFrame, key: Key<'_>) -> PolarsResult<CellTables> {
    let (rows, centroids) = vectors(frame, key, "centroid")?;
    let sizes = frame.column("size")?.u32()?;
    let exemplars: Vec<Vec<u32>> = lists(frame, &rows, "exemplars")?.into_iter().flatten().collect();
    Ok(CellTables {
        clusters: lists(frame, &rows, "clusters")?.into_iter().map(Option::unwrap_or_default).collect(),
        sizes: rows.iter().map(|&row| sizes.get(row).unwrap_or(0)).collect(),
        exemplars: if exemplars.len() == rows.len() { exemplars } else { Vec::new() },
        centroids: centroids.concat(),
        ..CellTables::default()
    })
}

fn read_singletons(frame: &DataFrame, key: Key<'_>) -> PolarsResult<Singletons> {
    let (rows, vectors) = vectors(frame, key, "vector")?;
    let numbers = frame.column("singleton")?.u32()?;
    let numbers = rows.iter().filter_map(|&row| numbers.get(row)).collect();
    Ok(Singletons { numbers, vectors: vectors.concat() })
}

fn read_densities(frame: &DataFrame, key: Key<'_>) -> PolarsResult<Densities> {
    let (rows, centres) = vectors(frame, key, "centre")?;
    let (offsets, factors) = (frame.column("offset")?.f64()?, frame.column("factor")?.u32()?);
    Ok(Densities {
        sets: lists(frame, &rows, "clusters")?.into_iter().map(Option::unwrap_or_default).collect(),
        centres: centres.concat(),
        offsets: rows.iter().map(|&row| offsets.get(row).unwrap_or(f64::NAN)).collect(),
        factor_of: rows.iter().map(|&row| factors.get(row).unwrap_or(0)).collect(),
        factors: Vec::new(),
    })
}
