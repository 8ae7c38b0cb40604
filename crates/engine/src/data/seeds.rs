//! Sets that are known beforehand, and what the user calls their members.

use std::collections::{BTreeSet, HashMap};

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use compflow_api::Sets;
use serde::{Deserialize, Serialize};

use super::label_sets::Labels;
use super::values::list_parts;
use crate::causes::Cause;
use crate::error::{Error, Result};
use crate::files::hash_parts;

/// The known sets of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seeds {
    /// One for each example, empty where it is not known; members are positions in `names`.
    pub sets: Sets,
    /// What the user calls the singletons: in their order, numbers before they became texts.
    pub names: Vec<String>,
}

impl Seeds {
    /// Hash of the sets and, apart from it, of the names: no clusterer knows these.
    pub(super) fn keys(&self) -> (String, String) {
        let sets = [bytemuck::cast_slice(self.sets.offsets()), bytemuck::cast_slice(self.sets.values())];
        (hash_parts(sets.into_iter()), hash_parts(self.names.iter().map(String::as_bytes)))
    }

    /// The same sets with the numbers that others have for the names; nothing if they have none for one of them.
    pub(crate) fn renumbered(&self, names: &[String]) -> Option<Sets> {
        let numbers: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
        let numbers: Option<Vec<u32>> =
            self.names.iter().map(|name| numbers.get(name.as_str()).copied()).collect();
        let numbers = numbers?;
        let of = |set: &[u32]| set.iter().map(|member| numbers[*member as usize]).collect::<Vec<u32>>();
        Some(self.sets.iter().map(of).collect())
    }

    /// A set as the user would write it.
    pub(crate) fn shown(&self, set: &[u32]) -> String {
        let names: Vec<&str> = set.iter().map(|member| self.names[*member as usize].as_str()).collect();
        format!("[{}]", names.join(", "))
    }
}

/// What has been read of a column of known sets.
#[derive(Debug, Default)]
pub(crate) struct SeedRows {
    /// The rows whose set is known, ascending.
    rows: Vec<usize>,
    /// Their sets.
    labels: Option<Labels>,
    /// Hashes of their embeddings, if there are any.
    places: Vec<u128>,
}

impl SeedRows {
    /// Appends a column whose first row is `first_row` of its file and `before` of all.
    ///
    /// # Errors
    /// Naming the row that has an empty set, or a null in it.
    pub(crate) fn append(&mut self, column: &ArrayRef, first_row: usize, before: usize) -> Result<()> {
        // A column of the type null has no bits that say so.
        let nothing = column.data_type() == &DataType::Null;
        let known: Vec<usize> = (0..column.len()).filter(|&row| !nothing && !column.is_null(row)).collect();
        for run in known.chunk_by(|a, b| a + 1 == *b) {
            let (start, some) = (run[0], column.slice(run[0], run.len()));
            if let Some((_, lengths)) = list_parts(&some)
                && let Some(empty) = lengths.iter().position(|length| *length == 0)
            {
                return Err(contradictory(format!(
                    "row {}: the seed is an empty set; leave it null where the set is not known",
                    first_row + start + empty
                )));
            }
            Labels::append(&mut self.labels, &some, "seed", first_row + start)?;
        }
        self.rows.extend(known.iter().map(|row| before + row));
        Ok(())
    }

    /// Refuses texts that are several labels.
    ///
    /// # Errors
    /// Naming the row.
    pub(crate) fn require_plain(&self) -> Result<()> {
        self.labels.as_ref().map_or(Ok(()), |labels| labels.require_plain("seed", |at| self.rows[at]))
    }

    /// Appends the embeddings, of `dim` numbers, of the rows from `before` on.
    pub(super) fn place(&mut self, values: &[f32], dim: usize, before: usize) {
        let new = &self.rows[self.places.len()..];
        self.places.extend(new.iter().map(|row| {
            let hash = blake3::hash(bytemuck::cast_slice(&values[(row - before) * dim..][..dim]));
            hash.as_bytes().iter().take(16).fold(0, |sum, byte| sum << 8 | u128::from(*byte))
        }));
    }

    /// The sets of all rows that are known; none if there are no such rows. `counted` is told how many labels there are, and may refuse.
    ///
    /// # Errors
    /// That of `counted`.
    pub(crate) fn number(self, counted: impl FnOnce(usize) -> Result<()>) -> Result<Option<Known>> {
        let Some(labels) = self.labels else { return Ok(None) };
        let (sets, names) = labels.number(counted)?;
        Ok(Some(Known { rows: self.rows, sets, names, places: self.places }))
    }
}

/// What is wrong with known sets.
fn contradictory(text: String) -> Error {
    Error::fault(Cause::Seeds, text)
}

/// The known sets of all trials.
#[derive(Debug)]
pub(crate) struct Known {
    rows: Vec<usize>,
    sets: Sets,
    names: Vec<String>,
    places: Vec<u128>,
}

impl Known {
    /// Those of all of `rows` rows, of which none was left out.
    pub(crate) fn of_all(&self, rows: usize) -> Seeds {
        let mut sets = Sets::with_capacity(rows, self.sets.values().len());
        for (row, set) in self.rows.iter().zip(self.sets.iter()) {
            (sets.len()..*row).for_each(|_| sets.push(&[]));
            sets.push(set);
        }
        (sets.len()..rows).for_each(|_| sets.push(&[]));
        Seeds { sets, names: self.names.clone() }
    }

