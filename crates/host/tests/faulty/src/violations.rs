//! Components that break the rules of the conformance tests: clusterers one each, others several.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use compflow_api::{
    Batch, Clusterer, Clustering, Component, Error, Flags, NoParams, Partial, Result, Services, Sets, Shape,
    StreamTask, Task, register,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Puts all examples into one cluster.
fn one_cluster(task: &Task<'_>) -> Clustering {
    Clustering::from_labels(&vec![0; task.embeddings.len()])
}

/// Declares a component without parameters.
macro_rules! component {
    ($kind:ident $type:ident, $name:literal, $summary:literal) => {
        component!($kind $type, $name, $summary, Flags::NONE, Ok(Self));
    };
    ($kind:ident $type:ident, $name:literal, $summary:literal, $flags:expr) => {
        component!($kind $type, $name, $summary, $flags, Ok(Self));
    };
    ($kind:ident $type:ident, $name:literal, $summary:literal, $flags:expr, $new:expr) => {
        component!($kind $type, $name, $summary, $flags, $new, {});
    };
    // `more` are further functions of the component.
    ($kind:ident $type:ident, $name:literal, $summary:literal, $flags:expr, $new:expr, { $($more:tt)* }) => {
        struct $type;
        register!($kind $type);

        impl Component for $type {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            const FLAGS: Flags = $flags;
            type Params = NoParams;

            fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
                $new
            }

            $($more)*
        }
    };
}
pub(crate) use component;

/// Declares a clusterer without parameters.
macro_rules! violation {
    ($type:ident, $name:literal, $summary:literal, |$task:ident, $services:ident| $cluster:expr) => {
        violation!($type, $name, $summary, new: Ok(Self), |$task, $services| $cluster);
    };
    ($type:ident, $name:literal, $summary:literal, new: $new:expr, |$task:ident, $services:ident| $cluster:expr) => {
        component!(clusterer $type, $name, $summary, Flags::NONE, $new);

        impl Clusterer for $type {
            fn cluster(&self, $task: &Task<'_>, $services: &Services<'_>) -> Result<Clustering> {
                $cluster
            }
        }
    };
}

mod composers;
mod evaluators;
mod loaders;

/// Counts all calls that want another result every time.
static CALLS: AtomicU32 = AtomicU32::new(0);

fn calls() -> u32 {
    CALLS.fetch_add(1, Ordering::Relaxed)
}

/// Loses a little memory.
fn leak() {
    std::mem::forget(std::hint::black_box(vec![1u8; 64]));
}

violation!(Moody, "moody", "another result every time", |task, _services| {
    let mut found = one_cluster(task);
    found.diagnostics.iterations = calls().into();
    Ok(found)
});

violation!(Crowded, "crowded", "another result with more threads", |task, services| {
    let mut found = one_cluster(task);
    found.diagnostics.iterations = services.threads as u64;
    Ok(found)
});

violation!(Deaf, "deaf", "goes on for seconds when it is no longer wanted", |task, services| {
    if task.embeddings.len() > 1000 {
        services.host.progress(0, 1);
        std::thread::sleep(Duration::from_secs(3));
    }
    Ok(one_cluster(task))
});

violation!(Mute, "mute", "works without a word", |task, services| {
    let started = Instant::now();
    while task.embeddings.len() > 1000 && started.elapsed() < Duration::from_millis(600) {
        services.check_cancelled()?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(one_cluster(task))
});

violation!(Lonely, "lonely", "panics on a single example", |task, _services| {
    assert!(task.embeddings.len() != 1, "one is not enough");
    Ok(one_cluster(task))
});

violation!(Bored, "bored", "panics if all examples are the same", |task, _services| {
    let first = task.embeddings.row(0);
    assert!(task.embeddings.len() == 1 || task.embeddings.rows().any(|row| row != first), "the same again");
    Ok(one_cluster(task))
});

violation!(Delicate, "delicate", "returns what is no number for huge values", |task, _services| {
    let sum: f32 = task.embeddings.values().iter().map(|value| value * value).sum();
    Ok(Clustering { centroids: vec![sum * 0.0; task.embeddings.dim()], ..one_cluster(task) })
});

violation!(Excessive, "excessive", "more clusters than the degree allows", |task, _services| {
    let all: Vec<u32> = (0..task.degree as u32 + 1).collect();
    let assignments = (0..task.embeddings.len()).map(|_| all.clone()).collect();
    Ok(Clustering { assignments, clusters: Sets::from_iter([all]), ..Clustering::default() })
});

violation!(Absent, "absent", "none of the clusters, without leave", |task, _services| {
    let assignments = (0..task.embeddings.len()).map(|row| if row % 2 == 0 { vec![] } else { vec![0] }).collect();
    Ok(Clustering { assignments, clusters: Sets::singletons(&[0]), ..Clustering::default() })
});

violation!(Leaky, "leaky", "keeps a little of every run", |task, _services| {
    leak();
    Ok(one_cluster(task))
});

violation!(Chatty, "chatty", "prints on stdout", |task, _services| {
    println!("here I am");
    Ok(one_cluster(task))
});

violation!(Fatal, "fatal", "ends the process", |task, _services| {
    if task.embeddings.len() == 1 {
        std::process::abort();
    }
    Ok(one_cluster(task))
});

violation!(Boastful, "boastful", "more done than there is", |task, services| {
    services.progress(3, 2)?;
    Ok(one_cluster(task))
});

violation!(Silent, "silent", "fails without a reason", |_task, _services| Err(Error::data("")));

violation!(Vague, "vague", "refuses few examples as if that were its own fault", |task, _services| {
    if task.embeddings.len() == 1 {
        return Err(Error::new("one is not enough"));
    }
    Ok(one_cluster(task))
});

/// Accepts everything.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Anything {
    /// Any number.
    k: u32,
}

