//! The points about evaluators.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use compflow_api::{
    Embeddings, Error, Evaluation, Evaluator, Flags, ForeignEvaluator, Metric, Result, Rows, Sets, Table, Unit,
};

use crate::conformance::examples::{self, Contents, Numbers};
use crate::conformance::leak;
use crate::conformance::report::{Verdict, point, require, survived};
use crate::conformance::subject::{Subject, Watch};

/// How long it may go on once its work is no longer wanted.
const STOPS: Duration = Duration::from_secs(1);

/// Length of an embedding.
const DIM: usize = 3;

/// Clusterings to score, with all that an evaluator may need.
struct Material {
    truth: Sets,
    predicted: Sets,
    values: Vec<f32>,
    clusters: Sets,
    centroids: Vec<f32>,
    columns: Table,
}

impl Material {
    fn new(truth: Sets, predicted: Sets) -> Self {
        let values = Numbers(9).signed(predicted.len() * DIM, 1.0);
        let clusters: BTreeSet<&[u32]> = predicted.iter().filter(|set| !set.is_empty()).collect();
        let mut centroids = Vec::new();
        for cluster in &clusters {
            let of: Vec<usize> = (0..predicted.len()).filter(|&row| predicted[row] == **cluster).collect();
            let mean = |at: usize| of.iter().map(|row| values[row * DIM + at]).sum::<f32>() / of.len() as f32;
            centroids.extend((0..DIM).map(mean));
        }
        let clusters = clusters.into_iter().collect();
        Self { truth, predicted, values, clusters, centroids, columns: Table::new() }
    }

    fn score(
        &self,
        subject: &Subject,
        evaluator: &ForeignEvaluator,
        given: Given,
        threads: usize,
    ) -> Result<Vec<f64>> {
        self.score_watched(evaluator, given, &subject.watch(), threads)
    }

    fn score_watched(
        &self,
        evaluator: &ForeignEvaluator,
        given: Given,
        watch: &Watch<'_>,
        threads: usize,
    ) -> Result<Vec<f64>> {
        let embeddings = Embeddings::new(&self.values, DIM);
        let evaluation = Evaluation {
            truth: given.truth.then_some(&self.truth),
            rows: given.embeddings.then_some(&embeddings as &dyn Rows),
            degree: 2,
            clusters: given.embeddings.then_some(&self.clusters),
            centroids: (given.embeddings && given.centroids).then_some(&self.centroids),
            columns: &self.columns,
            ..Evaluation::new(&self.predicted, &self.truth)
        };
        evaluator.evaluate(&evaluation, &watch.services(1, threads))
    }
}

/// What is handed over besides the predicted sets.
#[derive(Clone, Copy)]
struct Given {
    truth: bool,
    embeddings: bool,
    centroids: bool,
}

