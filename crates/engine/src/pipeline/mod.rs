//! The pipeline file: parsed, typed, with the place of everything that can turn out to be wrong later.

mod columns;
pub(crate) mod document;
pub(crate) mod grid;
pub mod keys;
pub(crate) mod pins;
mod read;
mod select;
pub mod selection;
mod variables;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use compflow_api::Space;

pub(crate) use self::columns::Columns;
pub use self::columns::Named;
use self::document::{Document, Node};
pub use self::pins::Pins;
pub(crate) use self::variables::STDIN;
pub use self::variables::Variables;
use crate::error::{Error, Result};
use crate::files::{hash_parts, plain, read_all, read_file};
pub use crate::problem::{Origin, Problem, Source};

/// Bytes that a pipeline file may have.
const LARGEST: u64 = 64 << 20;

/// What is laid over a pipeline file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `path.to.key=value`, in their order.
    pub set: Vec<String>,
    /// Names of clusterers or data; empty means all.
    pub only: Vec<String>,
    /// What `${NAME}` stands for in the paths of data.
    pub variables: Variables,
}

/// A pipeline file that could be parsed.
///
/// It may still be wrong: [`problems`](Self::problems) has what is wrong with its keys and values. They are reported by
/// [`plan`](Self::plan), together with what components refuse, so that a user sees everything at once.
#[derive(Debug)]
pub struct Pipeline {
    /// The file, as it was named.
    pub(crate) file: PathBuf,
    /// Paths in the pipeline are relative to this folder.
    pub(crate) folder: PathBuf,
    pub(crate) document: Document,
    pub(crate) contents: Contents,
    /// What the user wants of it; empty means all.
    pub(crate) only: Vec<String>,
    pub(crate) variables: Variables,
    pub(crate) problems: Vec<Problem>,
}

impl Pipeline {
    /// Reads a pipeline file.
    ///
    /// # Errors
    /// If the file cannot be read, or is no TOML: all syntax errors at once.
    pub fn load(file: &Path, options: &Options) -> Result<Self> {
        let name = file.display().to_string();
        let text = text_of(&name, read_file(file, LARGEST))?;
        Self::parse(&name, text, file.to_owned(), folder_of(file), options)
    }

    /// Reads a pipeline from something that is no file, to its end. Its paths are relative to `folder`, and messages call it `name`.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn from_reader(name: &str, input: impl io::Read, folder: &Path, options: &Options) -> Result<Self> {
        Self::from_text(name, text_of(name, read_all(input, LARGEST))?, folder, options)
    }

    /// A pipeline that is no file: its text. Its paths are relative to `folder`, and messages call it `name`.
    ///
    /// # Errors
    /// If it is no TOML: all syntax errors at once.
    pub fn from_text(name: &str, text: String, folder: &Path, options: &Options) -> Result<Self> {
        Self::parse(name, text, folder.join("pipeline.toml"), folder.to_owned(), options)
    }

    fn parse(name: &str, text: String, file: PathBuf, folder: PathBuf, options: &Options) -> Result<Self> {
        let mut problems = Vec::new();
        let source = Source { name: name.to_owned(), text };
        let document = Document::parse(source, &options.set, &mut problems);
        if !problems.is_empty() {
            return Err(Error::problems(problems, &document.sources));
        }
        Ok(Self::of_document(document, file, folder, options))
    }

    /// Whether some of its data is on standard input: its path is `-`.
    pub fn reads_stdin(&self) -> bool {
        self.contents.data.iter().flat_map(|data| &data.path).any(|(path, _)| path == STDIN)
    }

    /// The environment variables that its paths name and that have a value, with these.
    pub fn named_variables(&self) -> BTreeMap<String, String> {
        let paths = self.contents.data.iter().flat_map(|data| &data.path);
        paths.flat_map(|(path, _)| self.variables.named_in(path)).collect()
    }

    /// Takes data from standard input, all of it.
    ///
    /// # Errors
    /// If it cannot be read, or not be kept in a temporary file.
    pub fn take_stdin(&mut self, input: &mut dyn io::Read) -> Result<()> {
        let failed = |error: io::Error| Error::run(format!("standard input cannot be read: {}", plain(&error)));
        let mut file = tempfile::Builder::new().prefix("standard-input-").tempfile().map_err(failed)?;
        io::copy(input, file.as_file_mut()).map_err(failed)?;
        self.variables = self.variables.with_stdin(file.into_temp_path());
        Ok(())
    }

    /// A pipeline that is no file: what one would say, as JSON. Its paths are relative to `folder`.
    ///
    /// # Errors
    /// If an option cannot be laid over it.
    pub fn from_json(pipeline: &serde_json::Value, folder: &Path, options: &Options) -> Result<Self> {
        let mut problems = Vec::new();
        let document = Document::from_json(pipeline, &options.set, &mut problems);
        if !problems.is_empty() {
            return Err(Error::problems(problems, &document.sources));
        }
        Ok(Self::of_document(document, folder.join("pipeline.toml"), folder.to_owned(), options))
    }

    /// What a document says. Its name is that of the file, if it has none of its own.
    fn of_document(document: Document, file: PathBuf, folder: PathBuf, options: &Options) -> Self {
        let mut problems = Vec::new();
        let stem = file.file_stem().map_or_else(|| "pipeline".into(), |stem| stem.to_string_lossy());
        let mut contents = read::read(&document, &stem, &mut problems);
        select::select(&mut contents, &options.only, &mut problems);
        let (only, variables) = (options.only.clone(), options.variables.clone());
        Self { file, folder, document, contents, only, variables, problems }
    }

    /// A pipeline that was right when it was recorded, with all of its parts.
    pub(crate) fn recorded(pipeline: &serde_json::Value, name: &str, folder: &Path, variables: Variables) -> Self {
        let document = Document { root: Node::from_json(pipeline), sources: Vec::new() };
        let contents = read::read(&document, name, &mut Vec::new());
        Self {
            file: PathBuf::new(),
            folder: folder.to_owned(),
            document,
            contents,
            only: Vec::new(),
            variables,
            problems: Vec::new(),
        }
    }

    /// Its name, which becomes that of a results folder.
    pub fn name(&self) -> &str {
        &self.contents.name
    }

    /// The content that libraries must have.
    pub fn pins(&self) -> Pins {
        self.contents.pins.iter().map(|pin| (pin.library.clone(), pin.hash.clone())).collect()
    }

    /// Changes whenever what is asked for does: the file, what is laid over it, and what is wanted of it.
    pub(crate) fn key(&self) -> String {
        key(&self.document.root.to_json(&mut Vec::new()), &self.only)
    }

    /// What is wrong with its keys and values.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// The key of a pipeline with everything laid over it.
