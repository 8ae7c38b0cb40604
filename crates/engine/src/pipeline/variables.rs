//! What stands for something else in paths: `${NAME}`, and `-`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempPath;

/// The path that stands for standard input.
pub(crate) const STDIN: &str = "-";

/// Looks names up: what `${NAME}` stands for. Without a value unless made with [`new`](Self::new).
#[derive(Clone)]
pub struct Variables {
    value: Arc<Lookup>,
    /// What stood on standard input, which can be read only once, as a file that lives as long as this.
    stdin: Option<Arc<TempPath>>,
}

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Variables {
    /// Names are looked up with this function.
    pub fn new(value: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { value: Arc::new(value), stdin: None }
    }

    /// With what stood on standard input.
    pub(super) fn with_stdin(&self, file: TempPath) -> Self {
        Self { value: self.value.clone(), stdin: Some(Arc::new(file)) }
    }

    /// The file with what stood on standard input.
    pub(crate) fn stdin(&self) -> Option<&Path> {
        self.stdin.as_ref().map(|file| &***file)
    }

    /// A text with every `${NAME}` replaced; or the name of the first that has no value.
    pub(crate) fn replace<'t>(&self, text: &'t str) -> Result<String, &'t str> {
        let (mut replaced, mut left) = (String::new(), text);
        while let Some((before, name, after)) = next(left) {
            replaced.push_str(before);
            replaced.push_str(&(self.value)(name).ok_or(name)?);
            left = after;
        }
        Ok(replaced + left)
    }

    /// What every `${NAME}` in a text is called and stands for, but for those without a value.
    pub(super) fn named_in(&self, text: &str) -> Vec<(String, String)> {
        let (mut named, mut left) = (Vec::new(), text);
        while let Some((_, name, after)) = next(left) {
            named.extend((self.value)(name).map(|value| (name.to_owned(), value)));
            left = after;
        }
        named
    }
}

/// The next `${NAME}` of a text: what stands before it, the name, and what stands behind it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

impl Default for Variables {
    fn default() -> Self {
        Self::new(|_| None)
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Variables")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_refer_to_variables() {
        let variables = Variables::new(|name| (name == "DATA").then(|| "/there".to_owned()));
        assert_eq!(variables.replace("${DATA}/a-${DATA}.parquet"), Ok("/there/a-/there.parquet".to_owned()));
        assert_eq!(variables.replace("$DATA/${a"), Ok("$DATA/${a".to_owned()));
        assert_eq!(variables.replace("${DATA}/${NONE}"), Err("NONE"));
        let named = variables.named_in("${DATA}/${NONE}/$HOME-${a");
        assert_eq!(named, [("DATA".to_owned(), "/there".to_owned())]);
    }
}