pub(crate) fn test(subject: &'static Subject) {
    let instance = subject.make::<ForeignEvaluator>().ok();
    let flags = instance.as_ref().and_then(|instance| instance.flags().ok()).unwrap_or_default();
    let columns = instance.and_then(|instance| instance.columns().ok()).unwrap_or_default();
    let given = Given { truth: true, embeddings: flags.contains(Flags::NEEDS_EMBEDDINGS), centroids: true };
    let mut contents = Contents::Floats;
    let material = |truth: &Sets, predicted: &Sets, contents| Material {
        columns: examples::columns(&columns, contents, predicted.len()),
        ..Material::new(truth.clone(), predicted.clone())
    };
    let truth = sets(40, 1);
    let predicted = mistaken(&truth);
    if !columns.is_empty() {
        point("takes the columns that it asks for", || {
            let mut refused = Error::new("");
            for tried in Contents::ALL {
                contents = tried;
                match material(&truth, &predicted, contents).score(subject, &subject.make()?, given, 1) {
                    Ok(_) => return Ok(Verdict::Pass),
                    Err(error) => refused = error,
                }
            }
            Err(refused)
        });
    }
    let evaluate = |truth: &Sets, predicted: &Sets, threads| -> Result<Vec<f64>> {
        material(truth, predicted, contents).score(subject, &subject.make()?, given, threads)
    };
    point("names its metrics, each once", || {
        let metrics = subject.make::<ForeignEvaluator>()?.try_metrics()?;
        require(!metrics.is_empty(), || "reports no metric".to_owned())?;
        for (at, metric) in metrics.iter().enumerate() {
            require(metrics[..at].iter().all(|other| other.name != metric.name), || {
                format!("reports `{}` twice", metric.name)
            })?;
        }
        Ok(Verdict::Pass)
    });
    point("says what its metrics are", || {
        subject.make::<ForeignEvaluator>()?.try_metrics()?.iter().try_for_each(is_possible)?;
        Ok(Verdict::Pass)
    });
    point("scores with numbers", || {
        for (name, predicted) in [("other", &predicted), ("the same", &truth)] {
            numbers(&format!("{name} sets"), &evaluate(&truth, predicted, 1)?)?;
        }
        Ok(Verdict::Pass)
    });
    point("scores within its ranges", || {
        let metrics = subject.make::<ForeignEvaluator>()?.try_metrics()?;
        let scored = [(&truth, &predicted), (&truth, &truth), (&predicted, &sets(40, 3))];
        for (truth, predicted) in scored {
            for (Metric { name, range: (least, most), .. }, score) in
                metrics.iter().zip(evaluate(truth, predicted, 1)?)
            {
                // Sums of many rounded numbers may be a little beyond.
                let slack = 1e-9 * score.abs().max(1.0);
                require(score >= least - slack && score <= most + slack, || {
                    format!("`{name}` is {score}, which is not between {least} and {most}")
                })?;
            }
        }
        Ok(Verdict::Pass)
    });
    let first = || evaluate(&truth, &predicted, 1);
    point("gives the same result with its defaults written out", || {
        let written_out: ForeignEvaluator = subject.make_with(&subject.written_out())?;
        same(&first()?, &material(&truth, &predicted, contents).score(subject, &written_out, given, 1)?)
    });
    point("gives the same result every time", || same(&first()?, &first()?));
    point("gives the same result with any number of threads", || {
        same(&first()?, &evaluate(&truth, &predicted, 4)?)
    });
    point("takes labels for names without meaning", || {
        // Another name for every label, in another order.
        let renamed = |sets: &Sets| {
            sets.iter().map(|set| set.iter().map(|label| 90 - 7 * label).collect::<Vec<_>>()).collect()
        };
        let (scores, of_renamed) = (first()?, evaluate(&renamed(&truth), &renamed(&predicted), 1)?);
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
        require(scores.iter().zip(&of_renamed).all(near), || format!("{scores:?} becomes {of_renamed:?}"))?;
        Ok(Verdict::Pass)
    });
    point("scores empty sets", || {
        // Both, either and neither: "none of them" is a set like any other.
        let without = |sets: &Sets, every: usize| -> Sets {
            (0..sets.len()).map(|row| if row % every == 0 { &[][..] } else { &sets[row] }).collect()
        };
        let (some, others) = (without(&truth, 3), without(&predicted, 5));
        for (truth, predicted) in [(&some, &others), (&some, &predicted), (&truth, &others)] {
            numbers("sets of which some are empty", &evaluate(truth, predicted, 1)?)?;
        }
        Ok(Verdict::Pass)
    });
    let with = |given: Given| material(&truth, &predicted, contents).score(subject, &subject.make()?, given, 1);
    if !flags.contains(Flags::NEEDS_TRUTH) {
        point("scores without the truth", || numbers("sets", &with(Given { truth: false, ..given })?));
    }
    if given.embeddings {
        point("scores with and without centroids", || {
            numbers("sets with centroids", &with(given)?)?;
            survived(&with(Given { centroids: false, ..given }))?;
            Ok(Verdict::Pass)
        });
    }
    let survives =
        |truth: &Sets, predicted: &Sets| survived(&evaluate(truth, predicted, 1)).map(|()| Verdict::Pass);
    point("survives a single example", || survives(&sets(1, 1), &sets(1, 2)));
    point("survives no examples", || survives(&Sets::default(), &Sets::default()));
    point("survives the same example many times", || {
        survives(&Sets::singletons(&[3; 40]), &Sets::singletons(&[5; 40]))
    });
    point("survives large labels", || {
        survives(&Sets::singletons(&[u32::MAX; 5]), &Sets::singletons(&[0, 1, 2, u32::MAX - 1, u32::MAX]))
    });
    point("loses no memory", || {
        let few = material(&sets(5, 1), &sets(5, 1), contents);
        leak::none(|| {
            let evaluator: ForeignEvaluator = subject.make()?;
            // Few examples may be refused; that must not cost memory either.
            survived(&few.score(subject, &evaluator, given, 1))?;
            evaluator.close()
        })
    });
    // Last, because one that does not stop cannot be waited for.
    let many = material(&sets(20_000, 1), &sets(20_000, 2), contents);
    point("stops when it is no longer wanted", || stops(subject, many, given));
}

