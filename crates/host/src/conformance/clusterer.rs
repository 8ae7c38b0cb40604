//! The points about clusterers.

use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use compflow_api::{Clusterer, Clustering, Composer, Embeddings, Error, ForeignClusterer, Result, Services, Task};

use crate::conformance::examples::{self, Examples};
use crate::conformance::leak;
use crate::conformance::report::{Verdict, point, require, survived};
use crate::conformance::subject::{Subject, Watch};

/// How long a component may go on once its work is no longer wanted.
const STOPS: Duration = Duration::from_secs(1);

/// Work that takes longer than this says how far it is.
const SPEAKS: Duration = Duration::from_millis(200);

pub(crate) fn test(subject: &'static Subject) {
    let small = examples::mixture(60, 4);
    let run = |examples: &Examples, seed, threads| cluster(subject, &subject.make()?, examples, 2, seed, threads);
    point("clusters into feasible sets", || {
        for degree in [1, 2] {
            let clusterer: ForeignClusterer = subject.make()?;
            feasible(&cluster(subject, &clusterer, &small, degree, 1, 1)?, degree)?;
            clusterer.close()?;
        }
        Ok(Verdict::Pass)
    });
    point("gives the same result with its defaults written out", || {
        let written_out: ForeignClusterer = subject.make_with(&subject.written_out())?;
        same(&run(&small, 1, 1)?, &cluster(subject, &written_out, &small, 2, 1, 1)?)
    });
    point("gives the same result for the same seed", || {
        let clusterer: ForeignClusterer = subject.make()?;
        let first = cluster(subject, &clusterer, &small, 2, 7, 1)?;
        same(&first, &cluster(subject, &clusterer, &small, 2, 7, 1)?)?;
        same(&first, &run(&small, 7, 1)?)
    });
    point("gives the same result with any number of threads", || {
        let first = run(&small, 1, 1)?;
        for threads in [2, 4] {
            same(&first, &run(&small, 1, threads)?)?;
        }
        Ok(Verdict::Pass)
    });
    point("gives the same result to several threads at once", || {
        let clusterer: ForeignClusterer = subject.make()?;
        let first = cluster(subject, &clusterer, &small, 2, 1, 1)?;
        std::thread::scope(|scope| {
            let at_once = [(); 4].map(|()| scope.spawn(|| cluster(subject, &clusterer, &small, 2, 1, 1)));
            for result in at_once {
                let found = result.join().map_err(|_| Error::new("a thread of the test panicked"))??;
                same(&first, &found)?;
            }
            Ok(Verdict::Pass)
        })
    });
    let clusterer = subject.make::<ForeignClusterer>();
    if clusterer.as_ref().is_ok_and(Clusterer::streams) {
        point("gives the same result batch by batch", || {
            let clusterer = clusterer?;
            let watch = subject.watch();
            let composer = examples::composer()?;
            let task = task(&small, 2, &composer);
            let streamed = clusterer.cluster_stream(&task.stream(), &watch.services(1, 1))?;
            same(&clusterer.cluster(&task, &watch.services(1, 1))?, &streamed)
        });
    }
    let hard = [
        ("survives a single example", examples::mixture(1, 4)),
        ("survives no examples", examples::mixture(0, 4)),
        ("survives the same example many times", examples::duplicated(40, 4)),
        ("survives huge values", examples::huge(40, 4)),
    ];
    for (name, examples) in &hard {
        point(name, || {
            let outcome = run(examples, 1, 2);
            survived(&outcome)?;
            outcome.map_or(Ok(()), |found| feasible(&found, 2))?;
            Ok(Verdict::Pass)
        });
    }
    let tiny = examples::mixture(6, 2);
    point("loses no memory", || {
        leak::none(|| {
            let clusterer: ForeignClusterer = subject.make()?;
            // Few examples may be refused; that must not cost memory either.
            let outcome = cluster(subject, &clusterer, &tiny, 2, 1, 1);
            survived(&outcome)?;
            clusterer.close()
        })
    });
    point("says how far it is", || progress(subject));
    // Last, because one that does not stop cannot be waited for.
    point("stops when it is no longer wanted", || stops(subject));
}

