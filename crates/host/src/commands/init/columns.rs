//! Which column is what.

use compflow_engine::data::{ColumnInfo, Described, Holds};
use compflow_engine::pipeline::Named;

/// What true labels are usually called, the likeliest first.
const TRUTH_NAMES: [&str; 17] = [
    "labels",
    "label",
    "truth",
    "classes",
    "class",
    "targets",
    "target",
    "y",
    "speakers",
    "speaker",
    "topics",
    "topic",
    "tags",
    "tag",
    "categories",
    "category",
    "genres",
];

/// What embeddings are usually called, if several columns could be.
const EMBEDDING_NAMES: [&str; 2] = ["embedding", "embeddings"];

/// What identifiers are usually called, the likeliest first.
const ID_NAMES: [&str; 12] = [
    "id",
    "uid",
    "uuid",
    "key",
    "example_id",
    "sample_id",
    "doc_id",
    "image_id",
    "utterance_id",
    "utterance",
    "utt",
    "filename",
];

/// What labels are called that only some examples have. Integers of such a name are rather numbers that something was
/// drawn with.
const SEED_NAMES: [&str; 3] = ["seed", "seeds", "known"];

/// The columns of a file that a pipeline reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) embedding: Named,
    pub(super) truth: Option<Named>,
    /// Labels of which some are missing.
    pub(super) seed: Option<String>,
    pub(super) trial: Option<String>,
    pub(super) id: Option<String>,
    /// Where in a recording an example is: the columns of `file`, `start` and `end`.
    pub(super) segments: Option<[String; 3]>,
    /// What the user should know about columns that were not chosen.
    pub(super) notes: Vec<String>,
}

/// Chooses by names and types; what the user said comes first.
///
/// # Errors
/// If it is not clear which column holds the embeddings, or there is no such column.
pub(super) fn choose(
    described: &Described,
    embedding: Option<&str>,
    truth: Option<&str>,
) -> Result<Chosen, String> {
    let mut notes = Vec::new();
    let texts = [Holds::Sets, Holds::Texts];
    Ok(Chosen {
        embedding: choose_embedding(described, embedding)?,
        truth: choose_truth(described, truth, &mut notes)?,
        seed: SEED_NAMES.iter().find_map(|name| named(described, name, |holds| texts.contains(&holds))),
        trial: named(described, "trial", |holds| holds == Holds::Integers),
        id: ID_NAMES
            .iter()
            .find_map(|name| named(described, name, |holds| [Holds::Integers, Holds::Texts].contains(&holds))),
        segments: segments(described),
        notes,
    })
}

/// Where in a recording the examples are, if the file says so under the pipeline's own names.
fn segments(described: &Described) -> Option<[String; 3]> {
    let seconds = |holds| [Holds::Floats, Holds::Integers].contains(&holds);
    Some([
        named(described, "file", |holds| [Holds::Integers, Holds::Texts].contains(&holds))?,
        named(described, "start", seconds)?,
        named(described, "end", seconds)?,
    ])
}

/// The columns of integers and texts that nothing else is known of.
pub(super) fn could_be_labels(described: &Described) -> impl Iterator<Item = &ColumnInfo> {
    unknown(described, &[Holds::Integers, Holds::Texts])
}

/// The columns of numbers that nothing else is known of.
pub(super) fn could_be_flags(described: &Described) -> impl Iterator<Item = &ColumnInfo> {
    unknown(described, &[Holds::Integers, Holds::Floats])
}

fn unknown<'d>(described: &'d Described, kinds: &'static [Holds]) -> impl Iterator<Item = &'d ColumnInfo> {
    let segments = segments(described).unwrap_or_default();
    let is_known = move |column: &&ColumnInfo| {
        ID_NAMES.iter().chain(&["trial"]).any(|name| column.name.eq_ignore_ascii_case(name))
            || segments.contains(&column.name)
    };
    described.columns.iter().filter(move |column| kinds.contains(&column.holds) && !is_known(column))
}

