//! Where something is written once components have been made.

use std::path::{Path, PathBuf};

use crate::terminal::stdout::real;

/// A file or folder that the user has named. A component may go to another folder while it is made or asked, and what the user
/// named is relative to where the user is: so this is made before.
pub(crate) struct Place {
    /// Where it is, wherever a component goes.
    pub(crate) path: PathBuf,
    /// What messages call it.
    pub(crate) shown: PathBuf,
}

impl Place {
    pub(crate) fn new(shown: &Path) -> Self {
        let path = real(shown);
        Self { path: std::path::absolute(&path).unwrap_or(path), shown: shown.to_owned() }
    }

    /// What is called like that in it.
    pub(crate) fn join(&self, name: &str) -> Self {
        Self { path: self.path.join(name), shown: self.shown.join(name) }
    }
}
