//! `assignments.parquet`, read back trial by trial.

use std::collections::BTreeMap;
use std::ops::Range;

use compflow_api::Sets;
use polars::prelude::*;

use super::read::{Results, Table};
use crate::error::Result;

/// The sets that one clusterer gave to the examples of one trial.
#[derive(Debug)]
pub struct TrialAssignments {
    /// The clusterer, or a point of its grids.
    pub clusterer: String,
    /// The examples' identifiers.
    pub ids: Vec<String>,
    /// A set for each example.
    pub sets: Sets,
    /// The distance of each example from its cluster; NaN where there is none.
    pub distances: Vec<f32>,
    /// What the singletons that occur are called, where sets were known beforehand.
    pub names: BTreeMap<u32, String>,
}

/// Rows that follow one another and are of one cell: data, trial, clusterer.
type CellRows = (String, u32, String, Range<usize>);

/// The table, opened once for many trials.
pub struct AssignmentTable {
    table: Table,
    cells: Vec<CellRows>,
}

impl Results {
    /// What every clusterer found in one trial.
    ///
    /// # Errors
    /// If the table is missing or damaged.
    pub fn assignments(&self, data: &str, trial: u32) -> Result<Vec<TrialAssignments>> {
        self.assignment_table()?.of(data, trial, &|_| true)
    }

    /// What every clusterer found, for many trials.
    ///
    /// # Errors
    /// If the table is missing or damaged.
    pub fn assignment_table(&self) -> Result<AssignmentTable> {
        let columns = ["data", "trial", "clusterer", "id", "clusters", "distance"];
        let table = Table::open_columns(&self.tables, "assignments", &columns, &["names"])?;
        let cells = table.read(cells)?;
        Ok(AssignmentTable { table, cells })
    }
}

fn cells(frame: &DataFrame) -> PolarsResult<Vec<CellRows>> {
    let (data, trials) = (frame.column("data")?.str()?, frame.column("trial")?.u32()?);
    let clusterers = frame.column("clusterer")?.str()?;
    let mut cells: Vec<CellRows> = Vec::new();
    let rows = data.iter().zip(trials.iter()).zip(clusterers.iter()).enumerate();
    for (row, ((data, trial), clusterer)) in rows {
        let (Some(data), Some(trial), Some(clusterer)) = (data, trial, clusterer) else { continue };
        match cells.last_mut() {
            Some((known, of, by, rows)) if known == data && *of == trial && by == clusterer && rows.end == row => {
                rows.end += 1;
            }
            _ => cells.push((data.to_owned(), trial, clusterer.to_owned(), row..row + 1)),
        }
    }
    Ok(cells)
}

impl AssignmentTable {
    /// What some clusterers found in one trial, in the order of the table.
    ///
    /// # Errors
    /// If the table is damaged.
    pub fn of(&self, data: &str, trial: u32, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<TrialAssignments>> {
        let mut found: Vec<(&str, Vec<usize>)> = Vec::new();
        for (of, number, clusterer, rows) in &self.cells {
            if of != data || *number != trial || !wanted(clusterer) {
                continue;
            }
            match found.iter_mut().find(|(known, _)| known == clusterer) {
                Some((_, known)) => known.extend(rows.clone()),
                None => found.push((clusterer, rows.clone().collect())),
            }
        }
        self.table.read(|frame| found.iter().map(|(clusterer, rows)| read_cell(frame, clusterer, rows)).collect())
    }
}

fn read_cell(frame: &DataFrame, clusterer: &str, rows: &[usize]) -> PolarsResult<TrialAssignments> {
    let clusters = frame.column("clusters")?.list()?;
    let (ids, distances) = (frame.column("id")?, frame.column("distance")?.f32()?);
    let called = frame.column("names").ok().map(|names| names.list()).transpose()?;
    let mut cell = TrialAssignments {
        clusterer: clusterer.to_owned(),
        ids: Vec::with_capacity(rows.len()),
        sets: Sets::default(),
        distances: Vec::with_capacity(rows.len()),
        names: BTreeMap::new(),
    };
    for &row in rows {
        let set = clusters.get_as_series(row);
        let set: Vec<u32> =
            set.iter().flat_map(|set| set.u32().into_iter().flat_map(|set| set.iter().flatten())).collect();
        let called = called.and_then(|called| called.get_as_series(row));
        let called =
            called.iter().flat_map(|names| names.str().into_iter().flat_map(|names| names.iter().flatten()));
        for (member, name) in set.iter().zip(called) {
            cell.names.entry(*member).or_insert_with(|| name.to_owned());
        }
        cell.ids.push(match ids.get(row)? {
            AnyValue::String(text) => text.to_owned(),
            AnyValue::StringOwned(text) => text.to_string(),
            AnyValue::Null => String::new(),
            number => number.to_string(),
        });
        cell.distances.push(distances.get(row).unwrap_or(f32::NAN));
        cell.sets.push(&set);
    }
    Ok(cell)
}