pub(crate) fn key(resolved: &serde_json::Value, only: &[String]) -> String {
    let resolved = resolved.to_string();
    hash_parts(std::iter::once(&resolved).chain(only).map(String::as_bytes))
}

/// What was read as text.
fn text_of(name: &str, read: io::Result<Vec<u8>>) -> Result<String> {
    let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into()));
    text.map_err(|error| Error::request(format!("{name}: {}", plain(&error))))
}

/// The folder of a file; a bare name is in the current one.
fn folder_of(file: &Path) -> PathBuf {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    file.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// What a pipeline file says.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) degree: usize,
    pub(crate) space: Space,
    /// Whether memberships are kept, and written to a table.
    pub(crate) memberships: bool,
    /// Whether cells run in processes of their own, if it says so.
    pub(crate) isolate: Option<bool>,
    /// How long a cell may take.
    pub(crate) timeout: Option<Duration>,
    pub(crate) composer: Option<Use>,
    pub(crate) data: Vec<Data>,
    pub(crate) clusterers: Vec<Clusterer>,
    pub(crate) evaluators: Vec<Use>,
    pub(crate) tune: Option<Tune>,
    pub(crate) pins: Vec<Pin>,
}

/// A component and its parameters.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) component: String,
    /// Where the component is named.
    pub(crate) origin: Origin,
    /// A table; may hold grids.
    pub(crate) params: Node,
}

/// `[[data]]`.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) name: String,
    pub(crate) loader: Use,
    pub(crate) path: Option<(String, Origin)>,
    pub(crate) columns: Option<Columns>,
    /// What stands between the labels of one text.
    pub(crate) split: Option<String>,
    /// Whether it only settles grids.
    pub(crate) tunes: bool,
    pub(crate) origin: Origin,
}

/// `[[clusterer]]`.
#[derive(Debug)]
pub(crate) struct Clusterer {
    pub(crate) name: String,
    pub(crate) component: Use,
}

/// `[tune]`.
#[derive(Debug)]
pub(crate) struct Tune {
    pub(crate) data: (String, Origin),
    pub(crate) metric: (String, Origin),
}

/// An entry of `[plugins] require`.
#[derive(Debug)]
pub(crate) struct Pin {
    /// The library: `cap` for `libcompflow_cap.so`.
    pub(crate) library: String,
    /// `blake3:` and the hash of the file's content.
    pub(crate) hash: String,
    pub(crate) origin: Origin,
}
