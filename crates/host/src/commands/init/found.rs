//! What is in a file: columns, sizes, lengths of vectors, labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use compflow_api::plural;
use compflow_engine::Cancel;
use compflow_engine::causes::Cause;
use compflow_engine::data::{
    Dataset, Described, ENDINGS, Holds, SEPARATORS, Source, Survey, Trial, data_files, loader_of,
};
use compflow_engine::pipeline::Named;
use compflow_engine::pipeline::keys::SEGMENT_KEYS;

use super::columns::{Chosen, choose, could_be_flags, could_be_labels};
use super::weights;
use crate::cli::InitArgs;
use crate::failure::Failure;

/// So many numbers of the embeddings are looked at.
const NUMBERS_READ: usize = 50_000_000;
/// Labels, trials and identifiers of so many rows are looked at.
const ROWS_READ: usize = 20_000_000;

/// A data set, as far as it was looked at.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    /// As the user called it.
    given: String,
    /// From the pipeline's folder, with `/` between folders.
    pub(super) path: String,
    pub(super) loader: &'static str,
    /// Where the labels of an npy file are.
    pub(super) labels_file: Option<String>,
    pub(super) columns: Chosen,
    /// What stands between the labels of one text.
    pub(super) split: Option<String>,
    /// How many files it is in.
    files: usize,
    /// How many rows, if all were seen or the file says so.
    rows: Option<u64>,
    /// Its first rows.
    pub(super) data: Dataset,
    /// The labels of all rows, if `data` has not all.
    whole: Option<Dataset>,
    pub(super) notes: Vec<String>,
    /// Safetensors files beside the data, from the pipeline's folder: one may be a composer's weights.
    pub(super) weights: Vec<String>,
}

/// What the labels of a data set are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LabelCounts {
    /// Most members of a set.
    pub(super) largest: usize,
    /// Most classes in a trial.
    pub(super) classes: usize,
    /// Most different sets in a trial, the empty one left out.
    pub(super) sets: usize,
    /// How many of them more than one example has.
    pub(super) repeated: usize,
    /// Whether some examples are in no class.
    pub(super) empty: bool,
}

/// What labels are like that only some examples have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeedCounts {
    /// How many examples have one.
    pub(super) known: usize,
    /// Most names in a trial.
    pub(super) names: usize,
    /// Most members of a set.
    pub(super) largest: usize,
}

/// Lengths of vectors: 5 % are shorter than the first, 5 % longer than the second.
pub(super) type Lengths = (f64, f64);