impl Default for Anything {
    fn default() -> Self {
        Self { k: 2 }
    }
}

struct Gullible;
register!(clusterer Gullible);

impl Component for Gullible {
    const NAME: &'static str = "gullible";
    const SUMMARY: &'static str = "accepts parameters that it does not have";
    type Params = Anything;

    fn new(_params: Anything, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Clusterer for Gullible {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        Ok(one_cluster(task))
    }
}

/// Says one default and has another.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TwoFaced {
    /// How many iterations to claim.
    #[serde(default)]
    #[schemars(extend("default" = 5))]
    claimed: u64,
}

struct Fickle(u64);
register!(clusterer Fickle);

impl Component for Fickle {
    const NAME: &'static str = "fickle";
    const SUMMARY: &'static str = "its schema has another default than it uses";
    type Params = TwoFaced;

    fn new(params: TwoFaced, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params.claimed))
    }
}

impl Clusterer for Fickle {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let mut found = one_cluster(task);
        found.diagnostics.iterations = self.0;
        Ok(found)
    }
}

/// Describes nothing.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Undescribed {
    k: u32,
}

struct Secretive;
register!(clusterer Secretive);

impl Component for Secretive {
    const NAME: &'static str = "secretive";
    const SUMMARY: &'static str = "does not describe its parameter";
    type Params = Undescribed;

    fn new(_params: Undescribed, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Clusterer for Secretive {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        Ok(one_cluster(task))
    }
}

violation!(Impossible, "impossible", "cannot be made", new: Err(Error::new("not today")), |task, _services| Ok(one_cluster(task)));

static USERS: AtomicU32 = AtomicU32::new(0);

violation!(Jealous, "jealous", "another result while somebody else uses it", |task, _services| {
    let users = USERS.fetch_add(1, Ordering::SeqCst) + 1;
    std::thread::sleep(Duration::from_millis(if task.embeddings.len() > 10 { 20 } else { 0 }));
    let users = users.max(USERS.fetch_sub(1, Ordering::SeqCst));
    let mut found = one_cluster(task);
    found.diagnostics.iterations = users.into();
    Ok(found)
});

component!(clusterer Hasty, "hasty", "another result batch by batch");

impl Clusterer for Hasty {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        Ok(one_cluster(task))
    }

    fn streams(&self) -> Result<bool> {
        Ok(true)
    }

    fn cluster_stream(&self, task: &StreamTask<'_>, _services: &Services<'_>) -> Result<Clustering> {
        Ok(Clustering::from_labels(&(0..task.rows.len() as u32).collect::<Vec<_>>()))
    }
}

component!(clusterer Farsighted, "farsighted", "finds something else where the examples are not here", Flags::HAS_PARTIAL);

impl Clusterer for Farsighted {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        Ok(one_cluster(task))
    }

    fn cluster_stream(&self, task: &StreamTask<'_>, _services: &Services<'_>) -> Result<Clustering> {
        task.rows.reduce(b"")?;
        Ok(Clustering { clusters: Sets::from_iter([[0], [1]]), ..Clustering::default() })
    }

    fn partial(&self, _: &[u8], _: &Batch<'_>, _: &Services<'_>) -> Result<Partial> {
        Ok(Partial::default())
    }
}

component!(clusterer Extravagant, "extravagant", "states less memory for more examples, and fails without it");

impl Clusterer for Extravagant {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, .. } = shape;
        Ok(1_000_000 - (rows as u64).min(10_000))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        match services.memory < self.memory(task.shape(), services)? {
            true => Err(Error::data("there is too little of something")),
            false => Ok(one_cluster(task)),
        }
    }
}

component!(
    clusterer Forgetful,
    "forgetful",
    "an instance lacks a flag that all have",
    Flags::ASSIGNS_NONE,
    Ok(Self),
    {
        fn flags(&self) -> Flags {
            Flags::NONE
        }
    }
);

impl Clusterer for Forgetful {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        Ok(one_cluster(task))
    }
}

component!(
    clusterer Absentminded,
    "absentminded",
    "asks for one column and looks for another",
    Flags::NONE,
    Ok(Self),
    {
        fn columns(&self) -> Vec<String> {
            vec!["height".to_owned()]
        }
    }
);

impl Clusterer for Absentminded {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        task.column("width")?;
        Ok(one_cluster(task))
    }
}

component!(
    clusterer Stubborn,
    "stubborn",
    "says that it keeps to known sets, and knows better",
    Flags::USES_SEEDS
);

impl Clusterer for Stubborn {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let mut found = one_cluster(task);
        found.diagnostics.iterations = task.seeds.map_or(0, |seeds| seeds.len() as u64);
        Ok(found)
    }
}

component!(
    clusterer Heavy,
    "heavy",
    "takes weights for something else, and panics if there are none above 0",
    Flags::USES_WEIGHTS
);

impl Clusterer for Heavy {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let mut found = one_cluster(task);
        if let Some(weights) = task.weights {
            assert!(weights.iter().all(|weight| *weight > 0.0), "weighs nothing");
            found.diagnostics.iterations = weights.len() as u64;
        }
        Ok(found)
    }
}
