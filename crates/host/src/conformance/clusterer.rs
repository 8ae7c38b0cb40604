//! The points about clusterers.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use compflow_api::{
    BATCH_ROWS, Batch, Clusterer, Clustering, Code, Composer, Embeddings, Error, Flags, Fold, ForeignClusterer,
    IMPOSSIBLE, Partial, Result, Rows, Services, Sets, Shape, StreamTask, Table, Task,
};

use crate::conformance::examples::{self, Contents, Examples};
use crate::conformance::leak;
use crate::conformance::report::{Verdict, point, require, survived};
use crate::conformance::subject::{MEMORY, Subject, Watch};

/// How long a component may go on once its work is no longer wanted.
const STOPS: Duration = Duration::from_secs(1);

/// Work that takes each of its threads longer than this says how far it is.
const SPEAKS: Duration = Duration::from_millis(200);

/// How long that is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the instances under test are given.
#[derive(Debug, Clone)]
struct Wants {
    flags: Flags,
    /// Further columns by name, and what they hold.
    columns: Vec<String>,
    contents: Contents,
}

impl Wants {
    fn of(subject: &Subject) -> Self {
        let instance = subject.instance(&subject.params).ok();
        let flags = instance.as_ref().and_then(|instance| instance.flags().ok()).unwrap_or_default();
        let columns = instance.as_ref().and_then(|instance| instance.columns().ok()).unwrap_or_default();
        Self { flags, columns, contents: Contents::Floats }
    }

    fn table(&self, rows: usize) -> Table {
        examples::columns(&self.columns, self.contents, rows)
    }

    fn task<'a>(
        &self,
        examples: &'a Examples,
        columns: &'a Table,
        degree: usize,
        composer: &'a dyn Composer,
    ) -> Task<'a> {
        Task {
            degree,
            composer: Some(composer),
            truth: Some(&examples.truth).filter(|_| self.flags.contains(Flags::NEEDS_TRUTH)),
            columns,
            ..Task::new(Embeddings::new(&examples.values, examples.dim))
        }
    }

    fn cluster(
        &self,
        subject: &Subject,
        clusterer: &ForeignClusterer,
        examples: &Examples,
        degree: usize,
        seed: u64,
        threads: usize,
    ) -> Result<Clustering> {
        let (watch, composer) = (subject.watch(), examples::composer()?);
        let columns = self.table(examples.truth.len());
        let found =
            clusterer.cluster(&self.task(examples, &columns, degree, &composer), &watch.services(seed, threads));
        require(watch.odd.load(Ordering::Relaxed) == 0, || "says that more is done than there is".to_owned())?;
        found
    }
}

