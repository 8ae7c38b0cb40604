//! Components for tests, each crossing the boundary as one of another library would.

use compflow_api::{
    Clusterer, Clustering, Column, Component, Composer, Error, Flags, ForeignClusterer, ForeignComponent,
    ForeignComposer, Host, Instance, Kind, Level, NoParams, Registration, Result, Services, Sets, Shape, Task,
};
use compflow_kernels::testing::composers::Plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

use crate::Gcr;

/// A composer: the larger of each two numbers.
pub(crate) struct Max;

impl Component for Max {
    const NAME: &'static str = "max";
    const SUMMARY: &'static str = "";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Composer for Max {
    fn compose(
        &self,
        _dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left.max(*right));
        Ok(())
    }
}

/// A composer that is not associative.
pub(crate) struct Bilinear(BilinearParams);

/// Which one.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BilinearParams {
    /// The seed of its weights.
    pub(crate) weights: u64,
}

impl Component for Bilinear {
    const NAME: &'static str = "bilinear";
    const SUMMARY: &'static str = "";
    type Params = BilinearParams;

    fn new(params: BilinearParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl Composer for Bilinear {
    fn compose(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        services: &Services<'_>,
    ) -> Result<()> {
        Plain::bilinear(dim, self.0.weights).compose(dim, left, right, out, services)
    }
}

/// A base that returns the sets it is given.
pub(crate) struct Given(GivenParams);

/// What is returned.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GivenParams {
    /// The sets.
    pub(crate) sets: Vec<Vec<u32>>,
    /// Whether it says that it goes by weights.
    pub(crate) weighs: bool,
    /// Whether it says that it did not converge.
    pub(crate) wanders: bool,
    /// An error instead.
    pub(crate) error: Option<String>,
    /// Columns of numbers, by name.
    pub(crate) columns: Vec<String>,
    /// At least 1.
    #[schemars(range(min = 1))]
    pub(crate) k: Option<u32>,
}

impl Component for Given {
    const NAME: &'static str = "given";
    const SUMMARY: &'static str = "";
    type Params = GivenParams;

    fn new(params: GivenParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }

    fn flags(&self) -> Flags {
        let weighs = if self.0.weighs { Flags::USES_WEIGHTS } else { Flags::NONE };
        weighs.and(if self.0.sets.iter().any(Vec::is_empty) { Flags::ASSIGNS_NONE } else { Flags::NONE })
    }

    fn columns(&self) -> Vec<String> {
        self.0.columns.clone()
    }
}

impl Clusterer for Given {
    fn memory(&self, _shape: Shape, _services: &Services<'_>) -> Result<u64> {
        Ok(1 << 40)
    }

    fn cluster(&self, _task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        if let Some(error) = &self.0.error {
            return Err(Error::new(error));
        }
        let mut distinct = self.0.sets.clone();
        distinct.sort();
        distinct.dedup();
        distinct.retain(|set| !set.is_empty());
        let distinct_count = distinct.len();
        let numbers = || Column::Floats((0..self.0.sets.len()).map(|row| row as f64).collect());
        let mut clustering = Clustering {
            assignments: Sets::from_iter(&self.0.sets),
            clusters: Sets::from_iter(distinct),
            extra: self.0.columns.iter().map(|name| (name.clone(), numbers())).collect(),
            scalars: vec![("ssd".to_owned(), 2.5)],
            ..Clustering::default()
        };
        clustering.resolve("k", distinct_count);
        clustering.diagnostics.iterations = 12;
        clustering.diagnostics.converged = !self.0.wanders;
        Ok(clustering)
    }
}

/// A base that lets another clusterer do the work.
pub(crate) struct Through(ForeignClusterer);

/// Whom it lets do the work.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThroughParams {
    base: String,
    with: String,
}

impl Component for Through {
    const NAME: &'static str = "through";
    const SUMMARY: &'static str = "";
    type Params = ThroughParams;

    fn new(params: ThroughParams, services: &Services<'_>) -> Result<Self> {
        let made = services.clusterer(&params.base, &params.with);
        made.map(Self).map_err(|error| Error::parameter("base", format!("fails: {error}")))
    }
}

impl Clusterer for Through {
    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        self.0.cluster(task, services)
    }
}

/// A base that is given the truth.
pub(crate) struct Knowing;

impl Component for Knowing {
    const NAME: &'static str = "knowing";
    const SUMMARY: &'static str = "";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Clusterer for Knowing {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let truth = task.truth.ok_or_else(|| Error::new("was given no truth"))?;
        let mut distinct: Vec<&[u32]> = truth.iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let clusters = Sets::from_iter(distinct);
        Ok(Clustering { assignments: truth.clone(), clusters, ..Clustering::default() })
    }
}

/// A host that offers these components and keeps the log.
#[derive(Default)]
pub(crate) struct Shop {
    pub(crate) lines: Mutex<Vec<String>>,
}

impl Host for Shop {
    fn log(&self, _level: Level, text: &str) {
        self.lines.lock().unwrap().push(text.to_owned());
    }

    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        let components: Vec<ForeignComponent> = [
            Registration::clusterer::<Given>(),
            Registration::clusterer::<Through>(),
            Registration::clusterer::<Knowing>(),
            Registration::clusterer::<Gcr>(),
            Registration::composer::<Max>(),
            Registration::composer::<Bilinear>(),
        ]
        .iter()
        .map(|registration| registration.component().unwrap())
        .collect();
        let wanted = components.iter().find(|component| component.kind == kind && component.name == name);
        let wanted = wanted.ok_or_else(|| Error::new(format!("there is no {kind} named `{name}`")))?;
        wanted.create(params, &Services { host: self, ..Services::none() })
    }
}

/// The composer `max`.
pub(crate) fn max() -> ForeignComposer {
    composer("max", "{}")
}

/// A composer of this file.
pub(crate) fn composer(name: &str, params: &str) -> ForeignComposer {
    Services { host: &Shop::default(), ..Services::none() }.composer(name, params).unwrap()
}