/// What columns of usual names are for, and what these hold.
const USUAL: [Usual; 5] = [
    Usual {
        names: &TRUTH_NAMES,
        are: "labels",
        hold: "whole numbers, texts or lists of them",
        fits: Holds::can_be_sets,
    },
    // Numbers of such a name are no labels, and nobody expects them to be.
    Usual {
        names: &SEED_NAMES,
        are: "known labels",
        hold: "texts or lists of them",
        fits: |holds| matches!(holds, Holds::Sets | Holds::Texts | Holds::Integers | Holds::Floats),
    },
    Usual { names: &["trial"], are: "trials", hold: "whole numbers", fits: |holds| holds == Holds::Integers },
    Usual {
        names: &ID_NAMES,
        are: "identifiers",
        hold: "whole numbers or texts",
        fits: |holds| matches!(holds, Holds::Integers | Holds::Texts),
    },
    Usual {
        names: &["start", "end"],
        are: "times in a recording",
        hold: "numbers, in seconds",
        fits: |holds| matches!(holds, Holds::Integers | Holds::Floats),
    },
];

struct Usual {
    names: &'static [&'static str],
    are: &'static str,
    hold: &'static str,
    fits: fn(Holds) -> bool,
}

impl Chosen {
    /// Takes the only one of these columns, whose texts are several labels with `separator` between them, for the truth.
    ///
    /// # Errors
    /// If there is none, several, or the user said that there is none: then there is nothing to take apart.
    pub(super) fn take_truth(
        &mut self,
        joined: Vec<String>,
        separator: &str,
        asked: Option<&str>,
    ) -> Result<(), String> {
        let nothing = "--split: no column is taken for labels, so there is nothing to take apart";
        match (&joined[..], asked) {
            (_, Some(_)) => Err(format!("{nothing}; leave it out, or let --truth name a column")),
            ([], None) => {
                Err(format!("{nothing}, and no text has `{separator}` in it; --truth names the column of labels"))
            }
            ([only], None) => {
                self.notes.clear();
                self.notes.push(format!(
                    "the texts of the column `{only}` are taken for labels with `{separator}` between them; --truth names another"
                ));
                self.truth = Some(Named::One(only.clone()));
                Ok(())
            }
            (several, None) => {
                let several = several.join("`, `");
                Err(format!("{nothing}; --truth says which of these holds labels: `{several}`"))
            }
        }
    }

    /// Whether a column is the embedding or a number of it.
    pub(super) fn is_embedding(&self, column: &str) -> bool {
        stands_for(&self.embedding, column)
    }

    /// Says of columns of usual names that do not hold what columns of these names do that they are passed over. `asked` is whether
    /// somebody said which column holds the labels.
    pub(super) fn note_misfits(&mut self, described: &Described, asked: bool) {
        for usual in USUAL.iter().filter(|usual| !(asked && usual.are == "labels")) {
            let named =
                |column: &&ColumnInfo| usual.names.iter().any(|name| column.name.eq_ignore_ascii_case(name));
            for column in described.columns.iter().filter(named).filter(|column| !(usual.fits)(column.holds)) {
                let name = &column.name;
                if self.is_embedding(name) || self.truth.as_ref().is_some_and(|truth| stands_for(truth, name)) {
                    continue;
                }
                let would = match column.holds {
                    // A gap makes floating-point numbers of whole ones.
                    Holds::Floats => {
                        "; if they are whole but for gaps, write them as such, as pandas does after astype(\"Int64\")"
                    }
                    Holds::Texts if usual.are == "trials" => "; number them, as pandas.factorize does",
                    _ => "",
                };
                let (are, hold, found) = (usual.are, usual.hold, in_words(column.holds));
                self.notes.push(format!(
                    "the column `{name}` is passed over: it holds {found}, and {are} are {hold}{would}"
                ));
            }
        }
    }

    /// Says that columns of 0 and 1 could be labels, if there are several.
    pub(super) fn suggest_flags(&mut self, flags: &[String]) {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let [first, _, ..] = flags[..] else { return };
        // A pattern says the same in fewer words.
        let stem =
            first.find('_').map(|at| &first[..=at]).filter(|stem| flags.iter().all(|flag| flag.starts_with(stem)));
        let option = stem.map_or_else(|| flags.join(","), |stem| format!("{stem}*"));
        let text = format!(
            "the columns `{}` hold 0 and 1; if they are labels, --truth '{option}' takes them",
            flags.join("`, `")
        );
        self.notes.clear();
        self.notes.push(text);
    }
}

/// Whether a column is one of these, or of those that a pattern such as `d*` stands for.
fn stands_for(named: &Named, column: &str) -> bool {
    let named = named.to_string();
    named
        .split(',')
        .any(|name| name == column || name.strip_suffix('*').is_some_and(|stem| column.starts_with(stem)))
}

