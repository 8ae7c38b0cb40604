//! What the source calls the columns that are read.

use super::Origin;

/// Which columns of a source are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// The column of this name; if there is none, all that it stands for as a pattern, such as `d*`.
    One(String),
    /// All of these columns and patterns: a number each, or 0 and 1 for each label.
    Several(Vec<String>),
}

impl Named {
    /// As somebody writes it on a command line: with commas between several.
    pub fn from_option(text: &str) -> Self {
        match text.contains(',') {
            true => Self::Several(text.split(',').map(|name| name.trim().to_owned()).collect()),
            false => Self::One(text.to_owned()),
        }
    }

    /// Whether it can only be understood by somebody who knows which columns there are.
    pub(crate) fn has_patterns(&self) -> bool {
        self.names().iter().any(|name| name.contains(['*', '?', '[']))
    }

    /// All names and patterns.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

impl std::fmt::Display for Named {
    /// As it is written on a command line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.names().join(","))
    }
}

/// `columns`: by key, the source's names.
#[derive(Debug, Default)]
pub(crate) struct Columns(pub(crate) Vec<(&'static str, (Named, Origin))>);

impl Columns {
    /// What is named under a key, and where.
    pub(crate) fn get(&self, key: &str) -> Option<&(Named, Origin)> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, named)| named)
    }
}
