//! Columns of labels: a value or a list of values per row.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use compflow_api::{Sets, in_words};

use super::values::{convert, is_text, list_parts, strings};
use crate::causes::Cause;
use crate::error::{Error, Result};

/// What people write between labels, the likeliest first.
pub const SEPARATORS: [char; 6] = [',', ';', '|', '+', '&', '/'];

/// So many numbers of a list a message shows.
const SHOWN: usize = 8;

/// Values that are all numbers or all texts.
#[derive(Debug)]
pub(super) enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

/// A set of values per row.
#[derive(Debug)]
pub(super) struct Labels {
    offsets: Vec<u64>,
    values: Values,
}

impl Labels {
    /// Appends a column of values, or of lists of values.
    pub(super) fn append(
        labels: &mut Option<Self>,
        column: &ArrayRef,
        what: &str,
        first_row: usize,
    ) -> Result<()> {
        if let Some(row) = (0..column.len()).find(|&row| column.is_null(row)) {
            return Err(missing(what, format!("row {}: the {what} is null", first_row + row)));
        }
        let (values, lengths) = list_parts(column).unwrap_or_else(|| (column.clone(), vec![1; column.len()]));
        // A true set may be empty: "none of them". An identifier is one value, which no list is.
        if let Some(at) = (0..values.len()).find(|&at| values.is_null(at)) {
            let mut end = 0;
            let row = lengths.iter().position(|length| {
                end += length;
                at < end
            });
            return Err(missing(
                what,
                format!("row {}: the {what} has a null in it", first_row + row.unwrap_or(0)),
            ));
        }
        let texts = match values.data_type() {
            kind if kind.is_integer() => false,
            kind if is_text(kind) => true,
            // Nothing but empty sets: whatever the others hold.
            _ if values.is_empty() => {
                labels.as_ref().is_some_and(|labels| matches!(labels.values, Values::Texts(_)))
            }
            _ => return Err(wrong_kind(what, column.data_type())),
        };
        let labels = labels.get_or_insert_with(|| Self {
            offsets: vec![0],
            values: if texts { Values::Texts(Vec::new()) } else { Values::Numbers(Vec::new()) },
        });
        match &mut labels.values {
            Values::Numbers(numbers) if !texts => {
                let values = convert(&values, &DataType::Int64)?;
                numbers.extend_from_slice(values.as_primitive::<Int64Type>().values());
            }
            Values::Texts(all) if texts => {
                all.extend(strings(&values)?.iter().flatten().map(str::to_owned));
            }
            _ => {
                let text = format!("the {what} column holds whole numbers in one file and text in another");
                return Err(Error::fault(Cause::Unequal, text));
            }
        }
        let mut end = labels.offsets[labels.offsets.len() - 1];
        labels.offsets.extend(lengths.iter().map(|length| {
            end += *length as u64;
            end
        }));
        Ok(())
    }

    /// Refuses what is rather something else than it says: texts that are several labels, which would be labels of their own beside
    /// those in them, and lists with a 0 or 1 for every label, which would be sets of the labels 0 and 1.
    ///
    /// # Errors
    /// Naming the first row with such a value, and what would do. `row_of` is the number of a row that has been appended.
    pub(super) fn require_plain(&self, what: &str, row_of: impl Fn(usize) -> usize) -> Result<()> {
        match &self.values {
            Values::Texts(texts) => self.require_single(texts, what, row_of),
            Values::Numbers(numbers) => self.require_members(numbers, what, row_of),
        }
    }

    fn require_members(&self, numbers: &[i64], what: &str, row_of: impl Fn(usize) -> usize) -> Result<()> {
        let length = self.offsets.get(1).map_or(0, |end| *end as usize);
        let same_length = self.offsets.windows(2).all(|ends| ends[1] - ends[0] == length as u64);
        // No set has a member twice.
        let repeats = |row: &[i64]| row.len() > 2 || row.first() == row.last();
        if length < 2 || !same_length || numbers.iter().any(|number| ![0, 1].contains(number)) {
            return Ok(());
        }
        let Some(at) = numbers.chunks_exact(length).position(repeats) else { return Ok(()) };
        let shown: Vec<String> = numbers[at * length..][..length.min(SHOWN)].iter().map(i64::to_string).collect();
        let (row, more) = (row_of(at), if length > SHOWN { ", …" } else { "" });
        let text =
            format!("row {row}: the {what} [{}{more}] seems to have a 0 or 1 for every label", shown.join(", "));
        Err(Error::fault(Cause::LabelKind, text).help(
            "a set lists its labels: write the positions of the ones, or a column of 0 and 1 for every label",
        ))
    }

    fn require_single(&self, texts: &[String], what: &str, row_of: impl Fn(usize) -> usize) -> Result<()> {
        let distinct: HashSet<&str> = texts.iter().map(String::as_str).collect();
        let several = |text: &str| {
            let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            SEPARATORS.into_iter().find(|separator| {
                let mut parts = inner.unwrap_or(text).split(*separator).map(str::trim);
                // A name may well have a comma in it, such as one with the family name first; numbers may be added or divided.
                let counted = [',', ';', '|'].contains(separator);
                let is_label = |part: &str| distinct.contains(part) || (counted && part.parse::<i64>().is_ok());
                match inner {
                    Some(inner) => inner.contains(*separator) || *separator == ',',
                    None => text.contains(*separator) && parts.all(|part| part.is_empty() || is_label(part)),
                }
            })
        };
        let Some((at, separator)) = texts.iter().enumerate().find_map(|(at, text)| Some((at, several(text)?)))
        else {
            return Ok(());
        };
        let row = row_of(self.offsets.partition_point(|end| *end <= at as u64) - 1);
        let text = format!("row {row}: the {what} `{}` is one text, and seems to be several labels", texts[at]);
        let help = format!(
            "write `labels = {{ split = \"{separator}\" }}` into [[data]] (--split '{separator}'), or lists into the file"
        );
        Err(Error::fault(Cause::LabelText, text).help(help))
    }