impl Found {
    /// Looks at a file, or at those that a pattern stands for, which must be like the first.
    pub(super) fn look(survey: &Survey, given: &str, folder: &Path, args: &InitArgs) -> Result<Self, Failure> {
        let fail = |text: String| Failure::request(format!("{given}: {text}"));
        let files = data_files(Path::new(given), None, &Cancel::new()).map_err(Failure::request)?;
        let path = files.first().ok_or_else(|| fail("there is no such file".to_owned()))?.clone();
        let several = !Path::new(given).is_file();
        let loader = loader_of(&path).ok_or_else(|| {
            fail(format!("init looks at {ENDINGS} files; `compflow plugins` lists other loaders"))
        })?;
        let relative = relative(&path, folder);
        let labels_file = (loader == "npy").then(|| labels_beside(&path, &relative)).flatten();
        let params = match &labels_file {
            Some(labels) => serde_json::json!({ "labels": labels }),
            None => serde_json::json!({}),
        };
        let split = args.split.as_deref();
        let source = Source { path: &path, loader, params: &params, split, about: given };
        let described = survey.describe(source)?;
        let truth = args.truth.as_deref();
        let chosen = choose(&described, args.embedding.as_deref(), truth);
        let mut columns = match chosen {
            Err(error) if args.embedding.is_none() => {
                let texts = vectors_in_texts(survey, source, &described);
                match &texts[..] {
                    [(only, _)] => {
                        let mut columns = choose(&described, Some(only), truth).map_err(fail)?;
                        columns
                            .notes
                            .insert(0, format!("the texts of the column `{only}` are taken for embeddings"));
                        columns
                    }
                    // `0,5` could be two numbers, and is rather one.
                    [(first, 2), (_, 2), ..] => {
                        let text = "seem to be numbers with decimal commas, which are not read: write the file with points, as in 0.5";
                        return Err(fail(format!("{error}; the texts of `{first}` and others {text}")));
                    }
                    [(first, _), ..] => {
                        return Err(fail(format!("{error}; --embedding {first} takes the texts of that column")));
                    }
                    [] => return Err(fail(error)),
                }
            }
            chosen => chosen.map_err(fail)?,
        };
        if let Some(separator) = split
            && columns.truth.is_none()
            && columns.seed.is_none()
        {
            columns.take_truth(joined_texts(survey, source, &described), separator, truth).map_err(fail)?;
        }
        if columns.truth.is_none() && truth.is_none() {
            let columns_of_flags = flags_in_numbers(survey, source, &described, &columns);
            columns.suggest_flags(&columns_of_flags);
        }
        columns.note_misfits(&described, truth.is_some());
        let length = match &columns.embedding {
            Named::One(name) => described.holds(name).and_then(compflow_engine::data::Holds::length),
            Named::Several(names) => Some(names.len()),
        };
        let limit = (NUMBERS_READ / length.unwrap_or(512).max(1)).max(1000);
        let Read { data, whole, split, mut notes } = read(survey, source, &files, &mut columns, limit)?;
        notes.splice(0..0, std::mem::take(&mut columns.notes));
        let joined =
            data.classes.iter().find_map(|name| Some((name, name.chars().find(|c| SEPARATORS.contains(c))?)));
        if let Some((text, separator)) = joined {
            notes.push(format!(
                "`{text}` is taken for one label; if it is several, --split '{separator}' takes it apart"
            ));
        }
        if let Some(column) = columns.seed.take_if(|_| data.trials.iter().all(|trial| trial.seeds.is_none())) {
            notes.push(format!("the column `{column}` is left out: it is null in all examples"));
        }
        let seen: usize = data.trials.iter().map(Trial::size).sum();
        let whole_rows = whole.as_ref().map(|whole| whole.trials.iter().map(Trial::size).sum::<usize>());
        let known = match (seen < limit, whole_rows) {
            (true, _) => Some(seen),
            (false, Some(rows)) if rows < ROWS_READ => Some(rows),
            _ => None,
        };
        let described = described.rows.filter(|_| files.len() == 1);
        let rows = described.or(known.map(|rows| rows as u64));
        let (stem, relative) = if Path::new(given).is_dir() {
            let folder_given = Path::new(given).canonicalize().unwrap_or_default();
            let name = folder_given.file_name().map(|name| name.to_string_lossy().into_owned());
            (name.unwrap_or_default(), self::relative(&folder_given, folder))
        } else if several {
            // The pattern, in the place of the file's name.
            let pattern = Path::new(given).file_name().map(|name| name.to_string_lossy().into_owned());
            let pattern = pattern.unwrap_or_default();
            let parent = Path::new(given).parent().filter(|parent| *parent != Path::new(""));
            let stem =
                pattern.split(['*', '?', '[']).next().unwrap_or_default().trim_matches(['-', '_', '.']).to_owned();
            let within = match parent {
                // Patterns of folders are left as they are.
                Some(parent) if !parent.is_dir() => std::path::absolute(given).unwrap_or_default(),
                parent => parent.unwrap_or(Path::new(".")).canonicalize().unwrap_or_default().join(&pattern),
            };
            (stem, self::relative(&within, folder))
        } else {
            (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), relative)
        };
        if relative.contains("${") {
            let text = "its path has `${` in it, which stands for a variable in a pipeline: rename it, or move it to another folder";
            return Err(fail(text.to_owned()));
        }
        let name = usable(&stem);
        let weights = weights::beside(&path, data.dim).iter().map(|file| self::relative(file, folder)).collect();
        Ok(Self {
            name,
            given: given.to_owned(),
            path: relative,
            loader,
            labels_file,
            columns,
            split,
            files: files.len(),
            rows,
            data,
            whole,
            notes,
            weights,
        })
    }

    /// Most examples of a trial.
    pub(super) fn n(&self) -> usize {
        let seen = self.data.trials.iter().map(Trial::size).max().unwrap_or(0);
        match (self.rows, &self.columns.trial) {
            (Some(rows), None) => usize::try_from(rows).unwrap_or(usize::MAX).max(seen),
            _ => seen,
        }
    }

    pub(super) fn labels(&self) -> Option<LabelCounts> {
        let mut counts = LabelCounts { largest: 0, classes: 0, sets: 0, repeated: 0, empty: false };
        for trial in &self.whole.as_ref().unwrap_or(&self.data).trials {
            let mut sets: BTreeMap<&[u32], usize> = BTreeMap::new();
            for set in trial.truth.as_ref()?.iter() {
                *sets.entry(set).or_default() += 1;
            }
            counts.empty |= sets.remove(&[][..]).is_some();
            let classes: BTreeSet<u32> = sets.keys().flat_map(|set| set.iter().copied()).collect();
            counts.largest = counts.largest.max(sets.keys().map(|set| set.len()).max().unwrap_or(0));
            counts.classes = counts.classes.max(classes.len());
            counts.sets = counts.sets.max(sets.len());
            counts.repeated = counts.repeated.max(sets.values().filter(|examples| **examples > 1).count());
        }
        Some(counts)
    }

    pub(super) fn seeds(&self) -> Option<SeedCounts> {
        let seeds = || self.data.trials.iter().filter_map(|trial| trial.seeds.as_ref());
        let sizes = || seeds().flat_map(|seeds| seeds.sets.iter()).map(<[u32]>::len).filter(|size| *size > 0);
        Some(SeedCounts {
            known: sizes().count(),
            names: seeds().map(|seeds| seeds.names.len()).max()?,
            largest: sizes().max()?,
        })
    }

    pub(super) fn lengths(&self) -> Lengths {
        let rows = self.data.trials.iter().flat_map(|trial| trial.embeddings.chunks_exact(self.data.dim.max(1)));
        let square = |row: &[f32]| row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
        let mut lengths: Vec<f64> = rows.map(|row| square(row).sqrt()).collect();
        lengths.sort_by(f64::total_cmp);
        let at = |share: f64| lengths.get((share * (lengths.len().max(1) - 1) as f64) as usize).copied();
        (at(0.05).unwrap_or(0.0), at(0.95).unwrap_or(0.0))
    }

    /// What was found, as a line.
    pub(super) fn summary(&self) -> String {
        format!("{}: found {}\n", self.given, self.facts())
    }

    /// What was found: rows, trials, labels and lengths.
    pub(super) fn facts(&self) -> String {
        let seen: usize = self.data.trials.iter().map(Trial::size).sum();
        let mut parts = Vec::new();
        let of = if self.files > 1 { format!(" in {} files", self.files) } else { String::new() };
        match self.rows {
            Some(rows) if rows > seen as u64 => {
                parts.push(format!(
                    "{} × {}{of}, of which the first {seen} were looked at",
                    plural(rows as usize, "row"),
                    self.data.dim
                ));
            }
            Some(rows) => parts.push(format!("{} × {}{of}", plural(rows as usize, "row"), self.data.dim)),
            None => parts.push(format!("{} × {} looked at{of}", plural(seen, "row"), self.data.dim)),
        }
        if self.columns.trial.is_some() {
            let count = self.data.trials.len();
            let sizes: BTreeSet<usize> = self.data.trials.iter().map(Trial::size).collect();
            let sizes = match (sizes.first(), sizes.last()) {
                (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
                (Some(size), _) => size.to_string(),
                _ => String::new(),
            };
            parts.push(format!("{} of {sizes}", plural(count, "trial")));
        }
        parts.extend(match self.labels() {
            None if self.columns.seed.is_some() => None,
            None => Some("no labels".to_owned()),
            Some(counts) => {
                let column = self.columns.truth.as_ref().map(Named::to_string).unwrap_or_default();
                let all = self.whole.as_ref().unwrap_or(&self.data).classes.len();
                let classes = if all == 1 { "1 class".to_owned() } else { format!("{all} classes") };
                let of = if counts.classes == all {
                    classes
                } else {
                    format!("{classes}, at most {} of them in a trial", counts.classes)
                };
                Some(match counts.largest {
                    0 | 1 => format!("`{column}` has one label each, of {of}"),
                    largest => format!("`{column}` has up to {largest} labels each, of {of}"),
                })
            }
        });
        if let (Some(seeds), Some(column)) = (self.seeds(), &self.columns.seed) {
            let names = if seeds.names == 1 { "one name".to_owned() } else { format!("{} names", seeds.names) };
            parts.push(format!("`{column}` has labels of {}, with {names}", plural(seeds.known, "row")));
        }
        let (short, long) = self.lengths();
        parts.push(format!("most vectors are {} to {} long", number(short), number(long)));
        parts.join(", ")
    }
}