    /// Those of a trial with these rows; none if no set of it is known.
    ///
    /// # Errors
    /// If examples that cannot be told apart are said to belong to different sets.
    pub(super) fn of_trial(&self, rows: &[usize], trial: u32) -> Result<Option<Seeds>> {
        let known: Vec<Option<usize>> = rows.iter().map(|row| self.rows.binary_search(row).ok()).collect();
        let found = || known.iter().flatten().copied();
        let members: BTreeSet<u32> = found().flat_map(|at| &self.sets[at]).copied().collect();
        if members.is_empty() {
            return Ok(None);
        }
        let numbers: HashMap<u32, u32> = members.iter().copied().zip(0..).collect();
        let names = members.iter().map(|member| self.names[*member as usize].clone()).collect();
        let set = |at: Option<usize>| -> Vec<u32> {
            at.map_or_else(Vec::new, |at| self.sets[at].iter().map(|member| numbers[member]).collect())
        };
        let seeds = Seeds { sets: known.iter().map(|at| set(*at)).collect(), names };
        let mut first: HashMap<u128, usize> = HashMap::new();
        for at in found() {
            let Some(place) = self.places.get(at) else { break };
            let earlier = *first.entry(*place).or_insert(at);
            if self.sets[earlier] != self.sets[at] {
                let [one, other] = [earlier, at].map(|at| seeds.shown(&set(Some(at))));
                return Err(contradictory(format!(
                    "rows {} and {} of trial {trial} have the same embedding, and their seeds are {one} and {other}: \
                     correct one of them, or leave it null",
                    self.rows[earlier], self.rows[at]
                )));
            }
        }
        Ok(Some(seeds))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{Float64Array, ListArray, NullArray, StringArray};

    use super::*;

    fn read(columns: &[ArrayRef]) -> Result<Option<Known>> {
        let (mut rows, mut before) = (SeedRows::default(), 0);
        for column in columns {
            rows.append(column, 0, before)?;
            before += column.len();
        }
        rows.number(|_| Ok(()))
    }

    fn lists(rows: &[Option<Vec<Option<i32>>>]) -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows.iter().cloned()))
    }

    #[test]
    fn names_are_numbered_within_a_trial_and_in_their_order() {
        let some = |set: &[i32]| Some(set.iter().copied().map(Some).collect());
        let first = lists(&[None, some(&[20, 3]), some(&[3])]);
        let known = read(&[first, lists(&[some(&[100]), None])]).unwrap().unwrap();
        let seeds = known.of_trial(&[0, 1, 3], 0).unwrap().unwrap();
        assert_eq!(seeds.names, ["3", "20", "100"]);
        assert_eq!(seeds.sets, Sets::from_iter([vec![], vec![0, 1], vec![2]]));
        assert_eq!(seeds.shown(&[0, 2]), "[3, 100]");
        let seeds = known.of_trial(&[3, 4], 1).unwrap().unwrap();
        assert_eq!((seeds.names, seeds.sets), (vec!["100".to_owned()], Sets::from_iter([vec![0], vec![]])));
        assert_eq!(known.of_trial(&[0, 4], 2).unwrap(), None);
    }

    #[test]
    fn texts_are_sets_of_one_and_nothing_but_nulls_is_nothing() {
        let known = read(&[Arc::new(StringArray::from(vec![Some("b"), None, Some("a"), Some("b")]))]).unwrap();
        let seeds = known.unwrap().of_trial(&[0, 1, 2, 3], 0).unwrap().unwrap();
        assert_eq!(seeds.sets, Sets::from_iter([vec![1], vec![], vec![0], vec![1]]));
        assert_eq!(seeds.names, ["a", "b"]);
        assert!(read(&[lists(&[None, None]), lists(&[])]).unwrap().is_none());
        assert!(read(&[Arc::new(NullArray::new(3))]).unwrap().is_none());
    }

    #[test]
    fn those_of_some_rows_take_the_numbers_of_all() {
        let known = read(&[Arc::new(StringArray::from(vec![None, Some("b"), None, Some("a"), None]))]).unwrap();
        let some = known.unwrap().of_all(5);
        assert_eq!(some.sets, Sets::from_iter([vec![], vec![1], vec![], vec![0], vec![]]));
        let all = ["a", "aa", "b"].map(str::to_owned);
        assert_eq!(some.renumbered(&all).unwrap(), Sets::from_iter([vec![], vec![2], vec![], vec![0], vec![]]));
        assert_eq!(some.renumbered(&all[..2]), None);
    }

    #[test]
    fn what_is_no_set_is_refused_with_its_row() {
        let refused = |column: ArrayRef| read(&[column]).unwrap_err().to_string();
        assert_eq!(
            refused(lists(&[None, Some(vec![Some(1)]), Some(vec![])])),
            "row 2: the seed is an empty set; leave it null where the set is not known"
        );
        assert_eq!(refused(lists(&[None, Some(vec![Some(1), None])])), "row 1: the seed has a null in it");
        let fraction = refused(Arc::new(Float64Array::from(vec![1.5])));
        assert!(
            fraction.starts_with("the seed column must hold whole numbers or text, found numbers; "),
            "{fraction}"
        );
    }

    #[test]
    fn equal_examples_with_different_sets_contradict_each_other_within_a_trial() {
        let mut rows = SeedRows::default();
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b"), Some("a")]));
        rows.append(&texts, 0, 0).unwrap();
        rows.place(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0], 2, 0);
        let known = rows.number(|_| Ok(())).unwrap().unwrap();
        assert!(known.of_trial(&[0, 1, 3], 0).unwrap().is_some());
        assert_eq!(
            known.of_trial(&[0, 1, 2, 3], 7).unwrap_err().to_string(),
            "rows 0 and 2 of trial 7 have the same embedding, and their seeds are [a] and [b]: correct one of them, or \
             leave it null"
        );
    }
}