pub(crate) fn test(subject: &'static Subject) {
    let small = examples::mixture(60, 4);
    let mut wants = Wants::of(subject);
    if !wants.columns.is_empty() {
        point("takes the columns that it asks for", || {
            let mut refused = Error::new("");
            for contents in Contents::ALL {
                wants.contents = contents;
                match wants.cluster(subject, &subject.make()?, &small, 2, 1, 1) {
                    Ok(_) => return Ok(Verdict::Pass),
                    Err(error) => refused = error,
                }
            }
            Err(refused)
        });
    }
    let wants: &'static Wants = Box::leak(Box::new(wants));
    let run =
        |examples: &Examples, seed, threads| wants.cluster(subject, &subject.make()?, examples, 2, seed, threads);
    // The boundary refuses sets that are larger than the degree, or empty without leave.
    point("clusters into feasible sets", || {
        for degree in [1, 2] {
            let clusterer: ForeignClusterer = subject.make()?;
            wants.cluster(subject, &clusterer, &small, degree, 1, 1)?;
            clusterer.close()?;
        }
        Ok(Verdict::Pass)
    });
    point("gives the same result with its defaults written out", || {
        let written_out: ForeignClusterer = subject.make_with(&subject.written_out())?;
        same(&run(&small, 1, 1)?, &wants.cluster(subject, &written_out, &small, 2, 1, 1)?)
    });
    point("gives the same result for the same seed", || {
        let clusterer: ForeignClusterer = subject.make()?;
        let first = wants.cluster(subject, &clusterer, &small, 2, 7, 1)?;
        same(&first, &wants.cluster(subject, &clusterer, &small, 2, 7, 1)?)?;
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
        let first = wants.cluster(subject, &clusterer, &small, 2, 1, 1)?;
        std::thread::scope(|scope| {
            let at_once = [(); 4].map(|()| scope.spawn(|| wants.cluster(subject, &clusterer, &small, 2, 1, 1)));
            for result in at_once {
                let found = result.join().map_err(|_| Error::new("a thread of the test panicked"))??;
                same(&first, &found)?;
            }
            Ok(Verdict::Pass)
        })
    });
    point("leaves what it is given alone", || leaves_alone(subject, wants, &small));
    let streams = subject.make::<ForeignClusterer>().and_then(|clusterer| clusterer.streams());
    if !matches!(streams, Ok(false)) {
        point("gives the same result batch by batch", || {
            streams?;
            let (clusterer, watch, composer) =
                (subject.make::<ForeignClusterer>()?, subject.watch(), examples::composer()?);
            let columns = wants.table(small.truth.len());
            let task = wants.task(&small, &columns, 2, &composer);
            let streamed = clusterer.cluster_stream(&task.stream(), &watch.services(1, 1))?;
            same(&clusterer.cluster(&task, &watch.services(1, 1))?, &streamed)
        });
    }
    if wants.flags.contains(Flags::HAS_PARTIAL) {
        point("finds the same in examples that are elsewhere", || elsewhere(subject, wants, Flags::NONE));
        let told = [
            ("heeds the weights of examples that are elsewhere", Flags::USES_WEIGHTS),
            ("heeds known sets of examples that are elsewhere", Flags::USES_SEEDS),
        ];
        for (name, told) in told.into_iter().filter(|(_, told)| wants.flags.contains(*told)) {
            point(name, || elsewhere(subject, wants, told));
        }
    }
    if wants.flags.contains(Flags::USES_WEIGHTS) {
        weights(subject, wants, &small);
    }
    if wants.flags.contains(Flags::USES_SEEDS) {
        seeds(subject, wants, &small);
    }
    let hard = [
        ("survives a single example", examples::mixture(1, 4)),
        ("survives no examples", examples::mixture(0, 4)),
        ("survives the same example many times", examples::duplicated(40, 4)),
        ("survives huge values", examples::huge(40, 4)),
    ];
    for (name, examples) in &hard {
        point(name, || {
            survived(&run(examples, 1, 2))?;
            Ok(Verdict::Pass)
        });
    }
    point("states its memory", || states_memory(&subject.make()?));
    point("keeps to its budget", || keeps_to_budget(subject, wants, &small));
    let tiny = examples::mixture(6, 2);
    point("loses no memory", || {
        leak::none(|| {
            let clusterer: ForeignClusterer = subject.make()?;
            // Few examples may be refused; that must not cost memory either.
            let outcome = wants.cluster(subject, &clusterer, &tiny, 2, 1, 1);
            survived(&outcome)?;
            clusterer.close()
        })
    });
    point("says how far it is", || progress(subject, wants));
    // Last, because one that does not stop cannot be waited for.
    point("stops when it is no longer wanted", || stops(subject, wants));
}

/// Bit by bit, NaN included.
fn same(first: &Clustering, second: &Clustering) -> Result<Verdict> {
    let bytes = |found: &Clustering| postcard::to_stdvec(found).map_err(Error::new);
    require(bytes(first)? == bytes(second)?, || "the results differ".to_owned())?;
    Ok(Verdict::Pass)
}

/// Examples that only another instance sees, batch by batch, with what is told of them.
struct Elsewhere<'a> {
    examples: Embeddings<'a>,
    weights: Option<&'a [f32]>,
    seeds: Option<&'a Sets>,
    other: ForeignClusterer,
    services: Services<'a>,
}

