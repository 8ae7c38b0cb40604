//! The causes of what is refused or warned of: a code to look up, what it means, an example and the remedy. The one table of
//! them; `compflow explain` prints it.

/// A cause as it is explained.
#[derive(Debug, Clone, Copy)]
pub struct Explanation {
    /// What it is called in messages: `C012`.
    pub code: &'static str,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// What that means, how it comes about, and what would do.
    pub text: &'static str,
}

macro_rules! causes {
    ($($name:ident $code:literal $title:literal $text:literal)*) => {
        /// Why something is refused or warned of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Cause {
            $(#[doc = $title] $name,)*
        }

        impl Cause {
            /// All of them, by code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// What it means, and what would do.
            pub fn explanation(self) -> Explanation {
                match self {
                    $(Self::$name => Explanation { code: $code, title: $title, text: $text.trim_ascii() },)*
                }
            }

            #[cfg(test)]
            fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

impl Cause {
    /// What it is called in messages: `C012`.
    pub fn code(self) -> &'static str {
        self.explanation().code
    }

    /// The cause that is called so, in upper or lower case.
    pub fn find(code: &str) -> Option<Self> {
        Self::ALL.iter().find(|cause| cause.code().eq_ignore_ascii_case(code.trim())).copied()
    }
}

causes! {
Syntax "C001" "the file is no TOML" r#"
A pipeline is a TOML file, and this one cannot be parsed. Most often a quote or bracket is not closed, a string has no
quotes, or a table in a list is written with one bracket.

    name = omniglot            # wrong: strings have quotes
    name = "omniglot"

    [data]                     # wrong: there may be several, so it is a list
    [[data]]
"#
UnknownKey "C002" "a key that means nothing here" r#"
Every table of a pipeline has its own keys, and others are refused rather than ignored: a key with a typing error would
leave the default in force. Parameters of a component go into its `params`.

    [[clusterer]]
    use = "kmeans"
    k   = 5                    # wrong
    params = { k = 5 }

docs/pipeline.md lists all keys; `compflow schema` makes an editor complete them.
"#
WrongValue "C003" "a value of the wrong kind, or one that is not allowed" r#"
The key is right and its value is not: a text where a number is needed, a number that is too small, a word that is none of
the choices. The message says what was found and what would do.

    degree = "two"             # wrong
    degree = 2
"#
Incomplete "C004" "something that a pipeline needs is not there" r#"
A pipeline needs at least one [[data]] and one [[clusterer]]; every data set a `name` and a `loader`, every component its
name in `use`, and [tune] both `data` and `metric`. `compflow init FILE` writes a complete one for your data.

    [[clusterer]]
    name = "mine"              # wrong: which algorithm?
    use  = "ckm"
"#
UsedTwice "C005" "a name that is used twice" r#"
The tables of a run join by the names of data and clusterers, so two must not share one. The same goes for two evaluators
that report the same metric, and for the points of a grid, which are called by the clusterer's name and what is chosen: with
`k = { grid = [5, 9] }` the clusterer `KM` becomes `KM k=5` and `KM k=9`.

    [[clusterer]]
    name = "k=5"
    use  = "kmeans"
    params = { k = 5 }

    [[clusterer]]
    name = "k=9"               # not "k=5" again, and not left to the default
    use  = "kmeans"
    params = { k = 9 }

If they differ in a parameter alone, a grid does the same: `params = { k = { grid = [5, 9] } }`.
"#
Option "C006" "an option of the command line that cannot be laid over the pipeline" r#"
`--set KEY=VALUE` changes a value of the file for this run. Tables in lists are addressed by their name, and any key that
is not one of the table's own is one of its parameters. `--only NAME` takes the name of a clusterer or of data.

    compflow run p.toml --set clusterer.k-means.k=12 --only k-means
"#
Variable "C007" "an environment variable that is not set" r#"
`${NAME}` in a path stands for an environment variable. Set it, or give the path on the command line:

    COMPFLOW_DATA=/data compflow run p.toml
    compflow run p.toml --set data.NAME.path=/data/x.parquet
"#
NoComponent "C010" "there is no component of that name" r#"
`use` and `loader` name a component of a library that was found. `compflow plugins` lists all of them and why a library is
not used; `--plugins DIR` or COMPFLOW_PLUGIN_PATH name a further folder.

    use = "kmeens"             # wrong
    use = "kmeans"

If two libraries offer the same name, `library:component` says which.
"#
Parameter "C011" "a parameter that a component refuses" r#"
The component was made with the parameters of the pipeline and did not take one: it is missing, of the wrong kind, or out of
range. `compflow inspect NAME` has every parameter with its range and default.

    params = { k = 0 }         # wrong
    params = { k = 5 }
"#
UnknownParameter "C012" "a parameter that the component does not have" r#"
Parameters with a typing error are refused rather than ignored. The names are those of this project, which are not always
those of other tools: what scikit-learn calls `n_clusters`, `n_init` and `max_iter` is `k`, `restarts` and `max_iter` here.

    params = { n_clusters = 5 }   # wrong
    params = { k = 5 }

`compflow inspect NAME` lists the parameters of a component.
"#
NeedsComposer "C013" "a clusterer that needs a composer" r#"
Compositional clusterers predict where unions lie with a function g, which the pipeline names. If you have labelled examples,
`compflow fit-composer` learns one and says which to take.

    [composer]
    use = "max"

With `degree = 1` there are no unions, and no composer is needed.
"#
NeedsGradients "C014" "a clusterer that needs gradients of the composer" r#"
`ckm` moves centres along the gradient of g, so g must be differentiable. The message lists the composers that are.

    [composer]
    use = "bilinear"           # has gradients
"#
Grid "C015" "a grid or a selection that cannot be one" r#"
`{ grid = [...] }` is a list of at least one value, each once; `{ select = [...] }` of at least two numbers, or a range.

    params = { k = { grid = [5, 10, 15] } }
    params = { k = { select = { from = 2, to = 10 } } }
"#
Tuning "C016" "`[tune]` names data or a metric that is not there" r#"
[tune] settles grids on data of its own, by a metric that one of the evaluators reports.

    [[data]]
    name = "validation"
    role = "tune"

    [[evaluator]]
    use = "cri"                # reports `cri` and `acri`

    [tune]
    data   = "validation"
    metric = "acri"
"#
Pinned "C017" "a library that the pipeline requires is not there" r#"
`[plugins] require` says which content a library must have, and the one that was found has another, or there is none. Either
the library was rebuilt (`compflow plugins --json` has its hash), or another one lies in front of it in the search path.
"#
Place "C018" "a path and a loader that do not go together" r#"
Loaders of files need a `path`, and those that make data up, such as `synthetic`, take none.

    loader = "parquet"
    path   = "data.parquet"
"#
File "C020" "a file that cannot be found or opened" r#"
Paths in a pipeline are relative to the pipeline file, not to where the command is run. A pattern such as "part-*.parquet"
must match at least one file, a folder must hold at least one that the loader reads.

    path = "../data/x.parquet"
"#
Format "C021" "a file that its loader cannot read" r#"
The file is there, and is not what the loader expects, or is damaged. Look whether it was copied or downloaded whole, and
whether the loader fits: `parquet`, `arrow`, `csv` (also TSV), `json` (lines), `npy`.

    loader = "parquet"
    path   = "table.csv"       # wrong: loader = "csv"
"#
Column "C022" "a column that the data does not have" r#"
`columns` says what the source calls the embeddings, the true sets and so on. The message lists the columns that there are.

    columns = { embedding = "vec", truth = "labels" }

One column per dimension is a pattern or a list: `embedding = "d*"` or `embedding = ["d0", "d1", "d2"]`.
"#
Segments "C023" "a segment of a recording that is not whole, or overlaps with another" r#"
Segments have a recording, a start and an end, so `columns` names all of `file`, `start` and `end`. Within a recording and
a trial they must not overlap: who speaks at once belongs in one set of one segment.
"#
Embedding "C024" "an embedding that is missing, ragged, or no finite number" r#"
Every example needs an embedding of the same length, all numbers finite. The message names the row, from 0. A null is often
a failed request to an embedding service, a NaN a division by a zero norm: leave such rows out, or compute them again.

    df.filter(pl.col("embedding").is_not_null())
"#
EmbeddingKind "C025" "a column that cannot be embeddings" r#"
An embedding is a list of numbers: a column of lists, a text such as "[0.1, 0.2]", or a column for every dimension.

    columns = { embedding = "embedding" }
    columns = { embedding = "d*" }
    columns = { embedding = ["x", "y", "z"] }
"#
LabelMissing "C026" "an example without a label" r#"
`truth` says of every example which set it belongs to; an empty list (in a text, `[]`) is "none of them". If only some
examples are labelled, their column is not the truth to compare with but what is known beforehand:

    columns = { embedding = "embedding", seed = "labels" }
"#
LabelKind "C027" "a column that cannot be labels" r#"
Labels are whole numbers or texts, or lists of those; or one column of 0 and 1 for each label.

    columns = { embedding = "embedding", truth = "labels" }
    columns = { embedding = "embedding", truth = "is_*" }        # 0 and 1
    columns = { embedding = "embedding", truth = ["anna", "ben"] }
"#
LabelText "C028" "several labels in one text" r#"
A text is one label, whatever is in it: "0,3" would be a class of its own beside "0" and "3", and every score would be of
something else than you mean. Say what stands between labels:

    [[data]]
    labels  = { split = "," }
    columns = { embedding = "embedding", truth = "labels" }

Brackets and quotes around labels, as in "[0, 3]" or "['a', 'b']", are taken off. An empty text is the empty set. If it is one
label all the same, take something that is in none of them for `split`.
"#
Identifier "C029" "an identifier that is used twice, or is none" r#"
Identifiers are whole numbers or texts, each once within a trial: the tables join by them. Without `id` rows are numbered. If
the same identifiers come again and again, there is probably a column of trials that `columns` does not name.

    columns = { embedding = "embedding", id = "id", trial = "fold" }
"#
TrialNumber "C030" "a trial that is no number" r#"
Trials are whole numbers from 0; the examples of one are clustered together. Names of recordings or sessions become numbers with
`pandas.factorize`. A split by name is not a trial: take one of its parts with the loader's `where`.

    params = { where = { split = "test" } }
"#
Number "C031" "a preference or a weight that is no number" r#"
Preferences and weights are finite numbers, one for each example, and weights are at least 0.
"#
Empty "C032" "data without rows" r#"
There is nothing to cluster. If the loader has a `where`, no row meets it.
"#
Unequal "C033" "files that do not fit together" r#"
The files of a pattern or a folder are read as if they were one, so they must have the same columns of the same kinds, and
embeddings of one length. Those of different models are data sets of their own.
"#
Seeds "C034" "known sets that contradict each other, or are too large" r#"
`seed` says what is known beforehand. Two equal examples cannot be known to be in different sets, a set cannot have more
members than `degree`, and an empty one is not known: leave it null, or all of its columns of 0 and 1 empty. See docs/seeds.md.
"#
Dimensions "C035" "embeddings of another length than the composer's weights" r#"
A learned g fits the embeddings of one model. Learn one for yours: `compflow fit-composer DATA --out g.safetensors`.
"#
NoTruth "C036" "data without true sets, though something needs them" r#"
Evaluators such as `cri` compare with the truth, and `oracle` is given it. Name the column, or take evaluators that do
without: `silhouette`, `ssd`.

    columns = { embedding = "embedding", truth = "labels" }
"#
NoPreference "C037" "data without preferences, though a clusterer takes them from a column" r#"
`cap` and `ap` with `preference = "column"` want a number for each example.

    columns = { embedding = "embedding", preference = "pref" }

Without such a column, leave `preference` to its default.
"#
TooFewExamples "C038" "more clusters than examples" r#"
A clusterer cannot find more clusters than a trial has examples. The message names the smallest trial. Take a smaller `k`, or
look whether `trial` names the right column: a column that is different in every row makes trials of one example.
"#
Memory "C039" "data larger than the memory budget" r#"
All data is held in memory, unless every clusterer reads it batch by batch. Three quarters of the machine's memory may be
used; `--memory 8GB` says otherwise, and `ckm` with `stream = true` needs little.
"#
Data "C040" "data that cannot be used" r#"
The message names the file, the row (from 0) and what is wrong with it.
"#
Failed "C050" "a component that failed before it started" r#"
The component could not be made or asked. The words are its own; `compflow test-plugin LIBRARY` finds out whether it behaves
as a plugin must.
"#
Lengths "C101" "vectors that differ a hundredfold in length" r#"
Distances between vectors of very different lengths are decided by the lengths alone: whatever is long is far from everything.
Many models put no meaning into the length. Compare directions:

    space = { normalize = "l2" }

If the lengths do mean something, ignore the warning.
"#
ManyClusters "C102" "many exemplars for few examples" r#"
Affinity propagation finds as many exemplars as the preference lets it. Ask for a number, lower the preference, or leave it to
the method:

    params = { preference = { k = 10 } }
    params = { preference = "auto" }
"#
NoUnion "C103" "no union was found" r#"
The method looks for unions and assigned no example to one. Either the data has none, or the composer puts their predictions
where no examples are. If some examples are labelled, find out, and learn a composer:

    compflow fit-composer labelled.parquet --out g.safetensors

`gcr` can only reassign groups that its base has found: if that has as many as there are singletons, or fewer, unions are in
groups with something else. Give it more, `base = { use = "ac", params = { k = 20 } }`; where some sets have many examples and
others few, rather fewer, as many as have many: more groups split the large ones. If `cap` has an exemplar for every union,
say how many singletons there are, `preference = { k = 5 }`.
"#
GridEdge "C104" "a tuned or selected value at the end of its range" r#"
The best value is the smallest or largest that was tried, so a better one may lie beyond. Extend the grid, or what is selected
from, on that side and run again: only the new points are computed.

    k = { grid = [5, 10, 15] }     # 15 was chosen
    k = { grid = [10, 15, 20, 25] }
    k = "auto"                     # 10, the largest, was selected
    k = { select = { from = 2, to = 20 } }
"#
NearNothing "C105" "scores like those of a guess" r#"
`acri`, `ari` and `ami` are corrected for chance: 0 is what a clustering gets that knows nothing. Raw `cri` can be high all
the same. Look whether the labels are of what the embeddings tell apart, whether `truth` names the right column, and try
`space = { normalize = "l2" }`, another composer, another `k`.
"#
NotConverged "C106" "most trials did not converge" r#"
The method stopped at its limit of iterations, and its result is where it happened to be. Raise `max_iter`; for `ap` and `cap`
also `damping`, towards 0.95. `--strict` treats such results as failed.

    params = { max_iter = 1000, damping = 0.9 }
"#
FewTrials "C107" "differences that so few trials cannot show" r#"
The means differ, and a matched-pair t-test over the trials cannot exclude that this is chance (p > 0.05). That does not say
that the methods are equally good. More trials would tell: other seeds of made-up data, more draws of examples.
"#
Misfit "C108" "a composer that does not fit the data" r#"
By the labels, the union of two classes lies nearer to one of its members than to where the composer puts it. What looks for
unions will find little, or the wrong ones. `compflow fit-composer DATA --out g.safetensors` judges the simple composers on your
labels, learns one, and says which to take.
"#
DegreeAboveK "C109" "a degree above the number of clusters" r#"
`degree` is how many clusters a union may have, and there are fewer clusters than that. Lower the degree or raise `k`; it
costs time and changes nothing.
"#
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// All code of the crate but this file, without comments and tests.
    fn code() -> String {
        fn visit(folder: &Path, files: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { visit(&path, files) } else { files.push(path) }
            }
        }
        let mut files = Vec::new();
        visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        files.retain(|file| !file.ends_with("causes.rs"));
        let text = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).unwrap();
            text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned()
        };
        files.iter().map(text).collect()
    }

    #[test]
    fn every_cause_is_raised_somewhere_and_has_a_code_of_its_own() {
        let code = code();
        let word = |name: &str| {
            let raised = format!("Cause::{name}");
            let mut found = code.match_indices(&raised);
            found.any(|(at, all)| !code[at + all.len()..].starts_with(|next: char| next.is_alphanumeric()))
        };
        let never: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).filter(|name| !word(name)).collect();
        assert!(never.is_empty(), "never raised: {never:?}");
        let codes: Vec<&str> = Cause::ALL.iter().map(|cause| cause.code()).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "in their order, each once: {codes:?}");
    }

    #[test]
    fn causes_are_found_by_code_and_explained() {
        assert_eq!(Cause::find(" c012 "), Some(Cause::UnknownParameter));
        assert_eq!(Cause::find("C999"), None);
        for cause in Cause::ALL {
            let Explanation { code, title, text } = cause.explanation();
            assert!(code.len() == 4 && !title.ends_with('.') && text.len() > 50, "{code}");
            assert!(text.lines().all(|line| line.chars().count() <= 130), "{code}");
        }
    }
}
