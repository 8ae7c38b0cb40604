//! A plugin that misbehaves on request, for the host's tests.

#![deny(unsafe_code)]

use std::time::{Duration, Instant};

use compflow_api::{
    Clusterer, Clustering, Component, Composer, Error, Evaluation, Evaluator, Flags, Level, Metric, NoParams,
    Result, Services, Shape, Task, export_library, register,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod good;
mod violations;

export_library!();

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Fault {
    /// Nothing: all examples are put into one cluster.
    None,
    PanicInCreate,
    Panic,
    PanicInDrop,
    Error,
    /// An error on odd seeds, so that some cells fail and others do not.
    Sometimes,
    /// One assignment too few.
    WrongLength,
    /// Never converges, and says nothing of it.
    Drifts,
    /// Likewise, with a warning of its own.
    Wanders,
    /// Works for a minute, and stops when asked to.
    Slow,
    /// Works for a minute, and does not stop when asked to.
    Stubborn,
    /// Ends the process by SIGABRT.
    Abort,
    /// Likewise, where components are made.
    AbortInCreate,
    /// Likewise, where it is asked how much memory it needs.
    AbortInMemory,
    /// Writes where there is no memory.
    Segfault,
    /// Calls itself without end.
    Overflow,
    /// Ends the process as if all were well.
    Exit,
    /// Takes memory until there is none.
    Hungry,
    /// Leaves behind another process that has what the worker has open, and ends its own.
    Orphan,
    /// Prints to stdout.
    Prints,
    /// Logs without end, it seems.
    Floods,
    /// Goes to another folder.
    Leaves,
}

/// Puts all examples into one cluster, unless it is told to fail.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// What goes wrong.
    fault: Fault,
    /// How long a cell takes, in milliseconds.
    #[schemars(range(max = 60000))]
    takes: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { fault: Fault::None, takes: 0 }
    }
}

struct Faulty(Params);
register!(clusterer Faulty);

impl Component for Faulty {
    const NAME: &'static str = "faulty";
    const SUMMARY: &'static str = "one cluster, or a failure";
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        assert!(params.fault != Fault::PanicInCreate, "create went wrong");
        if params.fault == Fault::AbortInCreate {
            std::process::abort();
        }
        if params.fault == Fault::Leaves {
            leave()?;
        }
        Ok(Self(params))
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        assert!(self.0.fault != Fault::PanicInDrop, "drop went wrong");
    }
}

impl Clusterer for Faulty {
    fn memory(&self, _shape: Shape, _services: &Services<'_>) -> Result<u64> {
        if self.0.fault == Fault::AbortInMemory {
            std::process::abort();
        }
        Ok(0)
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let n = task.embeddings.len();
        let minute = Duration::from_secs(60);
        let takes = Duration::from_millis(self.0.takes);
        let started = Instant::now();
        let wait = |how_long: Duration| -> Result<()> {
            while started.elapsed() < how_long {
                services.progress(started.elapsed().as_millis() as usize, how_long.as_millis() as usize)?;
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        wait(takes)?;
        let mut clustering = Clustering::from_labels(&vec![0; n]);
        match self.0.fault {
            Fault::Panic => panic!("cluster went wrong"),
            Fault::Error => return Err(Error::new("not today")),
            Fault::Sometimes if services.seed % 2 == 1 => return Err(Error::new("not with this seed")),
            Fault::WrongLength => return Ok(Clustering::from_labels(&vec![0; n - 1])),
            Fault::Drifts | Fault::Wanders => {
                if self.0.fault == Fault::Wanders {
                    services.log(Level::Warn, "lost the way");
                }
                clustering.diagnostics.iterations = 7;
                clustering.diagnostics.converged = false;
            }
            Fault::Slow => wait(minute)?,
            Fault::Stubborn => std::thread::sleep(minute),
            Fault::Abort => std::process::abort(),
            Fault::Segfault => segfault(),
            Fault::Overflow => clustering.diagnostics.iterations = descend(services.seed),
            Fault::Exit => std::process::exit(0),
            Fault::Hungry => return Err(Error::new(format!("took {} bytes", devour()))),
            Fault::Orphan => {
                std::process::Command::new("sleep")
                    .arg("20")
                    .stdout(std::io::stdout())
                    .spawn()
                    .map_err(Error::new)?;
                std::process::exit(3);
            }
            Fault::Prints => println!("hello from a plugin"),
            Fault::Floods => (0..50_000).for_each(|at| services.log(Level::Warn, format!("line {at}"))),
            Fault::Leaves => leave()?,
            _ => {}
        }
        Ok(clustering)
    }
}

fn leave() -> Result<()> {
    std::env::set_current_dir("/").map_err(Error::new)
}

#[expect(unsafe_code, reason = "what a plugin in C does by mistake")]
fn segfault() {
    // SAFETY: none; the process ends here, which is what the tests are about.
    unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) }
}