fn task<'a>(examples: &'a Examples, degree: usize, composer: &'a dyn Composer) -> Task<'a> {
    Task {
        degree,
        composer: Some(composer),
        truth: Some(&examples.truth),
        ..Task::new(Embeddings::new(&examples.values, examples.dim))
    }
}

fn cluster(
    subject: &Subject,
    clusterer: &ForeignClusterer,
    examples: &Examples,
    degree: usize,
    seed: u64,
    threads: usize,
) -> Result<Clustering> {
    let watch = subject.watch();
    let composer = examples::composer()?;
    let found = clusterer.cluster(&task(examples, degree, &composer), &watch.services(seed, threads));
    require(watch.odd.load(Ordering::Relaxed) == 0, || "says that more is done than there is".to_owned())?;
    found
}

/// The boundary has checked the shape; what is left is that no set is larger than the task allows.
fn feasible(found: &Clustering, degree: usize) -> Result<()> {
    let largest = found.assignments.iter().map(<[u32]>::len).max().unwrap_or(0);
    require(largest <= degree, || format!("assigns {largest} clusters to an example at degree {degree}"))
}

/// Bit by bit, NaN included.
fn same(first: &Clustering, second: &Clustering) -> Result<Verdict> {
    let bytes = |found: &Clustering| postcard::to_stdvec(found).map_err(Error::new);
    require(bytes(first)? == bytes(second)?, || "the results differ".to_owned())?;
    Ok(Verdict::Pass)
}

/// More work than can be done in a blink.
fn large() -> Examples {
    examples::mixture(3000, 16)
}

fn progress(subject: &Subject) -> Result<Verdict> {
    let (examples, clusterer) = (large(), subject.make::<ForeignClusterer>()?);
    let composer = examples::composer()?;
    let watch = subject.watch();
    let started = Instant::now();
    let outcome = std::thread::scope(|scope| {
        let services: Services<'_> = watch.services(1, 2);
        let (examples, composer, clusterer) = (&examples, &composer, &clusterer);
        let work = scope.spawn(move || clusterer.cluster(&task(examples, 2, composer), &services));
        // A first report is enough.
        while !work.is_finished() && watch.reports.load(Ordering::Relaxed) == 0 && started.elapsed() < 50 * SPEAKS
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        watch.cancel.store(1, Ordering::Relaxed);
        work.join()
    });
    let spoke = watch.reports.load(Ordering::Relaxed) > 0;
    match outcome.map_err(|_| Error::new("a thread of the test panicked"))? {
        Ok(_) | Err(Error::Cancelled) => {
            require(spoke || started.elapsed() < SPEAKS, || {
                format!("worked for {} ms without a word", started.elapsed().as_millis())
            })?;
            Ok(Verdict::Pass)
        }
        Err(refused) => {
            let why = refused.to_string();
            survived::<()>(&Err(refused)).map(|()| Verdict::Skip(why))
        }
    }
}

fn stops(subject: &'static Subject) -> Result<Verdict> {
    let mut late = Duration::ZERO;
    // A second try, because a busy machine may be at fault.
    for _ in 0..2 {
        let (sender, receiver) = channel();
        // Work that does not stop goes on after this function, so what it uses must stay.
        let watch: &'static Watch<'_> = Box::leak(Box::new(subject.watch()));
        std::thread::spawn(move || {
            let work = || -> Result<Clustering> {
                let (examples, composer) = (large(), examples::composer()?);
                let clusterer: ForeignClusterer = subject.make()?;
                clusterer.cluster(&task(&examples, 2, &composer), &watch.services(1, 2))
            };
            let _ = sender.send(work());
        });
        let early = receiver.recv_timeout(Duration::from_millis(150));
        watch.cancel.store(1, Ordering::Relaxed);
        let raised = Instant::now();
        match early.or_else(|_| receiver.recv_timeout(10 * STOPS)) {
            Err(_) => return Err(Error::new("went on for more than 10 s")),
            Ok(Ok(_) | Err(Error::Cancelled)) if raised.elapsed() <= STOPS => return Ok(Verdict::Pass),
            Ok(Ok(_) | Err(Error::Cancelled)) => late = raised.elapsed(),
            Ok(Err(refused)) => {
                let why = refused.to_string();
                return survived::<()>(&Err(refused)).map(|()| Verdict::Skip(why));
            }
        }
    }
    Err(Error::new(format!("went on for {:.1} s", late.as_secs_f64())))
}
