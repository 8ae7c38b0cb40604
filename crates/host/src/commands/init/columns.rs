//! Which column is what.

use compflow_engine::data::{ColumnInfo, Described, Holds};

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

/// What labels are called that only some examples have. Integers of such a name are rather numbers that something was
/// drawn with.
const SEED_NAMES: [&str; 3] = ["seed", "seeds", "known"];

/// The columns of a file that a pipeline reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) embedding: String,
    pub(super) truth: Option<String>,
    /// Labels of which some are missing.
    pub(super) seed: Option<String>,
    pub(super) trial: Option<String>,
    pub(super) id: Option<String>,
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
    let chosen = Chosen {
        embedding: choose_embedding(described, embedding)?,
        truth: choose_truth(described, truth, &mut notes)?,
        seed: SEED_NAMES.iter().find_map(|name| named(described, name, &[Holds::Sets, Holds::Texts])),
        trial: named(described, "trial", &[Holds::Integers]),
        id: named(described, "id", &[Holds::Integers, Holds::Texts]),
        notes: Vec::new(),
    };
    Ok(Chosen { notes, ..chosen })
}

fn named(described: &Described, name: &str, kinds: &[Holds]) -> Option<String> {
    let column = described
        .columns
        .iter()
        .find(|column| column.name.eq_ignore_ascii_case(name) && kinds.contains(&column.holds));
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

fn choose_embedding(described: &Described, asked: Option<&str>) -> Result<String, String> {
    let vectors: Vec<&ColumnInfo> =
        described.columns.iter().filter(|column| matches!(column.holds, Holds::Vectors(_))).collect();
    if let Some(asked) = asked {
        return match described.holds(asked) {
            Some(Holds::Vectors(_)) => Ok(asked.to_owned()),
            Some(_) => Err(format!("--embedding: the column `{asked}` does not hold lists of floats")),
            None => Err(format!("--embedding: there is no column `{asked}`; available: {}", described.names())),
        };
    }
    let usual = EMBEDDING_NAMES.iter().find_map(|name| vectors.iter().find(|column| column.name == *name));
    match (usual, &vectors[..]) {
        (Some(column), _) | (None, [column]) => Ok(column.name.clone()),
        (None, []) => {
            let floats: Vec<&ColumnInfo> =
                described.columns.iter().filter(|column| column.holds == Holds::Floats).collect();
            let whole = described.columns.iter().find(|column| {
                column.holds == Holds::Sets
                    && EMBEDDING_NAMES.iter().any(|name| column.name.eq_ignore_ascii_case(name))
            });
            if let Some(column) = whole {
                let name = &column.name;
                return Err(format!(
                    "`{name}` does not hold lists of floats, which embeddings are; cast it, for example with Polars: \
                     df.with_columns(pl.col(\"{name}\").cast(pl.List(pl.Float32)))"
                ));
            }
            Err(match &floats[..] {
                [first, .., last] => format!(
                    "no column holds lists of floats, which embeddings are; put the {} columns of floats (`{}` to `{}`) \
                     into one, for example with Polars: df.select(embedding=pl.concat_list([...]))",
                    floats.len(),
                    first.name,
                    last.name
                ),
                _ => {
                    format!(
                        "no column holds lists of floats, which embeddings are; available: {}",
                        described.names()
                    )
                }
            })
        }
        (None, several) => Err(format!(
            "several columns hold lists of floats: {}; --embedding says which are the embeddings",
            quoted(several)
        )),
    }
}

fn choose_truth(
    described: &Described,
    asked: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Option<String>, String> {
    let can = |holds: Holds| matches!(holds, Holds::Sets | Holds::Integers | Holds::Texts);
    match asked {
        Some("none") => return Ok(None),
        Some(asked) => {
            return match described.holds(asked) {
                Some(holds) if can(holds) => Ok(Some(asked.to_owned())),
                Some(_) => Err(format!("--truth: the column `{asked}` holds neither labels nor lists of them")),
                None => Err(format!("--truth: there is no column `{asked}`; available: {}", described.names())),
            };
        }
        None => {}
    }
    let kinds = [Holds::Sets, Holds::Integers, Holds::Texts];
    if let Some(usual) = TRUTH_NAMES.iter().find_map(|name| named(described, name, &kinds)) {
        return Ok(Some(usual));
    }
    let could_be = |column: &&ColumnInfo| {
        column.holds == Holds::Sets && !SEED_NAMES.iter().any(|name| column.name.eq_ignore_ascii_case(name))
    };
    let sets: Vec<&ColumnInfo> = described.columns.iter().filter(could_be).collect();
    if let [only] = sets[..] {
        return Ok(Some(only.name.clone()));
    }
    if !sets.is_empty() {
        notes.push(format!("several columns could be labels: {}; --truth says which are", quoted(&sets)));
    }
    let flags: Vec<&ColumnInfo> = described.columns.iter().filter(|column| column.holds == Holds::Flags).collect();
    if flags.len() > 1 {
        notes.push(format!(
            "the columns {} hold true and false; if these are labels, put those that are true into one column of lists. \
             `compflow eval` takes them as they are",
            quoted(&flags)
        ));
    }
    let other = |column: &&ColumnInfo| {
        matches!(column.holds, Holds::Integers | Holds::Texts)
            && !["id", "trial"].iter().any(|name| column.name.eq_ignore_ascii_case(name))
    };
    let others: Vec<&ColumnInfo> = described.columns.iter().filter(other).collect();
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
            (chosen.embedding.as_str(), chosen.truth.as_deref(), chosen.trial.as_deref(), chosen.id.as_deref()),
            ("vec", Some("speakers"), Some("Trial"), Some("id"))
        );
        assert_eq!(choose(&file, None, Some("none")).unwrap().truth, None);
        let error = choose(&file, Some("score"), None).unwrap_err();
        assert_eq!(error, "--embedding: the column `score` does not hold lists of floats");
    }

    #[test]
    fn several_vectors_are_listed() {
        let file = described(&[("a", Holds::Vectors(Some(8))), ("b", Holds::Vectors(None))]);
        let error = choose(&file, None, None).unwrap_err();
        assert!(error.contains("`a` (8 numbers), `b`; --embedding says which"), "{error}");
        assert_eq!(choose(&file, Some("b"), None).unwrap().embedding, "b");
        let file = described(&[("a", Holds::Vectors(Some(8))), ("embedding", Holds::Vectors(None))]);
        assert_eq!(choose(&file, None, None).unwrap().embedding, "embedding");
    }

    #[test]
    fn embeddings_of_integers_and_labels_of_unusual_names_are_explained() {
        let error = choose(&described(&[("embedding", Holds::Sets)]), None, None).unwrap_err();
        assert!(error.contains("pl.col(\"embedding\").cast(pl.List(pl.Float32))"), "{error}");
        let file = described(&[("vec", Holds::Vectors(None)), ("what", Holds::Texts), ("id", Holds::Integers)]);
        let notes = choose(&file, None, None).unwrap().notes;
        assert_eq!(notes, ["no column is taken for labels; --truth names one, if one of these is: `what`"]);
    }

    #[test]
    fn numbers_in_columns_of_their_own_are_explained() {
        let file = described(&[("x0", Holds::Floats), ("x1", Holds::Floats), ("y", Holds::Integers)]);
        let error = choose(&file, None, None).unwrap_err();
        assert!(error.contains("put the 2 columns of floats (`x0` to `x1`) into one"), "{error}");
    }
}
