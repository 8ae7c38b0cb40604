//! Examples around the compositions of prototypes, and how well sets that were found agree with theirs.

use compflow_api::{
    Clusterer, Clustering, Composer, Embeddings, Normalize, Result, Services, Sets, Singletons, Space, Task,
};

use super::composers::Plain;
use super::examples;

/// Examples and the sets they come from.
pub struct Planted {
    /// The embeddings.
    pub values: Vec<f32>,
    /// The set of each.
    pub truth: Sets,
    /// Their length.
    pub dim: usize,
    /// The largest set.
    pub degree: usize,
    /// What composes.
    pub g: Plain,
    /// Roughly what the sets are composed of.
    pub start: Vec<f32>,
}

impl Planted {
    /// `each` examples around every composition of at most `degree` of `k` prototypes, interleaved. Noise is uniform,
    /// `noise(axis)` to both sides.
    pub fn new(
        g: Plain,
        (k, degree, dim): (usize, usize, usize),
        each: usize,
        noise: impl Fn(usize) -> f64,
        seed: u64,
    ) -> Self {
        let prototypes: Vec<f64> =
            examples::uniform(k, dim, seed).iter().map(|&value| 2.0 * f64::from(value)).collect();
        let sets = Sets::all_up_to(k, degree);
        let centres: Vec<Vec<f64>> = sets.iter().map(|set| g.compose_set(&prototypes, dim, set)).collect();
        let drawn = examples::uniform(each * sets.len(), dim, seed + 1000);
        let (mut values, mut truth) = (Vec::new(), Sets::default());
        for (row, drawn) in drawn.chunks_exact(dim).enumerate() {
            let at = row % sets.len();
            let moved = centres[at].iter().zip(drawn).enumerate();
            values.extend(moved.map(|(axis, (centre, &drawn))| (centre + noise(axis) * f64::from(drawn)) as f32));
            truth.push(&sets[at]);
        }
        let moved = examples::uniform(k, dim, seed + 2000);
        let start = prototypes.iter().zip(moved).map(|(&value, moved)| value as f32 + 0.3 * moved).collect();
        Self { values, truth, dim, degree, g, start }
    }

    /// The same examples in another order, with other numbers for what they are composed of: row i is what row `rows[i]`
    /// was, and singleton j what `numbers[j]` was.
    pub fn turned(&self, rows: &[usize], numbers: &[usize]) -> Self {
        let pick = |from: &[f32], order: &[usize]| -> Vec<f32> {
            order.iter().flat_map(|&at| &from[at * self.dim..][..self.dim]).copied().collect()
        };
        Self {
            values: pick(&self.values, rows),
            truth: turned(&self.truth, rows, numbers),
            start: pick(&self.start, numbers),
            g: self.g.clone(),
            ..*self
        }
    }

    /// The task to find them.
    pub fn task(&self, normalize: Normalize) -> Task<'_> {
        Task {
            space: Space { normalize, ..Space::default() },
            degree: self.degree,
            composer: Some(&self.g as &dyn Composer),
            ..Task::new(Embeddings::new(&self.values, self.dim))
        }
    }
}

/// Sets of examples that are turned as [`Planted::turned`] does it.
pub fn turned(sets: &Sets, rows: &[usize], numbers: &[usize]) -> Sets {
    let number = |member: &u32| numbers.iter().position(|&was| was == *member as usize).unwrap() as u32;
    let set = |&row: &usize| {
        let mut set: Vec<u32> = sets[row].iter().map(number).collect();
        set.sort_unstable();
        set
    };
    rows.iter().map(set).collect()
}

/// Says that these are the singletons.
pub struct Given(pub Vec<f32>);

impl Clusterer for Given {
    fn cluster(&self, task: &Task<'_>, _: &Services<'_>) -> Result<Clustering> {
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        let numbers = (0..(self.0.len() / dim) as u32).collect();
        let singletons = Singletons { numbers, vectors: self.0.clone() };
        Ok(Clustering { singletons, ..Clustering::from_labels(&vec![0; n]) })
    }
}

/// The compositional Rand index, as it is defined: the part of ordered pairs on whose containment both agree.
pub fn cri(found: &Sets, truth: &Sets) -> f64 {
    let contains = |a: &[u32], b: &[u32]| b.iter().all(|member| a.contains(member));
    let (n, mut agreed) = (truth.len(), 0);
    for a in 0..n {
        for b in (0..n).filter(|&b| b != a) {
            agreed += usize::from(contains(&found[a], &found[b]) == contains(&truth[a], &truth[b]));
        }
    }
    agreed as f64 / (n * (n - 1)) as f64
}
