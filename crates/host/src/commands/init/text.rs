//! The pipeline that is written: what was found, and what follows from it, each with the reason beside it.

use compflow_engine::pipeline::Named;
use compflow_engine::pipeline::keys::SEGMENT_KEYS;

use super::found::{Found, LabelCounts, Lengths, SeedCounts, number};
use super::judge::Judgement;

/// The number of singletons where no labels say it and something needs a number.
const K_WITHOUT_LABELS: usize = 5;
/// What "auto" tries.
const AUTO: (usize, usize) = (2, 10);
/// Halves of fewer examples say little about how many singletons there are.
const FEW: usize = 40;
/// Beyond this many examples methods are left out that compare all with all.
const MANY: usize = 20_000;
/// What `ckm` may take with its own number of restarts, measured: its time goes with sets × (examples + what moving the
/// singletons is worth) × numbers, and of 4·10⁸ it takes some 10 s on a core, `cgm` three times that; its memory with
/// sets × numbers × restarts, and of this many it takes about 1 GB.
const WORK: f64 = 4e8;
const MOVING: f64 = 2000.0;
const ROOM: f64 = 131_072.0;
/// Starts are chosen from so many examples.
const SAMPLE: usize = 16_384;
/// How often `ckm` and `cgm` start by themselves, and how often at least, as swaps need something to begin with.
const RESTARTS: (f64, f64) = (100.0, 3.0);
/// Unions are not predicted if fewer are near their prediction.
const HELD: f64 = 0.5;

/// What holds for all data sets together.
struct Facts {
    labels: Option<LabelCounts>,
    lengths: Lengths,
    /// Most examples of a trial.
    n: usize,
    degree: usize,
    /// The most members of a set that is known; `degree` may be less.
    largest: usize,
    /// How many restarts are to be had, if fewer than usual.
    restarts: Option<usize>,
    /// Singletons, and groups for what knows nothing of unions.
    k: usize,
    sets: usize,
    /// The fewest and the most singletons that are tried, if the number is left to the data.
    auto: Option<(usize, usize)>,
    /// Names of labels that only some examples have.
    names: usize,
    /// Whether no example has a label.
    unlabelled: bool,
    /// Whether all data says where in a recording its examples are.
    segments: bool,
}

impl Facts {
    fn new(found: &[Found]) -> Self {
        let all: Option<Vec<LabelCounts>> = found.iter().map(Found::labels).collect();
        let labels = all.and_then(|all| {
            all.into_iter().reduce(|a, b| LabelCounts {
                largest: a.largest.max(b.largest),
                classes: a.classes.max(b.classes),
                sets: a.sets.max(b.sets),
                repeated: a.repeated.max(b.repeated),
                empty: a.empty || b.empty,
            })
        });
        let lengths = found.iter().map(Found::lengths);
        let lengths = lengths.fold((f64::INFINITY, 0.0), |a: Lengths, b| (a.0.min(b.0), a.1.max(b.1)));
        let n = found.iter().map(Found::n).max().unwrap_or(0);
        // No method can find more clusters than there are examples.
        let fewest =
            found.iter().flat_map(|found| found.data.trials.iter().map(compflow_engine::data::Trial::size)).min();
        let at_most = |count: usize, share: usize| count.min(fewest.unwrap_or(0) / share).max(1);
        let seeds: Vec<SeedCounts> = found.iter().filter_map(Found::seeds).collect();
        let names = seeds.iter().map(|seeds| seeds.names).max().unwrap_or(0);
        let (largest, k) = match labels {
            Some(counts) => (counts.largest.max(1), counts.classes),
            None => (2, at_most(K_WITHOUT_LABELS, 6)),
        };
        // What is known beforehand must have room, whatever else is known.
        let largest = seeds.iter().map(|seeds| seeds.largest).fold(largest, usize::max);
        let k = k.max(names);
        // A set that one example has is no group.
        let sets = labels.map_or(k + k * (k - 1) / 2, |counts| counts.repeated.max(k));
        let auto = labels.is_none() && fewest.is_some_and(|fewest| fewest >= FEW);
        let auto = auto.then(|| (names.max(AUTO.0), if names > 0 { AUTO.1.max(names + 5) } else { AUTO.1 }));
        let dim = found.iter().map(|found| found.data.dim).max().unwrap_or(1);
        let (degree, restarts) = feasible(auto.map_or(k, |(_, to)| to), largest, n, dim);
        Self {
            labels,
            lengths,
            n,
            degree,
            largest,
            restarts,
            k: at_most(k, 1),
            sets: at_most(sets, 1),
            auto,
            names,
            unlabelled: seeds.is_empty() && found.iter().all(|found| found.columns.truth.is_none()),
            segments: found.iter().all(|found| found.columns.segments.is_some()),
        }
    }
}