/// What a column holds, for people.
fn in_words(holds: Holds) -> &'static str {
    match holds {
        Holds::Vectors(_) => "lists of numbers",
        Holds::WholeLists(_) => "lists of whole numbers",
        Holds::Sets => "lists of texts",
        Holds::Integers => "whole numbers",
        Holds::Texts => "texts",
        Holds::Floats => "floating-point numbers",
        Holds::Flags => "true and false",
        Holds::Other => "neither numbers nor texts",
    }
}

fn named(described: &Described, name: &str, can: impl Fn(Holds) -> bool) -> Option<String> {
    let column =
        described.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name) && can(column.holds));
    column.map(|column| column.name.clone())
}

fn quoted(columns: &[&ColumnInfo]) -> String {
    let names: Vec<String> = columns
        .iter()
        .map(|column| match column.holds {
            Holds::Vectors(Some(length)) => format!("`{}` ({length} numbers)", column.name),
            _ => format!("`{}`", column.name),
        })
        .collect();
    names.join(", ")
}

fn is_number(column: &ColumnInfo) -> bool {
    matches!(column.holds, Holds::Floats | Holds::Integers)
}

fn choose_embedding(described: &Described, asked: Option<&str>) -> Result<Named, String> {
    let one = |column: &ColumnInfo| Named::One(column.name.clone());
    if let Some(asked) = asked {
        return match described.holds(asked) {
            Some(Holds::Vectors(_) | Holds::WholeLists(_) | Holds::Texts) => Ok(Named::One(asked.to_owned())),
            Some(_) => Err(format!("--embedding: the column `{asked}` does not hold lists of numbers")),
            None if asked.contains([',', '*', '?', '[']) => Ok(Named::from_option(asked)),
            None => Err(format!("--embedding: {}", described.lacks(asked))),
        };
    }
    let columns = || described.columns.iter();
    let usual = EMBEDDING_NAMES.iter().find_map(|name| {
        let can = |holds| matches!(holds, Holds::Vectors(_) | Holds::WholeLists(_) | Holds::Texts);
        columns().find(|column| column.name.eq_ignore_ascii_case(name) && can(column.holds))
    });
    let vectors: Vec<&ColumnInfo> = columns().filter(|column| matches!(column.holds, Holds::Vectors(_))).collect();
    match (usual, &vectors[..]) {
        (Some(column), _) => Ok(one(column)),
        (None, [column]) => Ok(one(column)),
        (None, []) => numbered(described).ok_or_else(|| {
            let numbers: Vec<&str> =
                columns().filter(|column| is_number(column)).map(|column| column.name.as_str()).collect();
            match &numbers[..] {
                [_, _, ..] => format!(
                    "no column holds lists of numbers, which embeddings are; if numbers in columns of their own are, name them: \
                     --embedding '{}'",
                    numbers.join(",")
                ),
                _ => format!(
                    "no column holds lists of numbers, which embeddings are; available: {}",
                    described.names()
                ),
            }
        }),
        (None, several) => Err(format!(
            "several columns hold lists of numbers: {}; --embedding says which are the embeddings",
            quoted(several)
        )),
    }
}

/// Numbers in columns that are numbered, such as `d0`, `d1` and `d2`: the most that share a name.
fn numbered(described: &Described) -> Option<Named> {
    let digits = |name: &str| name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for column in described.columns.iter().filter(|column| is_number(column) && digits(&column.name) > 0) {
        let stem = &column.name[..column.name.len() - digits(&column.name)];
        match groups.iter_mut().find(|(known, _)| *known == stem) {
            Some((_, names)) => names.push(&column.name),
            None => groups.push((stem, vec![&column.name])),
        }
    }
    let (stem, names) = groups.into_iter().max_by_key(|(_, names)| names.len())?;
    let matched = described.columns.iter().filter(|column| column.name.starts_with(stem)).count();
    match names.len() {
        0 | 1 => None,
        // A pattern says the same in fewer words, if it stands for nothing else.
        count if count == matched && !stem.is_empty() && !stem.contains(['*', '?', '[']) => {
            Some(Named::One(format!("{stem}*")))
        }
        _ => Some(Named::Several(names.into_iter().map(str::to_owned).collect())),
    }
}

