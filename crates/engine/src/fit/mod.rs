//! Learning a composition function from labelled embeddings, and finding out which one to take.
//!
//! The way: `source` reads, `labelled` takes means of every set of labels, `folds` says what is held out, `design` fits
//! in closed form, `search` settles λ, `judge` compares with the composers of libraries, and `weights` writes the file.
//! `docs/composers-fit.md` derives it.

mod bilinear;
mod classes;
mod design;
mod folds;
mod judge;
mod judgement;
mod labelled;
mod linear;
mod parallel;
mod search;
mod source;
mod weights;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compflow_api::{Composer, ForeignComposer, Kind, Level, Normalize, Space, plural};

use self::bilinear::Bilinear;
use self::design::Design;
use self::folds::{Fold, Folds};
use self::judge::{Found, Judge, Judged};
pub use self::judgement::{Composed, FITTED, Judgement, SCALED, Tried};
use self::labelled::{Collector, LabelSet, Labelled};
use self::search::Errors;
pub use self::source::{FitColumns, FitData, Trials};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::files::hash_file;
use crate::observer::{Counted, Observer};
use crate::plan::resources::{cores, memory_budget};
use crate::plugin::Registry;
use crate::plugin::factory::Factory;
use crate::results::RunRecord;

/// What is to be learned from what.
#[derive(Debug, Clone)]
pub struct FitRequest {
    /// The labelled data.
    pub data: Vec<FitData>,
    /// What the pipeline's space does to vectors before distances are taken.
    pub normalize: Normalize,
    /// Composers of libraries that are judged, the simplest first.
    pub composers: Vec<LibraryComposer>,
    /// The source of randomness: where not everything can be tried, it says what is.
    pub seed: u64,
    /// How many threads may be used; all cores if not given.
    pub threads: Option<usize>,
}

/// A composer of a library.
#[derive(Debug, Clone)]
pub struct LibraryComposer {
    /// The component's name.
    pub component: String,
    /// Its parameters, an object; `None` for its defaults.
    pub params: Option<serde_json::Value>,
}

impl LibraryComposer {
    /// How it is called in a judgement.
    pub fn name(&self) -> String {
        let Self { component, params } = self;
        params.as_ref().map_or_else(|| component.clone(), |params| format!("{component} {params}"))
    }
}

/// A composition function that was learned, and what is known about it.
#[derive(Debug)]
pub struct FittedComposer {
    fitted: Bilinear,
    scaled: Bilinear,
    judgement: Judgement,
}

/// Which composition function a file of weights is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The fitted one.
    Fitted,
    /// c·(a + b), that is W₁ = c·I and nothing else.
    ScaledSum,
}

impl FittedComposer {
    /// What was found out.
    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// Writes weights for the component `bilinear`, with the judgement inside.
    ///
    /// # Errors
    /// If the file cannot be written; one that was there before is still there then.
    pub fn write(&mut self, path: &Path, written: Written) -> Result<()> {
        let (g, name) = match written {
            Written::Fitted => (&self.fitted, FITTED),
            Written::ScaledSum => (&self.scaled, SCALED),
        };
        self.judgement.written = name.to_owned();
        weights::write(path, g, &self.judgement)
    }
}