/// Three digits.
pub(super) fn number(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize };
    format!("{value:.digits$}")
}

/// Reads the first rows, and of the others all but the embeddings. Columns that are no use in a pipeline are left out, with a
/// note on why.
fn read(
    survey: &Survey,
    source: Source<'_>,
    files: &[PathBuf],
    chosen: &mut Chosen,
    limit: usize,
) -> Result<Read, Failure> {
    let mut notes = Vec::new();
    let mut split = source.split.map(str::to_owned);
    loop {
        let one = |column: &Option<String>| column.clone().map(Named::One);
        let columns = [
            ("embedding", Some(chosen.embedding.clone())),
            ("truth", chosen.truth.clone()),
            ("seed", one(&chosen.seed)),
            ("trial", one(&chosen.trial)),
            ("id", one(&chosen.id)),
        ];
        let segments = chosen.segments.iter().flat_map(|names| SEGMENT_KEYS.iter().zip(names));
        let segments = segments.map(|(key, name)| (*key, Some(Named::One(name.clone()))));
        let columns: Vec<(&str, Named)> =
            columns.into_iter().chain(segments).filter_map(|(name, column)| Some((name, column?))).collect();
        let source = Source { split: split.as_deref(), ..source };
        let both = survey.read(source, files, &columns, limit).and_then(|data| {
            let size: usize = data.trials.iter().map(Trial::size).sum();
            let others: Vec<(&str, Named)> =
                columns.iter().filter(|(name, _)| !["embedding", "seed"].contains(name)).cloned().collect();
            let more = size >= limit && !others.is_empty();
            Ok((data, more.then(|| survey.read(source, files, &others, ROWS_READ)).transpose()?))
        });
        let error = match both {
            Ok((data, whole)) => {
                // Without labels there is nothing to take apart.
                let split = split.filter(|_| chosen.truth.is_some() || chosen.seed.is_some());
                return Ok(Read { data, whole, split, notes });
            }
            Err(error) => error,
        };
        let Failure::Data(problem) = &error else { return Err(error) };
        // Labels that some examples lack are no truth to compare with, but may be what is known beforehand.
        if problem.cause == Cause::LabelMissing
            && chosen.seed.is_none()
            && let Some(Named::One(column)) = &chosen.truth
        {
            chosen.seed = Some(column.clone());
            chosen.truth = None;
            continue;
        }
        if problem.cause == Cause::LabelText
            && split.is_none()
            && let Some((_, help)) = problem.help.as_deref().and_then(|help| help.split_once("split = \""))
            && let Some((separator, _)) = help.split_once('"')
        {
            notes.push(format!("texts of labels are taken apart at `{separator}`"));
            split = Some(separator.to_owned());
            continue;
        }
        let left_out = match problem.cause {
            Cause::TrialNumber => chosen.trial.take(),
            Cause::LabelMissing | Cause::LabelKind | Cause::LabelText => match chosen.truth.take() {
                Some(truth) => Some(truth.to_string()),
                None => chosen.seed.take(),
            },
            Cause::Seeds => chosen.seed.take(),
            Cause::Identifier => chosen.id.take(),
            // A recording that is missing has no cause of its own.
            Cause::Segments | Cause::Data => chosen.segments.take().map(|names| names.join("`, `")),
            _ => None,
        };
        match left_out {
            Some(column) => {
                let (what, verb) = if column.contains("`, `") { ("columns", "are") } else { ("column", "is") };
                notes.push(format!("the {what} `{column}` {verb} left out: {error}"));
            }
            None => return Err(error),
        }
    }
}