    /// The value of every row, if each has one.
    pub(super) fn into_values(self) -> Values {
        self.values
    }

    /// Numbers the distinct values in their order; also says what they are. `counted` is told how many there are, and may refuse.
    ///
    /// # Errors
    /// That of `counted`.
    pub(super) fn number(self, counted: impl FnOnce(usize) -> Result<()>) -> Result<(Sets, Vec<String>)> {
        fn of<T: Ord + Hash + std::fmt::Display>(
            values: &[T],
            offsets: &[u64],
            counted: impl FnOnce(usize) -> Result<()>,
        ) -> Result<(Sets, Vec<String>)> {
            let distinct: HashSet<&T> = values.iter().collect();
            counted(distinct.len())?;
            let mut distinct: Vec<&T> = distinct.into_iter().collect();
            distinct.sort();
            let names = distinct.iter().map(ToString::to_string).collect();
            let numbers: HashMap<&T, u32> = distinct.into_iter().zip(0..).collect();
            let mut sets = Sets::with_capacity(offsets.len(), values.len());
            let mut set = Vec::new();
            for ends in offsets.windows(2) {
                set.clear();
                set.extend(values[ends[0] as usize..ends[1] as usize].iter().map(|value| numbers[value]));
                sets.push(&set);
            }
            Ok((sets, names))
        }
        match self.values {
            Values::Numbers(values) => of(&values, &self.offsets, counted),
            Values::Texts(values) => of(&values, &self.offsets, counted),
        }
    }
}

/// That a value is missing.
fn missing(what: &str, text: String) -> Error {
    match what {
        "truth" => Error::fault(Cause::LabelMissing, text)
            .help(
                "labels that only some examples have are named by `seed`, not by `truth`; in CSV, `params = { empty_text = true }` \
                 makes an empty field the set of nothing",
            ),
        "seed" => Error::fault(Cause::Seeds, text),
        _ => Error::fault(Cause::Identifier, text)
            .help("give every example an identifier; without `id` in `columns` they are called by their rows"),
    }
}

/// That a column holds something else than labels or identifiers.
pub(crate) fn wrong_kind(what: &str, found: &DataType) -> Error {
    let cause = if what == "id" { Cause::Identifier } else { Cause::LabelKind };
    let text = format!("the {what} column must hold whole numbers or text, found {}", in_words(found));
    let error = Error::fault(cause, text);
    match found.is_floating() {
        // A file of texts does not say which of both it has.
        true => error.help(
            "fractions are none of these, nor are whole numbers above 9223372036854775807, which are read as fractions: write text, \
             as in `x9223372036854775808`",
        ),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ListArray, StringArray};

    use super::*;

    fn refused(texts: &[&str]) -> Option<String> {
        let column: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let mut labels = None;
        Labels::append(&mut labels, &column, "truth", 0).unwrap();
        labels.unwrap().require_plain("truth", |row| row).err().map(|error| error.to_string())
    }

    #[test]
    fn lists_with_a_flag_for_every_label_are_no_sets() {
        let refused = |rows: &[&[i64]]| {
            let lists = rows.iter().map(|row| Some(row.iter().copied().map(Some).collect::<Vec<_>>()));
            let column: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
            let mut labels = None;
            Labels::append(&mut labels, &column, "truth", 0).unwrap();
            labels.unwrap().require_plain("truth", |row| row + 10).err().map(|error| error.to_string())
        };
        let error = refused(&[&[0, 1, 1, 0], &[1, 0, 0, 0]]).unwrap();
        assert!(
            error.starts_with("row 10: the truth [0, 1, 1, 0] seems to have a 0 or 1 for every label; "),
            "{error}"
        );
        assert!(refused(&[&[0, 1], &[1, 1]]).unwrap().starts_with("row 11: the truth [1, 1] "));
        assert_eq!(refused(&[&[0, 1], &[0, 1]]), None, "both labels");
        assert_eq!(refused(&[&[0, 1, 1], &[1]]), None, "lists of many lengths are sets, if sloppy ones");
        assert_eq!(refused(&[&[0, 1, 2], &[0, 0, 1]]), None);
        assert_eq!(refused(&[&[0], &[0], &[1]]), None);
    }

    #[test]
    fn texts_that_are_several_labels_are_refused_and_names_with_a_comma_are_not() {
        let error = refused(&["0", "0,3", "3"]).unwrap();
        assert!(
            error.starts_with("row 1: the truth `0,3` is one text, and seems to be several labels"),
            "{error}"
        );
        assert!(error.contains("`labels = { split = \",\" }`"), "{error}");
        assert!(refused(&["7", "[0, 3]"]).unwrap().contains("row 1: the truth `[0, 3]`"));
        assert!(refused(&["[a]"]).is_some());
        assert!(refused(&["anna", "ben|anna", "ben"]).unwrap().contains("split = \"|\""));
        assert!(refused(&["anna", "ben", "anna + ben"]).unwrap().contains("split = \"+\""));
        assert_eq!(refused(&["anna", "ben", "AC/DC", "1/2"]), None);
        assert_eq!(refused(&["Smith, John", "Doe, Jane", "Smith"]), None);
        assert_eq!(refused(&["rock;pop"]), None, "neither of them is known to be a label");
    }
}