/// Learns a composition function and judges it beside others. Paths in parameters are relative to `folder`.
///
/// # Errors
/// If the data cannot be read or does not tell how things compose, or a composer fails.
pub fn fit_composer(
    request: &FitRequest,
    registry: &Registry,
    folder: &Path,
    observer: &Arc<dyn Observer>,
    cancel: &Cancel,
) -> Result<FittedComposer> {
    let threads = request.threads.unwrap_or_else(cores);
    let factory = Factory::new(registry, folder, observer, cancel, memory_budget());
    let composers = composers(&request.composers, &factory)?;
    let collected = read(request, &factory, threads)?;
    let turned = collected.within(turned(request.normalize));
    let labelled = collected.finish()?;
    let examples: usize = labelled.groups.iter().map(|group| group.rows.len() / labelled.dim).sum();
    let mut warnings = labelled.left_out.clone();
    let design = Design::new(&labelled)?;
    let folds = Folds::new(&labelled, request.seed);
    let every: Vec<usize> = (0..design.weights.len()).collect();
    warnings.extend(constant_columns(&labelled));
    // Whoever has a number for every union knows unions of these labels by heart, and nothing of others.
    let by_heart = !folds.labels_unseen && folds.different <= 2 * labelled.dim + 1;
    if !folds.labels_unseen {
        let (count, labels) = (folds.classes, labelled::plural(folds.classes, "label"));
        let features = 2 * labelled.dim + 1;
        warnings.push(match by_heart {
            true => format!(
                "with {count} {labels} there are too few labels to hold some out: predictions are of unions that were not seen, \
                 but whose labels were. With {features} numbers to weigh and {} the fitted g can know these labels by heart, so its \
                 own row says nothing about new ones, and it is not recommended; single examples of five labels or more and \
                 unions of them would show what it is worth",
                plural(folds.different, "union")
            ),
            false => format!(
                "with {count} {labels} there are too few labels to hold some out: predictions are of unions that were not seen, but \
                 whose labels were, and new labels may do worse"
            ),
        });
    }
    let errors = Errors::new(
        &labelled,
        &design,
        &folds,
        threads,
        cancel,
        &*observer.work("settling λ on unions held out"),
    )?;
    let curve = errors.curve();
    let lambda = search::best(&curve);
    let ridge = design.fit(&every);
    let (fitted, scaled) = (ridge.solve(lambda)?, design.scaled_sum(ridge.scale));

    let fold_fits = |lambda: &(dyn Fn(&Fold) -> f64 + Sync)| -> Result<Vec<Bilinear>> {
        let fit = |at: usize| {
            let fold = &folds.folds[at];
            design.fit(&fold.train).solve(lambda(fold))
        };
        parallel::map(folds.folds.len(), threads, cancel, &*observer.work("fitting without what is held out"), fit)
    };
    let mut judged: Vec<(&str, Judged<'_>)> =
        composers.iter().map(|(name, composer)| (name.as_str(), Judged::One(composer as &dyn Composer))).collect();
    judged.push((SCALED, Judged::Fitted(fold_fits(&|_| f64::INFINITY)?)));
    judged.push((FITTED, Judged::Fitted(fold_fits(&|fold| errors.lambda_without(fold))?)));
    let judge = Judge::new(&labelled, &folds, request.seed);
    let found = parallel::map(judged.len(), threads, cancel, &*observer.work("judging composers"), |at| {
        let (name, composer) = &judged[at];
        judge.judge(composer).map_err(|error| error.context(format!("composer `{name}`")))
    })?;

    let spread = labelled.spread(LabelSet::is_union);
    let p = judge.exchanged(&found)?;
    let composed: Vec<Composed> = (0..judged.len())
        .map(|at| {
            let p = p.as_ref().map(|p| p[at]);
            Composed { p, ..describe(judged[at].0, &found[at], &judge, spread) }
        })
        .collect();
    let asked = found.iter().map(|found| found.examples).max().unwrap_or(0);
    let best = composed.iter().filter_map(|composed| composed.accuracy).reduce(f64::max);
    if let Some(best) = best {
        warnings.extend(other_space(turned, &composers, best, asked, request)?);
    }
    let errors_of: Vec<Vec<f64>> = found.into_iter().map(|found| found.errors).collect();
    // The fitted one is the last.
    let eligible = composed.len() - usize::from(by_heart);
    let taken = judgement::simplest(&errors_of[..eligible], judge.between());
    let holds = judgement::holds(&composed[taken]);
    let for_examples = judgement::better_for_examples(&composed[..eligible], taken, asked);
    warnings.extend(doubts(&composed[taken], holds));
    let judgement = Judgement {
        compflow: env!("CARGO_PKG_VERSION").to_owned(),
        data: request.data.iter().map(|data| data.path.clone()).collect(),
        normalize: request.normalize,
        examples,
        dim: labelled.dim,
        trials: labelled.groups.len(),
        labels: labelled.groups.iter().map(|group| group.names.len()).sum(),
        classes: folds.classes,
        unions: design.weights.len(),
        degree: labelled.degree,
        labels_unseen: folds.labels_unseen,
        folds: folds.folds.len(),
        lambda: finite(lambda),
        curve: search::GRID.iter().zip(curve).map(|(&l, error)| Tried { lambda: finite(l), error }).collect(),
        scale: ridge.scale,
        spread: spread.map(f64::sqrt),
        take: composed[taken].name.clone(),
        take_for_examples: for_examples.map(|at| composed[at].name.clone()),
        composers: composed,
        holds,
        warnings,
        written: String::new(),
    };
    Ok(FittedComposer { fitted, scaled, judgement })
}

/// That some columns say nothing, and what becomes of them.
fn constant_columns(labelled: &Labelled) -> Option<String> {
    const LISTED: usize = 8;
    let constants = labelled.constants();
    let mut numbers: Vec<String> = constants.iter().take(LISTED).map(|(at, _)| at.to_string()).collect();
    if constants.len() > LISTED {
        numbers.push(format!("{} more", constants.len() - LISTED));
    }
    let (are, say) = match constants.len() {
        0 => return None,
        1 => ("number of the embeddings is", "says"),
        _ => ("numbers of the embeddings are", "say"),
    };
    Some(format!(
        "{} {are} the same in all examples ({}, counted from 0) and {say} nothing about unions; the scaled sum and the fitted g \
         are fitted without and return the value, while `sum` adds it up",
        constants.len(),
        numbers.join(", ")
    ))
}

/// The judgements inside the files of weights that a run was made with, if these are still the same: file and judgement.
pub fn judgements(record: &RunRecord) -> Vec<(PathBuf, Judgement)> {
    let files = record.inputs.iter().filter(|(path, hash)| {
        path.ends_with(".safetensors")
            && hash_file(Path::new(path), &Cancel::new()).is_ok_and(|found| found == **hash)
    });
    files
        .filter_map(|(path, _)| {
            let content = std::fs::read(path).ok()?;
            Some((PathBuf::from(path), weights::judgement(&content)?))
        })
        .collect()
}

fn composers(wanted: &[LibraryComposer], factory: &Factory) -> Result<Vec<(String, ForeignComposer)>> {
    wanted
        .iter()
        .map(|composer| {
            let (name, params) = (&composer.component, composer.params.as_ref());
            let params = params.map_or_else(|| "{}".to_owned(), ToString::to_string);
            let created = factory.create(Kind::Composer, name, &params, name).map_err(|error| match error {
                // What there is instead says enough.
                error if factory.registry.find(Kind::Composer, name).is_err() => error,
                error => error.context(format!("composer `{name}`")),
            })?;
            Ok((composer.name(), ForeignComposer::try_from(created.instance)?))
        })
        .collect()
}

/// The space that normalises if this one does not, and the other way round.
fn turned(normalize: Normalize) -> Space {
    let normalize = if normalize == Normalize::None { Normalize::L2 } else { Normalize::None };
    Space { normalize, ..Space::default() }
}

/// That examples find their sets far more often in the other space, if they do by one of the composers that need no fit.
fn other_space(
    collected: Collector,
    composers: &[(String, ForeignComposer)],
    best_here: f64,
    examples: usize,
    request: &FitRequest,
) -> Result<Option<String>> {
    let normalize = collected.space.normalize;
    let labelled = collected.finish()?;
    let folds = Folds::new(&labelled, request.seed);
    let judge = Judge::new(&labelled, &folds, request.seed);
    let mut best = (best_here, None);
    for (name, composer) in composers {
        let found =
            judge.judge(&Judged::One(composer)).map_err(|error| error.context(format!("composer `{name}`")))?;
        let accuracy = found.accuracy.unwrap_or(0.0);
        if accuracy > best.0 && judgement::is_clearly_more(accuracy, best_here, examples) {
            best = (accuracy, Some(name));
        }
    }
    let option = if normalize == Normalize::L2 { "l2" } else { "none" };
    Ok(best.1.map(|name| {
        format!(
            "`--normalize {option}` may suit this data better: with `{name}`, {:.1} % of the examples are given to their own set there \
             if one example of every label is known, and {:.1} % here at best",
            100.0 * best.0,
            100.0 * best_here
        )
    }))
}

fn read(request: &FitRequest, factory: &Factory, threads: usize) -> Result<Collector> {
    let progress = factory.observer.count(Counted::Data, request.data.len());
    let mut collector = Collector::new(Space { normalize: request.normalize, ..Space::default() });
    for (at, data) in request.data.iter().enumerate() {
        let (dataset, has_trials) = source::read(data, factory, threads)?;
        let rows: usize = dataset.trials.iter().map(crate::data::Trial::size).sum();
        factory.observer.log(
            Level::Info,
            &data.path,
            &format!("loaded {} of {}", plural(rows, "row"), dataset.dim),
        );
        collector.add(at, &data.path, &dataset, has_trials)?;
        progress.advance(at as u64 + 1, request.data.len() as u64);
    }
    Ok(collector)
}

fn describe(name: &str, found: &Found, judge: &Judge<'_>, spread: Option<f64>) -> Composed {
    let count = found.errors.len().max(1) as f64;
    let error = found.errors.iter().sum::<f64>() / count;
    // The means are not exactly where their sets are, which is nobody's fault.
    let noise = |set: &LabelSet| spread.map_or(0.0, |spread| spread / set.count);
    let noise: Vec<f64> = judge.judged().map(|(_, set)| noise(set)).collect();
    let beyond = (error - noise.iter().sum::<f64>() / count).max(0.0);
    let (mut missed, mut from_centre) = (0.0, 0.0);
    for ((error, noise), centre) in found.errors.iter().zip(&noise).zip(judge.distances_from_centre()) {
        if let Some(centre) = centre {
            missed += error - noise;
            from_centre += centre - noise;
        }
    }
    Composed {
        name: name.to_owned(),
        error,
        miss: spread.map(|spread| (beyond / spread).sqrt()),
        explained: (from_centre > 0.0).then(|| 1.0 - missed.max(0.0) / from_centre),
        nearest: found.nearest,
        accuracy: found.accuracy,
        central: found.central,
        p: None,
    }
}

/// What is to be said if unions do not lie where their members say.
fn doubts(taken: &Composed, holds: Option<bool>) -> Option<String> {
    match holds {
        Some(true) => None,
        None => Some("there are too few unions to tell whether composition holds in this data".to_owned()),
        Some(false) => {
            let chance = taken.p.filter(|p| *p >= 0.05).map(|p| {
                format!("predictions for other unions come as near in {:.0} of 100 exchanges", 100.0 * p)
            });
            let centre = match taken.explained {
                Some(explained) if explained > 0.0 => None,
                Some(_) => Some("the common centre of the other unions predicts a union as well".to_owned()),
                None => Some("unions differ from one another no more than by chance".to_owned()),
            };
            let nearest = (taken.nearest < judgement::LEAST_NEAREST).then(|| {
                let share = 100.0 * taken.nearest;
                format!(
                    "only {share:.0} of 100 unions lie nearer to their own prediction than to that of another set"
                )
            });
            let reasons: Vec<String> = chance.into_iter().chain(centre).chain(nearest).collect();
            Some(format!(
                "composition does not hold in this data: even with the best g ({}) {}; clusterers that look for unions will \
                 not find these",
                taken.name,
                reasons.join(", and ")
            ))
        }
    }
}

fn finite(lambda: f64) -> Option<f64> {
    Some(lambda).filter(|lambda| lambda.is_finite())
}
