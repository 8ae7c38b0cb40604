//! Sets as other tools write them: a column of lists, a column of strings with separators, or one column per label that
//! says whether it is in the set.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};

use crate::data::{Described, Holds};
use crate::error::{Error, Result};

/// Where the sets of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// A column of lists, or of single values.
    Sets(String),
    /// A column of strings, each with the members of a set between separators.
    Delimited {
        /// The column.
        column: String,
        /// What stands between two members.
        separator: String,
    },
    /// A column for each label, with 1 or true where it is in the set.
    Indicators(Vec<String>),
}

/// Columns that are never labels, unless somebody says so.
const NO_LABELS: [&str; 2] = ["trial", "id"];

impl Labels {
    /// Finds the sets of a file. `named` is what the user said: a column, several with commas between them, or a
    /// pattern such as `spk_*`. If nobody said anything, it is the column `usual`, and if there is none, all columns of true
    /// and false, or else of integers.
    ///
    /// # Errors
    /// If there are no such columns, saying which there are.
    pub fn find(described: &Described, named: Option<&str>, usual: &str, separator: Option<&str>) -> Result<Self> {
        let column = named.unwrap_or(usual);
        match (described.holds(column), separator) {
            (Some(Holds::Texts), Some(separator)) => {
                return Ok(Self::Delimited { column: column.to_owned(), separator: separator.to_owned() });
            }
            (Some(_), _) => return Ok(Self::Sets(column.to_owned())),
            (None, _) => {}
        }
        let columns: Vec<String> = match named {
            Some(named) => {
                let mut columns = Vec::new();
                for part in named.split(',') {
                    let found = matching(described, part)?;
                    if found.is_empty() {
                        return Err(Error::request(format!(
                            "there is no column `{part}`; available: {}",
                            described.names()
                        )));
                    }
                    // Who names a column twice means it once.
                    columns.extend(found.into_iter().filter(|name| !columns.contains(name)).collect::<Vec<_>>());
                }
                columns
            }
            None => [Holds::Flags, Holds::Integers]
                .into_iter()
                .map(|kind| {
                    let columns = described.columns.iter();
                    let columns = columns
                        .filter(|column| column.holds == kind && !NO_LABELS.contains(&column.name.as_str()));
                    columns.map(|column| column.name.clone()).collect::<Vec<_>>()
                })
                .find(|columns| !columns.is_empty())
                .unwrap_or_default(),
        };
        if columns.is_empty() {
            return Err(Error::request(format!("there is no column `{usual}`; available: {}", described.names())));
        }
        Ok(Self::Indicators(columns))
    }

    /// The columns to ask a loader for: the name in the stream and the name in the file.
    pub(super) fn columns(&self) -> Vec<(String, String)> {
        match self {
            Self::Sets(column) | Self::Delimited { column, .. } => vec![("truth".to_owned(), column.clone())],
            Self::Indicators(columns) => {
                columns.iter().map(|column| (format!("column:{column}"), column.clone())).collect()
            }
        }
    }

    /// A batch with the sets as a column of lists.
    ///
    /// # Errors
    /// If a value is neither of those that say yes and no, or is missing. `first_row` is the number of the first.
    pub(super) fn unify(&self, batch: RecordBatch, first_row: usize) -> Result<RecordBatch> {
        let mut lists = ListBuilder::new(StringBuilder::new());
        match self {
            Self::Sets(_) => return Ok(batch),
            Self::Delimited { column, separator } => {
                let texts = batch.column_by_name("truth").map(|texts| cast(texts, &DataType::Utf8)).transpose();
                let texts = texts.map_err(|error| Error::Data(error.to_string()))?;
                let texts = texts.ok_or_else(|| Error::Data("the loader returned no sets".to_owned()))?;
                for (row, text) in texts.as_string::<i32>().iter().enumerate() {
                    let row = first_row + row;
                    let text =
                        text.ok_or_else(|| Error::Data(format!("row {row}: the column `{column}` is null")))?;
                    let members = text.split(separator.as_str()).map(str::trim);
                    for member in members.filter(|member| !member.is_empty()) {
                        lists.values().append_value(member);
                    }
                    lists.append(true);
                }
            }
            Self::Indicators(names) => {
                let columns: Vec<(&String, Vec<bool>)> =
                    names.iter().map(|name| Ok((name, flags(&batch, name, first_row)?))).collect::<Result<_>>()?;
                for row in 0..batch.num_rows() {
                    for (name, flags) in &columns {
                        if flags.get(row) == Some(&true) {
                            lists.values().append_value(name);
                        }
                    }
                    lists.append(true);
                }
            }
        }
        let schema = batch.schema();
        let others = ["trial", "id"].into_iter().filter_map(|name| {
            let (_, field) = schema.fields().find(name)?;
            Some((field.clone(), batch.column_by_name(name)?.clone()))
        });
        let lists: ArrayRef = Arc::new(lists.finish());
        let truth = Arc::new(Field::new("truth", lists.data_type().clone(), true));
        let (fields, columns): (Vec<_>, Vec<_>) = std::iter::once((truth, lists)).chain(others).unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(|error| Error::Data(error.to_string()))
    }
}