fn numbers(what: &str, scores: &[f64]) -> Result<Verdict> {
    require(scores.iter().all(|score| score.is_finite()), || format!("scores {what} {scores:?}"))?;
    Ok(Verdict::Pass)
}

/// A range is from a number to a larger one, and nothing is less than none.
fn is_possible(metric: &Metric) -> Result<()> {
    let Metric { name, unit, range: (least, most), .. } = metric;
    // NaN is not less than anything.
    require(least < most, || format!("`{name}` is said to be between {least} and {most}"))?;
    require(*least >= 0.0 || !matches!(unit, Unit::Count | Unit::Distance), || {
        format!("`{name}` counts or is a distance, and is said to be {least} at least")
    })
}

/// Sets of one or two of ten labels.
fn sets(rows: usize, seed: u64) -> Sets {
    let mut numbers = Numbers(seed);
    (0..rows)
        .map(|_| {
            let (a, b) = ((numbers.next() * 10.0) as u32, (numbers.next() * 10.0) as u32);
            if a == b { vec![a] } else { vec![a.min(b), a.max(b)] }
        })
        .collect()
}

/// The truth but for every fifth set: near enough that only one matching of their labels is best.
fn mistaken(truth: &Sets) -> Sets {
    let other = sets(truth.len(), 2);
    (0..truth.len()).map(|row| if row % 5 == 0 { &other[row] } else { &truth[row] }).collect()
}

fn same(first: &[f64], second: &[f64]) -> Result<Verdict> {
    let equal = first.iter().zip(second).all(|(a, b)| a.to_bits() == b.to_bits());
    require(equal && first.len() == second.len(), || format!("the results differ: {first:?}, {second:?}"))?;
    Ok(Verdict::Pass)
}

fn stops(subject: &'static Subject, many: Material, given: Given) -> Result<Verdict> {
    let watch: &'static Watch<'_> = Box::leak(Box::new(subject.watch()));
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let work = || -> Result<Vec<f64>> { many.score_watched(&subject.make()?, given, watch, 2) };
        let _ = sender.send(work());
    });
    let early = receiver.recv_timeout(Duration::from_millis(150));
    watch.cancel.store(1, Ordering::Relaxed);
    let raised = Instant::now();
    match early.or_else(|_| receiver.recv_timeout(10 * STOPS)) {
        Err(_) => Err(Error::new("went on for more than 10 s")),
        Ok(Ok(_) | Err(Error::Cancelled)) => {
            let late = raised.elapsed();
            require(late <= STOPS, || format!("went on for {:.1} s", late.as_secs_f64()))?;
            Ok(Verdict::Pass)
        }
        Ok(failed) => survived(&failed).map(|()| Verdict::Pass),
    }
}