impl Rows for Elsewhere<'_> {
    fn len(&self) -> usize {
        self.examples.len()
    }

    fn dim(&self) -> usize {
        self.examples.dim()
    }

    fn pass(&self, _each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
        Err(Error::new("reads examples that are elsewhere"))
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn reduce(&self, state: &[u8]) -> Result<Partial> {
        let (mut fold, mut batches) = (Fold::new(), 0);
        self.examples.pass(&mut |batch| {
            let first = batches as usize * BATCH_ROWS;
            let seeds = self.seeds.map(|all| all.iter().skip(first).take(batch.len()).collect::<Sets>());
            let batch = Batch {
                weights: self.weights.map(|all| &all[first..][..batch.len()]),
                seeds: seeds.as_ref(),
                ..Batch::new(first as u64, batch)
            };
            fold.push(batches, self.other.partial(state, &batch, &self.services)?)?;
            batches += 1;
            Ok(())
        })?;
        fold.finish(batches)
    }
}

/// More than a batch of them, with weights or known sets if the flag is that, and what is found in them is what is found
/// here, but for the assignments.
fn elsewhere(subject: &Subject, wants: &Wants, told: Flags) -> Result<Verdict> {
    let examples = examples::mixture(BATCH_ROWS + 64, 2);
    let numbers: Vec<f32> = (0..examples.truth.len()).map(|row| (row % 4) as f32).collect();
    let some = |row: usize| if row % 1000 == 7 { &examples.truth[row] } else { &[][..] };
    let known: Sets = (0..examples.truth.len()).map(some).collect();
    let weights = (told == Flags::USES_WEIGHTS).then_some(&numbers[..]);
    let seeds = (told == Flags::USES_SEEDS).then_some(&known);
    let (watch, composer, columns) = (subject.watch(), examples::composer()?, wants.table(examples.truth.len()));
    let (clusterer, services) = (subject.make::<ForeignClusterer>()?, watch.services(1, 2));
    let task = Task { weights, seeds, ..wants.task(&examples, &columns, 2, &composer) };
    let here = match clusterer.streams()? {
        true => clusterer.cluster_stream(&task.stream(), &services),
        false => clusterer.cluster(&task, &services),
    };
    let here = match here {
        // Its parameters may not allow for as many singletons as have names.
        Err(error) if seeds.is_some() => return Ok(Verdict::Skip(error.to_string())),
        here => here?,
    };
    let rows = Elsewhere { examples: task.embeddings, weights, seeds, other: subject.make()?, services };
    let there = clusterer.cluster_stream(&StreamTask { rows: &rows, ..task.stream() }, &services)?;
    require(there.assignments.is_empty(), || "assigns examples that are elsewhere".to_owned())?;
    let centres = |found: &Clustering| -> BTreeMap<Vec<u32>, Option<Vec<u32>>> {
        let mut centroids = found.centroids.chunks(examples.dim);
        let mut bits = || Some(centroids.next()?.iter().map(|value| value.to_bits()).collect());
        found.clusters.iter().map(|set| (set.to_vec(), bits())).collect()
    };
    require(centres(&here) == centres(&there) && here.singletons == there.singletons, || {
        "other clusters are found in examples that are elsewhere".to_owned()
    })?;
    Ok(Verdict::Pass)
}