/// How many sets there are of up to `degree` of `k`.
fn sets_of(k: usize, degree: usize) -> f64 {
    let next = |(count, sum): (f64, f64), at: usize| {
        let count = count * (k - at) as f64 / (at + 1) as f64;
        (count, sum + count)
    };
    (0..degree.min(k)).fold((1.0, 0.0), next).1
}

/// The largest degree, up to the one that is wished, at which `ckm` and `cgm` have the room and the time to compare all
/// examples with all sets; for pairs with fewer restarts, if it must be.
fn feasible(k: usize, wished: usize, n: usize, dim: usize) -> (usize, Option<usize>) {
    let share = |degree: usize| {
        let sets = sets_of(k, degree);
        let work = sets * (n.min(SAMPLE) as f64 + MOVING) * dim as f64;
        (WORK / work).min(ROOM / (sets * (dim + 1) as f64))
    };
    let mut degree = wished.min(k.max(1));
    while degree > 2 && share(degree) < 1.0 {
        degree -= 1;
    }
    let (usual, least) = RESTARTS;
    match share(degree) {
        _ if degree < 2 => (wished, None),
        share if share >= 1.0 => (if degree == k { wished } else { degree }, None),
        // Time is a matter of patience, room is not.
        _ if ROOM / (sets_of(k, 2) * (dim + 1) as f64) < least / usual => (1, None),
        share => (degree, Some((usual * share).max(least) as usize)),
    }
}

/// How many, in few digits.
fn many(count: f64) -> String {
    if count < 1e7 { format!("{count:.0}") } else { format!("{count:.0e}") }
}

/// A string as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// Columns as TOML has them.
fn named(named: &Named) -> String {
    match named {
        Named::One(name) => quoted(name),
        Named::Several(names) => toml::Value::from(names.clone()).to_string(),
    }
}

/// Breaks a comment into lines.
fn comment(text: &str) -> String {
    const WIDTH: usize = 118;
    let mut lines = vec!["#".to_owned()];
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut()
            && line.chars().count() + word.chars().count() < WIDTH
        {
            *line += &format!(" {word}");
        } else {
            lines.push(format!("# {word}"));
        }
    }
    lines.join("\n") + "\n"
}

/// The whole file.
pub(super) fn pipeline(name: &str, found: &[Found], judgement: Option<&Judgement>) -> String {
    let facts = Facts::new(found);
    let mut text = comment(
        "Written by compflow init. `compflow run` runs it, `compflow check` says what is wrong with it, `compflow inspect \
         NAME` explains a component and all its parameters.",
    );
    text += &format!("name   = {}\nseed   = 1\n", quoted(name));
    text += &degree(&facts);
    text += &space_and_composer(&facts, judgement, found);
    // A known set that is larger than the degree is refused.
    let seeds = facts.degree >= facts.largest;
    text.extend(found.iter().map(|found| data(found, seeds)));
    text += &clusterers(&facts);
    text += &evaluators(&facts);
    text
}