fn choose_truth(
    described: &Described,
    asked: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Option<Named>, String> {
    match asked {
        Some("none") => return Ok(None),
        Some(asked) => {
            return match described.holds(asked) {
                Some(holds) if holds.can_be_sets() => Ok(Some(Named::One(asked.to_owned()))),
                Some(_) => Err(format!("--truth: the column `{asked}` holds neither labels nor lists of them")),
                None if asked.contains([',', '*', '?', '[']) => Ok(Some(Named::from_option(asked))),
                None => Err(format!("--truth: {}", described.lacks(asked))),
            };
        }
        None => {}
    }
    if let Some(usual) = TRUTH_NAMES.iter().find_map(|name| named(described, name, Holds::can_be_sets)) {
        return Ok(Some(Named::One(usual)));
    }
    let could_be = |column: &&ColumnInfo| {
        matches!(column.holds, Holds::Sets | Holds::WholeLists(_))
            && !SEED_NAMES.iter().chain(&EMBEDDING_NAMES).any(|name| column.name.eq_ignore_ascii_case(name))
    };
    let sets: Vec<&ColumnInfo> = described.columns.iter().filter(could_be).collect();
    if let [only] = sets[..] {
        return Ok(Some(Named::One(only.name.clone())));
    }
    if !sets.is_empty() {
        notes.push(format!("several columns could be labels: {}; --truth says which are", quoted(&sets)));
    }
    let flags: Vec<&ColumnInfo> = described.columns.iter().filter(|column| column.holds == Holds::Flags).collect();
    if flags.len() > 1 {
        notes.push(format!(
            "the columns {} hold true and false and are taken for labels; --truth none if they are not",
            quoted(&flags)
        ));
        return Ok(Some(Named::Several(flags.iter().map(|column| column.name.clone()).collect())));
    }
    let others: Vec<&ColumnInfo> = could_be_labels(described).collect();
    if !others.is_empty() && notes.is_empty() {
        notes.push(format!(
            "no column is taken for labels; --truth names one, if one of these is: {}",
            quoted(&others)
        ));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(columns: &[(&str, Holds)]) -> Described {
        let columns = columns.iter().map(|(name, holds)| ColumnInfo { name: (*name).to_owned(), holds: *holds });
        Described { rows: None, columns: columns.collect() }
    }

    fn one(name: &str) -> Named {
        Named::One(name.to_owned())
    }

    #[test]
    fn usual_names_are_found_and_anything_else_is_asked_for() {
        let file = described(&[
            ("Trial", Holds::Integers),
            ("id", Holds::Texts),
            ("vec", Holds::Vectors(Some(8))),
            ("score", Holds::Floats),
            ("speakers", Holds::Sets),
        ]);
        let chosen = choose(&file, None, None).unwrap();
        assert_eq!(
            (chosen.embedding, chosen.truth, chosen.trial.as_deref(), chosen.id.as_deref()),
            (one("vec"), Some(one("speakers")), Some("Trial"), Some("id"))
        );
        assert_eq!(choose(&file, None, Some("none")).unwrap().truth, None);
        let error = choose(&file, Some("score"), None).unwrap_err();
        assert_eq!(error, "--embedding: the column `score` does not hold lists of numbers");
    }

    #[test]
    fn several_vectors_are_listed() {
        let file = described(&[("a", Holds::Vectors(Some(8))), ("b", Holds::Vectors(None))]);
        let error = choose(&file, None, None).unwrap_err();
        assert!(error.contains("`a` (8 numbers), `b`; --embedding says which"), "{error}");
        assert_eq!(choose(&file, Some("b"), None).unwrap().embedding, one("b"));
        let file = described(&[("a", Holds::Vectors(Some(8))), ("embedding", Holds::Vectors(None))]);
        assert_eq!(choose(&file, None, None).unwrap().embedding, one("embedding"));
    }

    #[test]
    fn embeddings_of_whole_numbers_are_taken_and_labels_of_unusual_names_are_asked_for() {
        let file = described(&[("embedding", Holds::WholeLists(Some(8))), ("sets", Holds::WholeLists(None))]);
        let chosen = choose(&file, None, None).unwrap();
        assert_eq!((chosen.embedding, chosen.truth), (one("embedding"), Some(one("sets"))));
        let file = described(&[("vec", Holds::Vectors(None)), ("what", Holds::Texts), ("id", Holds::Integers)]);
        let notes = choose(&file, None, None).unwrap().notes;
        assert_eq!(notes, ["no column is taken for labels; --truth names one, if one of these is: `what`"]);
    }

    #[test]
    fn numbers_in_numbered_columns_are_embeddings_and_others_are_asked_for() {
        let file = described(&[("x0", Holds::Floats), ("x1", Holds::Integers), ("y", Holds::Integers)]);
        let chosen = choose(&file, None, None).unwrap();
        assert_eq!((chosen.embedding, chosen.truth), (one("x*"), Some(one("y"))));
        let file = described(&[("0", Holds::Floats), ("1", Holds::Floats), ("label", Holds::Texts)]);
        let numbered = Named::Several(vec!["0".to_owned(), "1".to_owned()]);
        assert_eq!(choose(&file, None, None).unwrap().embedding, numbered);
        let file = described(&[("x0", Holds::Floats), ("x1", Holds::Floats), ("xml", Holds::Texts)]);
        assert_eq!(choose(&file, None, None).unwrap().embedding.to_string(), "x0,x1", "`x*` would be more");
        let file = described(&[("width", Holds::Floats), ("height", Holds::Floats)]);
        assert!(choose(&file, None, None).unwrap_err().contains("--embedding 'width,height'"));
        assert_eq!(choose(&file, Some("width,height"), None).unwrap().embedding.to_string(), "width,height");
    }

    #[test]
    fn columns_of_true_and_false_are_labels() {
        let file = described(&[("vec", Holds::Vectors(None)), ("anna", Holds::Flags), ("ben", Holds::Flags)]);
        let chosen = choose(&file, None, None).unwrap();
        assert_eq!(chosen.truth, Some(Named::from_option("anna,ben")));
        assert!(chosen.notes[0].contains("--truth none if they are not"));
    }

    #[test]
    fn segments_are_seen_if_all_of_their_columns_are_there() {
        let mut columns = vec![("vec", Holds::Vectors(None)), ("file", Holds::Texts), ("start", Holds::Floats)];
        assert_eq!(choose(&described(&columns), None, None).unwrap().segments, None);
        columns.push(("End", Holds::Integers));
        let chosen = choose(&described(&columns), None, None).unwrap();
        assert_eq!(chosen.segments, Some(["file", "start", "End"].map(str::to_owned)));
        assert!(chosen.notes.is_empty(), "none of them could be labels: {:?}", chosen.notes);
    }

    #[test]
    fn columns_of_usual_names_that_do_not_fit_are_named_with_what_would_do() {
        let notes = |columns: &[(&str, Holds)], truth: Option<&str>| {
            let file = described(&[&[("vec", Holds::Vectors(None))], columns].concat());
            let mut chosen = choose(&file, None, truth).unwrap();
            chosen.notes.clear();
            chosen.note_misfits(&file, truth.is_some());
            chosen.notes
        };
        let [note] = &notes(&[("Trial", Holds::Texts)], None)[..] else { panic!("one note") };
        assert_eq!(
            note,
            "the column `Trial` is passed over: it holds texts, and trials are whole numbers; number them, as pandas.factorize does"
        );
        let [note] = &notes(&[("label", Holds::Floats)], None)[..] else { panic!("one note") };
        assert!(
            note.contains("and labels are whole numbers, texts or lists of them; if they are whole but for gaps")
        );
        let others = [("id", Holds::Other), ("known", Holds::Other), ("start", Holds::Texts), ("y", Holds::Flags)];
        assert_eq!(notes(&others, None).len(), 4);
        assert_eq!(notes(&others, Some("none")).len(), 3, "labels are somewhere else");
        let fit =
            [("id", Holds::Texts), ("seed", Holds::Integers), ("start", Holds::Floats), ("who", Holds::Other)];
        assert_eq!(notes(&fit, None), Vec::<String>::new());
        // Two of true and false are labels, whatever one of them is called.
        assert!(notes(&[("y", Holds::Flags), ("n", Holds::Flags)], None).is_empty());
    }

    #[test]
    fn flags_that_are_no_embedding_are_suggested_in_few_words() {
        let file = described(&[("d0", Holds::Integers), ("d1", Holds::Integers), ("is_a", Holds::Integers)]);
        let chosen = choose(&file, None, None).unwrap();
        let may_be = could_be_flags(&file).filter(|column| !chosen.is_embedding(&column.name));
        assert_eq!(may_be.map(|column| column.name.as_str()).collect::<Vec<_>>(), ["is_a"]);
        let suggested = |flags: &[&str]| {
            let mut chosen = choose(&file, None, None).unwrap();
            chosen.notes.clear();
            chosen.suggest_flags(&flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>());
            chosen.notes.join("")
        };
        assert!(suggested(&["is_a", "is_b"]).ends_with("--truth 'is_*' takes them"));
        assert!(suggested(&["ann", "ben"]).ends_with("--truth 'ann,ben' takes them"));
        assert_eq!(suggested(&["is_a"]), "");
    }
}