/// The columns of texts whose first rows are several numbers, and how many.
fn vectors_in_texts(survey: &Survey, source: Source<'_>, described: &Described) -> Vec<(String, usize)> {
    let texts = described.columns.iter().filter(|column| column.holds == Holds::Texts);
    let dim = |name: &str| {
        let columns = [("embedding", Named::One(name.to_owned()))];
        let read = survey.read(source, &[source.path.to_owned()], &columns, 10);
        read.ok().map(|data| data.dim).filter(|dim| *dim > 1)
    };
    texts.filter_map(|column| Some((column.name.clone(), dim(&column.name)?))).collect()
}

/// Whether a column reads as labels, as far as its first rows tell, and these are as they should be.
fn reads_as(survey: &Survey, source: Source<'_>, truth: Named, are: impl Fn(&Trial) -> bool) -> bool {
    let read = survey.read(source, &[source.path.to_owned()], &[("truth", truth)], 1000);
    read.is_ok_and(|data| data.trials.iter().any(are))
}

/// The columns of texts that are several labels when they are taken apart.
fn joined_texts(survey: &Survey, source: Source<'_>, described: &Described) -> Vec<String> {
    let texts = could_be_labels(described).filter(|column| column.holds == Holds::Texts);
    let several = |trial: &Trial| trial.truth.as_ref().is_some_and(|truth| truth.iter().any(|set| set.len() > 1));
    let joined = texts.filter(|column| reads_as(survey, source, Named::One(column.name.clone()), several));
    joined.map(|column| column.name.clone()).collect()
}