/// What a task points to is the caller's, and other cells use it at the same time.
fn leaves_alone(subject: &Subject, wants: &Wants, small: &Examples) -> Result<Verdict> {
    let (watch, composer, clusterer) =
        (subject.watch(), examples::composer()?, subject.make::<ForeignClusterer>()?);
    let rows = small.truth.len();
    let numbers: Vec<f32> = (0..rows).map(|row| 1.0 + (row % 3) as f32).collect();
    let (preferences, weights, columns) = (numbers.clone(), numbers.clone(), wants.table(rows));
    let mut task = wants.task(small, &columns, 2, &composer);
    task.preferences = Some(&preferences);
    task.weights = Some(&weights[..]).filter(|_| wants.flags.contains(Flags::USES_WEIGHTS));
    let seeds = small.truth.clone();
    task.seeds = Some(&seeds).filter(|_| wants.flags.contains(Flags::USES_SEEDS));
    let outcome = clusterer.cluster(&task, &watch.services(1, 1));
    survived(&outcome)?;
    let before = examples::mixture(rows, small.dim);
    // The compiler knows nothing that makes these comparisons needless.
    let kept = |now: &[f32], then: &[f32]| black_box(now) == then;
    let written = [
        ("the embeddings", !kept(&small.values, &before.values)),
        ("the true sets", *black_box(&small.truth) != before.truth),
        ("the preferences", !kept(&preferences, &numbers)),
        ("the weights", !kept(&weights, &numbers)),
        ("the known sets", *black_box(&seeds) != before.truth),
    ];
    match written.iter().find(|(_, written)| *written) {
        Some((what, _)) => Err(Error::new(format!("writes into {what}"))),
        None => Ok(Verdict::Pass),
    }
}

fn weights(subject: &Subject, wants: &Wants, small: &Examples) {
    let weighted = |weights: Option<&[f32]>| -> Result<Clustering> {
        let (watch, composer) = (subject.watch(), examples::composer()?);
        let columns = wants.table(small.truth.len());
        let task = Task { weights, ..wants.task(small, &columns, 2, &composer) };
        subject.make::<ForeignClusterer>()?.cluster(&task, &watch.services(1, 1))
    };
    let rows = small.truth.len();
    point("takes weights of 1 for none", || same(&weighted(None)?, &weighted(Some(&vec![1.0; rows]))?));
    point("survives weights of 0", || {
        let some: Vec<f32> = (0..rows).map(|row| (row % 2) as f32).collect();
        survived(&weighted(Some(&some)))?;
        survived(&weighted(Some(&vec![0.0; rows])))?;
        Ok(Verdict::Pass)
    });
}

/// The boundary refuses a result in which a known set is another one.
fn seeds(subject: &Subject, wants: &Wants, small: &Examples) {
    let seeded = |seeds: Option<&Sets>| -> Result<Clustering> {
        let (watch, composer) = (subject.watch(), examples::composer()?);
        let columns = wants.table(small.truth.len());
        let task = Task { seeds, ..wants.task(small, &columns, 2, &composer) };
        let (clusterer, services) = (subject.make::<ForeignClusterer>()?, watch.services(1, 1));
        match clusterer.streams()? {
            true => clusterer.cluster_stream(&task.stream(), &services),
            false => clusterer.cluster(&task, &services),
        }
    };
    let rows = small.truth.len();
    let known = |row: &dyn Fn(usize) -> Option<usize>| -> Sets {
        (0..rows).map(|at| row(at).map_or(&[][..], |row| &small.truth[row])).collect()
    };
    point("takes known sets that are all empty for none", || {
        same(&seeded(None)?, &seeded(Some(&known(&|_| None)))?)
    });
    let all: [(&str, Sets); 4] = [
        ("keeps a few known sets", known(&|row| Some(row).filter(|row| row % 5 == 0))),
        (
            "keeps known unions whose members are never alone",
            known(&|row| Some(row).filter(|row| row % 6 > 2 && *row < 9)),
        ),
        (
            "keeps known sets that the examples do not bear out",
            known(&|row| Some((row + 1) % rows).filter(|_| row < 12)),
        ),
        ("keeps the known sets of all examples", known(&Some)),
    ];
    for (name, seeds) in &all {
        point(name, || {
            let found = seeded(Some(seeds));
            survived(&found)?;
            match found {
                Err(error) if error.to_string().starts_with(IMPOSSIBLE) => Err(error),
                // Its parameters may not allow for three singletons.
                Err(error) => Ok(Verdict::Skip(error.to_string())),
                Ok(_) => Ok(Verdict::Pass),
            }
        });
    }
}