fn degree(facts: &Facts) -> String {
    let reason = match (facts.labels, facts.degree) {
        (None, degree) if degree < facts.largest => format!(
            "The largest union that is looked for. Some labels that are known have {} members, but {} things have {} sets of up to {}, \
             more than can be compared with every example; so what is known is left out below",
            facts.largest,
            facts.auto.map_or(facts.k, |(_, to)| to),
            many(sets_of(facts.auto.map_or(facts.k, |(_, to)| to), degree + 1)),
            degree + 1
        ),
        (None, degree) if degree > 2 => {
            format!("The largest union that is looked for: no label that is known has more than {degree} members")
        }
        (None, _) if facts.unlabelled => {
            "The largest union that is looked for; a guess, as there are no labels".to_owned()
        }
        (None, _) => "The largest union that is looked for; a guess, as not all examples have labels".to_owned(),
        (Some(_), 1) if facts.largest > 1 => format!(
            "No unions are looked for, though some examples have {} labels: {} things have {} sets of up to two, more than there is \
             memory for. Fewer labels, or `where` to take some of the examples, would allow for it",
            facts.largest,
            facts.k,
            many(sets_of(facts.k, 2))
        ),
        (Some(_), 1) => "Every example has one label; 2 would look for unions".to_owned(),
        (Some(_), degree) if degree < facts.largest => format!(
            "The largest union that is looked for. Some examples have {} labels, but of {} things there are {} sets of up to {}, \
             and every example is compared with all of them: {degree} leaves {} and takes minutes. More labels than that are not found",
            facts.largest,
            facts.k,
            many(sets_of(facts.k, degree + 1)),
            degree + 1,
            many(sets_of(facts.k, degree))
        ),
        (Some(_), degree) => {
            format!("The largest union that is looked for: no example has more than {degree} labels")
        }
    };
    format!("{}degree = {}\n\n", comment(&reason), facts.degree)
}

fn space_and_composer(facts: &Facts, judgement: Option<&Judgement>, found: &[Found]) -> String {
    let (short, long) = facts.lengths;
    let lengths = format!("{} to {}", number(short), number(long));
    let of_length_one = (short - 1.0).abs() < 1e-3 && (long - 1.0).abs() < 1e-3;
    let differ = long > 3.0 * short;
    let best = judgement.map(Judgement::best);
    let normalize = match best {
        Some(best) => best.normalize,
        None if facts.degree > 1 || of_length_one || differ => "l2",
        None => "none",
    };
    let lengths = if of_length_one {
        "All vectors have length 1, so only directions count.".to_owned()
    } else if differ {
        format!(
            "Most vectors are {lengths} long, which differs a lot: \"l2\" compares directions alone, \"none\" lengths, too."
        )
    } else {
        format!("Most vectors are {lengths} long: \"l2\" compares directions alone, \"none\" lengths, too.")
    };
    let why = match best {
        Some(_) if judgement.is_some_and(Judgement::is_either_space_best) => {
            "Unions are predicted as well in the other space."
        }
        Some(_) => "Unions are predicted better in this space than in the other.",
        None if facts.degree > 1 => "Without labelled unions to judge by, directions are the safer choice.",
        None => "",
    };
    let mut text = comment(&format!("{lengths} {why}"));
    text += &format!("space  = {{ normalize = {}, distance = \"sqeuclidean\" }}\n\n", quoted(normalize));
    if facts.degree == 1 {
        return text;
    }
    let mut reason = "Where the union of two things lies, given where the two lie. ".to_owned();
    reason += &match (judgement, best) {
        (Some(judgement), Some(best)) if best.share < HELD => format!(
            "None of the simple ones predicts well here ({}), so what looks for unions may find little; `compflow fit-composer` \
             learns one from labelled data.",
            judgement.summary()
        ),
        (Some(judgement), _) => format!(
            "Judged by the labels: {}. `compflow fit-composer` learns one from labelled data, which may be better.",
            judgement.summary()
        ),
        (None, _) => "`sum` is a guess; `max` suits what covers one another. `compflow fit-composer` finds out, and learns one, \
                      from some labelled examples."
            .to_owned(),
    };
    text += &comment(&reason);
    text += &format!("[composer]\nuse = {}\n", quoted(best.map_or("sum", |best| best.composer)));
    if let Some(weights) = found.iter().flat_map(|found| &found.weights).next() {
        text += &comment(&format!("{weights} lies beside the data. If it is a learnt composer, take it instead:"));
        text += &format!("# use    = \"bilinear\"\n# params = {{ weights = {} }}\n", quoted(weights));
    }
    text + "\n"
}