/// The columns of numbers that are 0 or 1, if they are no embedding.
fn flags_in_numbers(survey: &Survey, source: Source<'_>, described: &Described, chosen: &Chosen) -> Vec<String> {
    let numbers = could_be_flags(described).filter(|column| !chosen.is_embedding(&column.name));
    let flag = |name: &str| reads_as(survey, source, Named::Several(vec![name.to_owned()]), |_| true);
    numbers.filter(|column| flag(&column.name)).map(|column| column.name.clone()).collect()
}

/// What was read.
struct Read {
    data: Dataset,
    /// All rows without embeddings, if there are more.
    whole: Option<Dataset>,
    /// What stands between the labels of one text.
    split: Option<String>,
    notes: Vec<String>,
}

/// A name of a file as the name of a run, which becomes a folder's.
pub(super) fn usable(stem: &str) -> String {
    let name = stem.trim_start_matches('.').replace(|c: char| c == '\\' || c.is_control(), "-");
    if name.is_empty() { "data".to_owned() } else { name }
}

/// The way from a folder to a file, both without links in them.
fn relative(file: &Path, folder: &Path) -> String {
    let common = file.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    // Another drive has nothing in common.
    if common == 0 {
        return file.display().to_string();
    }
    let up = folder.components().skip(common).map(|_| "..".to_owned());
    let down = file.components().skip(common).map(|part| match part {
        Component::Normal(name) => name.to_string_lossy().into_owned(),
        other => other.as_os_str().to_string_lossy().into_owned(),
    });
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// The labels of an npy file, if they lie beside it under a usual name, as the loader's parameter has it.
fn labels_beside(path: &Path, relative: &str) -> Option<String> {
    let stem = path.file_stem()?.to_string_lossy();
    let ending = ["-labels.npy", "_labels.npy", ".labels.npy"]
        .into_iter()
        .find(|ending| path.with_file_name(format!("{stem}{ending}")).is_file())?;
    let folder = relative.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    Some(format!("{folder}{{stem}}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_a_file_is_relative() {
        let way = |file: &str, folder: &str| relative(Path::new(file), Path::new(folder));
        assert_eq!(way("/a/b/c.parquet", "/a/b"), "c.parquet");
        assert_eq!(way("/a/data/c.parquet", "/a/b/d"), "../../data/c.parquet");
    }

    #[test]
    fn names_of_runs_are_such_as_pipelines_take() {
        assert_eq!(
            [".hidden", "a\\b", "two\nlines", "", "über 1.v2"].map(usable),
            ["hidden", "a-b", "two-lines", "data", "über 1.v2"]
        );
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.0, 0.01234, 1.0, 73.566, 1234.5].map(number), ["0", "0.0123", "1.00", "73.6", "1234"]);
    }
}