/// Nothing, or what is enough for a few examples, and more for more; the size of the data is the user's, so none may make
/// it overflow.
fn states_memory(clusterer: &ForeignClusterer) -> Result<Verdict> {
    let stated = |rows, dim| -> Result<u64> {
        let bytes = clusterer.memory(Shape { rows, dim, degree: 2 }, &Services::none());
        survived(&bytes)?;
        // More than can be counted is refused as well as it is stated.
        Ok(bytes.unwrap_or(u64::MAX))
    };
    let (few, many, most) = (stated(60, 4)?, stated(6000, 4)?, stated(1 << 40, 1 << 20)?);
    require(few < MEMORY, || format!("states {few} bytes for 60 examples of 4 numbers"))?;
    require(few <= many && many <= most, || {
        format!("states {few}, {many} and {most} bytes for 60, 6000 and {} examples", 1u64 << 40)
    })?;
    Ok(Verdict::Pass)
}

/// The host refuses work that is over the budget, but who has less than was stated need not be the host. What a
/// component makes do with is its own affair; if it refuses, the budget is to blame.
fn keeps_to_budget(subject: &Subject, wants: &Wants, small: &Examples) -> Result<Verdict> {
    let clusterer: ForeignClusterer = subject.make()?;
    let rows = small.truth.len();
    let stated = clusterer.memory(Shape { rows, dim: small.dim, degree: 2 }, &Services::none())?;
    if stated == 0 {
        return Ok(Verdict::Pass);
    }
    let (watch, composer, columns) = (subject.watch(), examples::composer()?, wants.table(rows));
    let services = Services { memory: stated - 1, ..watch.services(1, 1) };
    let Err(error) = clusterer.cluster(&wants.task(small, &columns, 2, &composer), &services) else {
        return Ok(Verdict::Pass);
    };
    require(!error.problems().is_empty() && error.problems().iter().all(|it| it.code == Code::Budget), || {
        format!("states {stated} bytes, and with one less fails without the code of the budget: {error}")
    })?;
    Ok(Verdict::Pass)
}

/// More work than can be done in a blink.
fn large() -> Examples {
    examples::mixture(3000, 16)
}

fn progress(subject: &Subject, wants: &Wants) -> Result<Verdict> {
    let (examples, clusterer) = (large(), subject.make::<ForeignClusterer>()?);
    let (composer, columns) = (examples::composer()?, wants.table(examples.truth.len()));
    let (watch, threads) = (subject.watch(), 2);
    let (started, before) = (Instant::now(), processor_time());
    let outcome = std::thread::scope(|scope| {
        let services: Services<'_> = watch.services(1, threads);
        let (task, clusterer) = (wants.task(&examples, &columns, 2, &composer), &clusterer);
        let work = scope.spawn(move || clusterer.cluster(&task, &services));
        // A first report is enough.
        while !work.is_finished() && watch.reports.load(Ordering::Relaxed) == 0 && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        watch.cancel.store(1, Ordering::Relaxed);
        work.join()
    });
    let spoke = watch.reports.load(Ordering::Relaxed) > 0;
    match outcome.map_err(|_| Error::new("a thread of the test panicked"))? {
        Ok(_) | Err(Error::Cancelled) => {
            // On a busy machine little work takes long; what hardly works waits for something, and says nothing either.
            let (took, worked) = (started.elapsed(), processor_time() - before);
            let long = worked > SPEAKS * threads as u32 || (took > 2 * SPEAKS && worked < took / 10);
            require(spoke || !long, || format!("worked for {} ms without a word", took.as_millis()))?;
            Ok(Verdict::Pass)
        }
        Err(refused) => {
            let why = refused.to_string();
            survived::<()>(&Err(refused)).map(|()| Verdict::Skip(why))
        }
    }
}

/// What this process has used of its processors.
fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

fn stops(subject: &'static Subject, wants: &'static Wants) -> Result<Verdict> {
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
                let columns = wants.table(examples.truth.len());
                clusterer.cluster(&wants.task(&examples, &columns, 2, &composer), &watch.services(1, 2))
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