fn data(found: &Found, seeds: bool) -> String {
    let seed = found.columns.seed.as_ref().filter(|_| seeds);
    let one = |column: &Option<String>| column.as_deref().map(quoted);
    let columns = [
        ("embedding", Some(named(&found.columns.embedding))),
        ("truth", found.columns.truth.as_ref().map(named)),
        ("seed", seed.map(|column| quoted(column))),
        ("trial", one(&found.columns.trial)),
        ("id", one(&found.columns.id)),
    ];
    let segments = found.columns.segments.iter().flat_map(|names| SEGMENT_KEYS.iter().zip(names));
    let segments = segments.map(|(key, name)| (*key, Some(quoted(name))));
    let columns: Vec<String> = columns
        .into_iter()
        .chain(segments)
        .filter_map(|(name, column)| Some(format!("{name} = {}", column?)))
        .collect();
    let mut text = comment(&format!("Found {}.", found.facts()));
    if let Some(column) = seed {
        text += &comment(&format!(
            "Only some examples have a label in `{column}`, so it is a `seed`, what is known beforehand: CKM, CGM and GCR keep these \
             labels and call clusters by them, the others take no notice. Leave `seed` out to ignore them; `truth` would be labels \
             of all examples, to compare with."
        ));
    }
    text += &format!(
        "[[data]]\nname    = {}\nloader  = {}\npath    = {}\ncolumns = {{ {} }}\n",
        quoted(&found.name),
        quoted(found.loader),
        quoted(&found.path),
        columns.join(", ")
    );
    if let Some(split) = &found.split {
        text += &format!("labels  = {{ split = {} }}\n", quoted(split));
    }
    if let Some(labels) = &found.labels_file {
        text += &format!("params  = {{ labels = {} }}\n", quoted(labels));
    }
    text + "\n"
}

fn clusterer(about: &str, name: &str, component: &str, params: &str) -> String {
    let about = if about.is_empty() { String::new() } else { comment(about) };
    format!(
        "{about}[[clusterer]]\nname   = {}\nuse    = {}\nparams = {params}\n\n",
        quoted(name),
        quoted(component)
    )
}

fn clusterers(facts: &Facts) -> String {
    let Facts { k, sets, n, degree, auto, .. } = *facts;
    let known = match auto {
        Some(AUTO) => "\"auto\"".to_owned(),
        Some((from, to)) => format!("{{ select = {{ from = {from}, to = {to} }} }}"),
        None => k.to_string(),
    };
    let (from, to) = auto.unwrap_or(AUTO);
    let least = match facts.names {
        0 => String::new(),
        1 => " The labels that some examples have name one of them.".to_owned(),
        names => format!(" The labels that some examples have name {names} of them."),
    };
    let how = if auto == Some(AUTO) { "\"auto\"" } else { "`select`" };
    let mut text = comment(&match facts.labels {
        Some(_) => {
            let different = facts.labels.map_or(sets, |counts| counts.sets);
            let groups = match different {
                _ if different == sets => String::new(),
                _ => format!(
                    " Not all of these have several examples, so what looks for groups is given {sets}: those that do, and at \
                     least one for each label."
                ),
            };
            format!(
                "How many there are is known from the labels: {k} in a trial, and {different} different sets.{groups}"
            )
        }
        None if auto.is_some() => format!(
            "Nobody said how many there are.{least} {how} tries {from} to {to} on halves of the data and takes what is found again best, which takes \
             two hundred times as long as once: write a number where you know it."
        ),
        None => format!(
            "Nobody said how many there are.{least} {k} is a guess, with the {sets} sets of up to two of them. Try others, as in k = {{ \
             grid = [3, 4, 5, 6] }}."
        ),
    });
    if facts.restarts.is_some() {
        text += &comment(&format!(
            "{k} things have {} sets of up to two, so CKM and CGM start less often than the 100 times they would, to be done in \
             minutes; with more time and memory, raise `restarts`.",
            many(sets_of(k, 2))
        ));
    }
    text += "\n";
    let groups = if auto.is_some() { "\"auto\"".to_owned() } else { sets.to_string() };
    let restarts = facts.restarts.map(|restarts| format!(", restarts = {restarts}")).unwrap_or_default();
    if degree > 1 {
        text += &clusterer(
            "Looks for singletons and their unions at once.",
            "CKM",
            "ckm",
            &format!("{{ k = {known}{restarts} }}"),
        );
        let mut about = "The same with the clusters' shape and sizes learnt; also says how sure it is.".to_owned();
        let mut outliers = "";
        if facts.labels.is_some_and(|counts| counts.empty) {
            about += " Some labels say that an example belongs to nothing: only this method leaves such examples out, and with \
                      `outliers` it does.";
            outliers = ", outliers = true";
        }
        text += &clusterer(&about, "CGM", "cgm", &format!("{{ k = {known}{restarts}{outliers} }}"));
        if n <= MANY {
            // Its own "auto" is a rule and takes no time.
            let preference = if auto.is_some() { "\"auto\"".to_owned() } else { format!("{{ k = {k} }}") };
            let about = "Finds examples that stand for a singleton, and unions of those.";
            text += &clusterer(about, "CAP", "cap", &format!("{{ preference = {preference} }}"));
            let about = "Finds groups first, and then which of them lie where the union of others should.";
            text += &clusterer(
                about,
                "GCR",
                "gcr",
                &format!("{{ base = {{ use = \"ac\", params = {{ k = {groups} }} }} }}"),
            );
        }
    }
    let about = if degree > 1 { "Knows nothing of unions: every set is a cluster of its own." } else { "" };
    text += &clusterer(about, "k-means", "kmeans", &format!("{{ k = {groups} }}"));
    if degree == 1 {
        text += &clusterer("", "GMM", "gmm", &format!("{{ k = {groups} }}"));
        if n <= MANY {
            text += &clusterer("", "AC", "ac", &format!("{{ k = {groups} }}"));
        }
    }
    if n > MANY {
        text += &comment(&format!(
            "`ac`, `cap` and `gcr` compare all examples with all others, which takes long for {n}; `cap` has `subset` for that."
        ));
        text += "\n";
    }
    text
}