/// The columns of this name, or that a pattern stands for.
fn matching(described: &Described, part: &str) -> Result<Vec<String>> {
    if described.holds(part).is_some() {
        return Ok(vec![part.to_owned()]);
    }
    let pattern = glob::Pattern::new(part)
        .map_err(|error| Error::request(format!("`{part}` is no pattern of columns: {}", error.msg)))?;
    let columns = described.columns.iter().filter(|column| pattern.matches(&column.name));
    Ok(columns.map(|column| column.name.clone()).collect())
}

/// Whether a label is in each of the sets.
fn flags(batch: &RecordBatch, name: &str, first_row: usize) -> Result<Vec<bool>> {
    let column = batch
        .column_by_name(&format!("column:{name}"))
        .ok_or_else(|| Error::Data(format!("the loader returned no column `{name}`")))?;
    let wrong = |row: usize, found: String| {
        Error::Data(format!(
            "row {}: the column `{name}` is {found}, and labels are 0 or 1; name those that are labels, as in \
             FILE:'spk_*' or FILE:anna,ben",
            first_row + row
        ))
    };
    let kind = column.data_type();
    if !(kind.is_numeric() || *kind == DataType::Boolean) {
        return Err(wrong(0, format!("of type {kind}")));
    }
    let numbers = cast(column, &DataType::Float64).map_err(|error| Error::Data(error.to_string()))?;
    let numbers = numbers.as_primitive::<Float64Type>();
    (0..numbers.len())
        .map(|row| match numbers.is_valid(row).then(|| numbers.value(row)) {
            Some(0.0) => Ok(false),
            Some(1.0) => Ok(true),
            Some(number) => Err(wrong(row, number.to_string())),
            None => Err(wrong(row, "null".to_owned())),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ColumnInfo;
    use arrow_array::{BooleanArray, Int8Array, StringArray};

    fn described(columns: &[(&str, Holds)]) -> Described {
        let columns = columns.iter().map(|(name, holds)| ColumnInfo { name: (*name).to_owned(), holds: *holds });
        Described { rows: None, columns: columns.collect() }
    }

    fn members(batch: &RecordBatch, row: usize) -> Vec<String> {
        let lists = batch.column_by_name("truth").unwrap().as_list::<i32>().value(row);
        lists.as_string::<i32>().iter().flatten().map(str::to_owned).collect()
    }

    #[test]
    fn columns_are_found_by_name_pattern_and_type() {
        let file = described(&[
            ("id", Holds::Integers),
            ("spk_a", Holds::Integers),
            ("spk_b", Holds::Integers),
            ("age", Holds::Integers),
            ("who", Holds::Texts),
        ]);
        let find = |named, separator| Labels::find(&file, named, "labels", separator);
        let spk = Labels::Indicators(vec!["spk_a".to_owned(), "spk_b".to_owned()]);
        assert_eq!(find(Some("spk_*"), None).unwrap(), spk);
        assert_eq!(find(Some("spk_a,spk_b"), None).unwrap(), spk);
        assert_eq!(find(Some("who"), None).unwrap(), Labels::Sets("who".to_owned()));
        assert!(matches!(find(Some("who"), Some(";")).unwrap(), Labels::Delimited { .. }));
        let Labels::Indicators(all) = find(None, None).unwrap() else { panic!("integers can be labels") };
        assert_eq!(all, ["spk_a", "spk_b", "age"], "an identifier is none");
        let error = find(Some("spk_a,spk_c"), None).unwrap_err().to_string();
        assert!(error.starts_with("there is no column `spk_c`; available: `id`, `spk_a`"), "{error}");
        let flags = described(&[("n", Holds::Integers), ("a", Holds::Flags)]);
        assert_eq!(
            Labels::find(&flags, None, "labels", None).unwrap(),
            Labels::Indicators(vec!["a".to_owned()]),
            "true and false say more than integers"
        );
    }

    #[test]
    fn strings_are_taken_apart_and_an_empty_one_is_the_empty_set() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["b; a", "", "a;"]));
        let labels = Labels::Delimited { column: "who".to_owned(), separator: ";".to_owned() };
        let batch = labels.unify(RecordBatch::try_from_iter([("truth", texts)]).unwrap(), 0).unwrap();
        assert_eq!([0, 1, 2].map(|row| members(&batch, row)), [vec!["b", "a"], vec![], vec!["a"]]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let error = labels.unify(RecordBatch::try_from_iter([("truth", texts)]).unwrap(), 10).unwrap_err();
        assert_eq!(error.to_string(), "row 11: the column `who` is null");
    }

    #[test]
    fn columns_of_flags_become_sets_and_anything_else_is_refused() {
        let batch = |b: Vec<i8>| {
            let a: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
            let b: ArrayRef = Arc::new(Int8Array::from(b));
            let id: ArrayRef = Arc::new(Int8Array::from(vec![5, 6]));
            RecordBatch::try_from_iter([("column:a", a), ("column:b", b), ("id", id)]).unwrap()
        };
        let labels = Labels::Indicators(vec!["a".to_owned(), "b".to_owned()]);
        let unified = labels.unify(batch(vec![1, 0]), 0).unwrap();
        assert_eq!(members(&unified, 0), ["a", "b"]);
        assert!(members(&unified, 1).is_empty());
        assert!(unified.column_by_name("id").is_some());
        let error = labels.unify(batch(vec![0, 41]), 100).unwrap_err().to_string();
        assert!(error.starts_with("row 101: the column `b` is 41, and labels are 0 or 1;"), "{error}");
    }
}