/// So deep that no stack has room for it.
fn descend(from: u64) -> u64 {
    let room = std::hint::black_box([from; 64]);
    if from == u64::MAX { 0 } else { room[3] ^ descend(from.wrapping_add(2) & !1) }
}

/// Takes memory and uses it, until there is none.
fn devour() -> usize {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    while taken.len() < 1 << 20 {
        taken.push(std::hint::black_box(vec![1; 16 << 20]));
    }
    taken.len()
}

/// A clusterer that needs everything.
struct Demanding;
register!(clusterer Demanding);

impl Component for Demanding {
    const NAME: &'static str = "demanding";
    const SUMMARY: &'static str = "needs a composer with gradients and the truth";
    const FLAGS: Flags = Flags::NEEDS_COMPOSER.and(Flags::NEEDS_GRADIENTS).and(Flags::NEEDS_TRUTH);
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Clusterer for Demanding {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let truth = task.truth.ok_or_else(|| Error::data("was given no truth"))?;
        let clusters: std::collections::BTreeSet<&[u32]> = truth.iter().collect();
        Ok(Clustering {
            assignments: truth.clone(),
            clusters: clusters.into_iter().collect(),
            ..Clustering::default()
        })
    }
}

/// A clusterer that lets another do the work.
struct Nested(compflow_api::ForeignClusterer);
register!(clusterer Nested);

/// Lets `base` do the work.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NestedParams {
    /// The name of a clusterer.
    base: String,
    /// Its parameters as JSON.
    #[serde(default = "no_params")]
    with: String,
}

fn no_params() -> String {
    "{}".to_owned()
}

impl Component for Nested {
    const NAME: &'static str = "nested";
    const SUMMARY: &'static str = "whatever another clusterer finds";
    type Params = NestedParams;

    fn new(params: NestedParams, services: &Services<'_>) -> Result<Self> {
        services
            .clusterer(&params.base, &params.with)
            .map(Self)
            .map_err(|error| Error::parameter("base", format!("cannot be made: {error}")))
    }
}

impl Clusterer for Nested {
    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        self.0.cluster(task, services)
    }
}

/// A composer without gradients.
struct Rough;
register!(composer Rough);

impl Component for Rough {
    const NAME: &'static str = "rough";
    const SUMMARY: &'static str = "the left one, without gradients";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Composer for Rough {
    fn compose(
        &self,
        _dim: usize,
        left: &[f32],
        _right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        out.copy_from_slice(left);
        Ok(())
    }
}

/// An evaluator whose score is no number.
struct Undefined;
register!(evaluator Undefined);

impl Component for Undefined {
    const NAME: &'static str = "undefined";
    const SUMMARY: &'static str = "not a number";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Undefined {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::number("undefined").smaller_is_better()]
    }

    fn evaluate(&self, _evaluation: &Evaluation<'_>, _services: &Services<'_>) -> Result<Vec<f64>> {
        Ok(vec![f64::NAN])
    }
}