fn evaluators(facts: &Facts) -> String {
    let (about, names): (&str, &[&str]) = match (facts.labels, facts.degree) {
        (None, _) => (
            "Without true sets: how well clusters are apart, and how far examples are from their centres. Neither says what is \
             true.",
            &["silhouette", "ssd"],
        ),
        (Some(_), 1) => ("Agreement with the labels, corrected for chance.", &["ari", "ami"]),
        (Some(_), _) => (
            "Agreement with the true sets: `acri` looks at which sets contain which, `ari` at which are equal, `unions` at how \
             often what is called a union is one, and how many are found.",
            &["cri", "ari", "unions"],
        ),
    };
    let evaluators = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("[[evaluator]]\nuse = \"{name}\"\n")).collect();
        names.join("\n")
    };
    let mut text = comment(about) + &evaluators(names);
    if facts.segments && facts.labels.is_some() {
        let about = "Examples are segments of recordings: the share of time that is given to nobody or to the wrong ones, overall and \
                     by speaker. `compflow export rttm` writes who speaks when.";
        text += &format!("\n{}{}", comment(about), evaluators(&["der", "jer"]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_degree_is_lowered_until_it_can_be_computed() {
        assert_eq!(feasible(5, 3, 1250, 32), (3, None), "what is shipped stays");
        assert_eq!(feasible(30, 8, 400, 16), (3, None), "4525 sets, not 8 million");
        assert_eq!((sets_of(30, 2), sets_of(30, 3), sets_of(3, 9)), (465.0, 4525.0, 7.0));
        assert_eq!(feasible(1, 1, 10, 2), (1, None));
        assert_eq!(feasible(3, 5, 100, 8), (5, None), "seeds may have more members than the guess of k");
        assert_eq!(feasible(200, 4, 5000, 64), (2, Some(4)));
        assert_eq!(feasible(10_000, 3, 50_000, 512), (1, None));
    }

    #[test]
    fn comments_are_broken_into_lines() {
        let text = comment(&"word ".repeat(60));
        assert!(
            text.lines().count() == 3 && text.lines().all(|line| line.starts_with("# word") && line.len() <= 118)
        );
    }
}
