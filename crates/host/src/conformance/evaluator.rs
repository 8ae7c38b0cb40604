//! The points about evaluators.

use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use compflow_api::{Error, Evaluator, ForeignEvaluator, Result, Sets};

use crate::conformance::examples::Numbers;
use crate::conformance::leak;
use crate::conformance::report::{Verdict, point, require, survived};
use crate::conformance::subject::{Subject, Watch};

/// How long it may go on once its work is no longer wanted.
const STOPS: Duration = Duration::from_secs(1);

pub(crate) fn test(subject: &'static Subject) {
    let truth = sets(40, 1);
    let predicted = mistaken(&truth);
    let evaluate = |truth: &Sets, predicted: &Sets, threads| -> Result<Vec<f64>> {
        let (evaluator, watch) = (subject.make::<ForeignEvaluator>()?, subject.watch());
        evaluator.evaluate(truth, predicted, &watch.services(1, threads))
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
    point("scores with numbers", || {
        for (name, predicted) in [("other", &predicted), ("the same", &truth)] {
            let scores = evaluate(&truth, predicted, 1)?;
            require(scores.iter().all(|score| score.is_finite()), || format!("scores {name} sets {scores:?}"))?;
        }
        Ok(Verdict::Pass)
    });
    let first = || evaluate(&truth, &predicted, 1);
    point("gives the same result with its defaults written out", || {
        let written_out: ForeignEvaluator = subject.make_with(&subject.written_out())?;
        same(&first()?, &written_out.evaluate(&truth, &predicted, &subject.watch().services(1, 1))?)
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
        let few = sets(5, 1);
        leak::none(|| {
            let evaluator: ForeignEvaluator = subject.make()?;
            evaluator.evaluate(&few, &few, &subject.watch().services(1, 1))?;
            evaluator.close()
        })
    });
    // Last, because one that does not stop cannot be waited for.
    point("stops when it is no longer wanted", || stops(subject));
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

fn stops(subject: &'static Subject) -> Result<Verdict> {
    let watch: &'static Watch<'_> = Box::leak(Box::new(subject.watch()));
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let work = || -> Result<Vec<f64>> {
            let (truth, predicted) = (sets(20_000, 1), sets(20_000, 2));
            subject.make::<ForeignEvaluator>()?.evaluate(&truth, &predicted, &watch.services(1, 2))
        };
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
