//! Sets as other tools write them: a column of lists, a column of strings with separators, or one column per label that
//! says whether it is in the set.

use crate::data::{Described, Holds};
use crate::error::{Error, Result};
use crate::pipeline::Named;

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

impl Labels {
    /// Finds the sets of a file. `named` is what the user said: a column, several with commas between them, or a
    /// pattern such as `spk_*`. If nobody said anything, it is the column `usual`, and if there is none, those of `flags`, the
    /// columns that hold 0 and 1.
    ///
    /// # Errors
    /// If there are no such columns, saying which there are, or `flags` fails.
    pub fn find(
        described: &Described,
        named: Option<&str>,
        usual: &str,
        separator: Option<&str>,
        flags: impl FnOnce() -> Result<Vec<String>>,
    ) -> Result<Self> {
        let column = named.unwrap_or(usual);
        match (described.holds(column), separator) {
            // A column without any value may be called anything; what holds lists or numbers does not need to be taken apart.
            (Some(Holds::Texts | Holds::Other), Some(separator)) => {
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
                        return Err(Error::request(described.lacks(part)));
                    }
                    // Who names a column twice means it once.
                    columns.extend(found.into_iter().filter(|name| !columns.contains(name)).collect::<Vec<_>>());
                }
                columns
            }
            None => flags()?,
        };
        if columns.is_empty() {
            let text = format!("there is no column `{usual}`; FILE:COLUMN names another: {}", described.names());
            return Err(Error::request(text));
        }
        Ok(Self::Indicators(columns))
    }

    /// Which columns of the file they are.
    pub(super) fn named(&self) -> Named {
        match self {
            Self::Sets(column) | Self::Delimited { column, .. } => Named::One(column.clone()),
            Self::Indicators(columns) => Named::Several(columns.clone()),
        }
    }

    /// What stands between the labels of one text.
    pub(super) fn split(&self) -> Option<&str> {
        match self {
            Self::Delimited { separator, .. } => Some(separator),
            _ => None,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ColumnInfo;

    fn described(columns: &[(&str, Holds)]) -> Described {
        let columns = columns.iter().map(|(name, holds)| ColumnInfo { name: (*name).to_owned(), holds: *holds });
        Described { rows: None, columns: columns.collect() }
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
        let find =
            |named, separator| Labels::find(&file, named, "labels", separator, || Ok(vec!["age".to_owned()]));
        let spk = Labels::Indicators(vec!["spk_a".to_owned(), "spk_b".to_owned()]);
        assert_eq!(find(Some("spk_*"), None).unwrap(), spk);
        assert_eq!(find(Some("spk_a,spk_b"), None).unwrap(), spk);
        assert_eq!(find(Some("who"), None).unwrap(), Labels::Sets("who".to_owned()));
        assert!(matches!(find(Some("who"), Some(";")).unwrap(), Labels::Delimited { .. }));
        assert_eq!(find(None, None).unwrap(), Labels::Indicators(vec!["age".to_owned()]), "what holds 0 and 1");
        let nothing = Labels::find(&file, None, "labels", None, || Ok(Vec::new())).unwrap_err().to_string();
        assert!(
            nothing.starts_with("there is no column `labels`; FILE:COLUMN names another: `id`, "),
            "{nothing}"
        );
        let error = find(Some("spk_a,spk_c"), None).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no column `spk_c`; did you mean `spk_a`? available: `id`, `spk_a`"),
            "{error}"
        );
    }
}
