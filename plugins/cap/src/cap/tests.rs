//! The whole clusterer, by subject.

mod hostile;
mod invariance;
mod optimum;
mod preferences;
mod presets;

use std::collections::BTreeMap;

use compflow_api::{Composer, Distance, ForeignClusterer, Registration, Services, Sets, Shape};
use compflow_kernels::preference::{MedianPerExample, PerExample, Target};
use compflow_kernels::testing::composers::Plain;
use compflow_kernels::testing::examples;
use compflow_kernels::testing::watcher::Watcher;
use proptest::prelude::*;
use rand::seq::SliceRandom;

use super::*;
use crate::messages::literal;

/// Both together are their sum.
struct Sum;

impl Composer for Sum {
    fn compose(&self, _: usize, left: &[f32], right: &[f32], out: &mut [f32], _: &Services<'_>) -> Result<()> {
        out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left + right);
        Ok(())
    }
}

fn task<'a>(values: &'a [f32], dim: usize, degree: usize) -> Task<'a> {
    Task { degree, composer: Some(&Sum), ..Task::new(Embeddings::new(values, dim)) }
}

fn at(preference: f64) -> Params {
    Params { preference: Preference::Value(preference), ..Params::default() }
}

fn target(k: usize) -> Params {
    Params { preference: Preference::Target(Target { k }), ..Params::default() }
}

fn cluster(task: &Task<'_>, params: Params, services: &Services<'_>) -> Result<Clustering> {
    let found = Cap::new(params, services)?.cluster(task, services)?;
    found.check(task)?;
    assert_feasible(task, &found);
    Ok(found)
}

fn found(task: &Task<'_>, params: Params) -> Clustering {
    cluster(task, params, &Services::none()).unwrap()
}

/// Every member of a composition that is used is its own exemplar, and no set is larger than the degree.
fn assert_feasible(task: &Task<'_>, found: &Clustering) {
    let exemplars: BTreeMap<&[u32], &[u32]> =
        found.clusters.iter().zip(found.exemplars.iter().map(Vec::as_slice)).collect();
    for set in found.assignments.iter() {
        assert!((1..=task.degree).contains(&set.len()));
        for (at, &member) in set.iter().enumerate() {
            let exemplar = exemplars[&[member][..]][0];
            assert_eq!(found.assignments[exemplar as usize], [member]);
            assert_eq!(exemplars[set][at], exemplar);
        }
    }
}

/// Σ S(i, c_i) from its definition.
fn objective(task: &Task<'_>, found: &Clustering, preference: f64) -> f64 {
    let exemplars: BTreeMap<&[u32], &Vec<u32>> = found.clusters.iter().zip(&found.exemplars).collect();
    let points = task.points();
    let dim = task.embeddings.dim();
    let value = |(row, set): (usize, &[u32])| {
        let rows = exemplars[set];
        if rows[..] == [row as u32] {
            return preference;
        }
        let composed = task.compose_sets(task.embeddings, &Sets::from_iter([rows]), &Services::none()).unwrap();
        -task.space.distance(&points[row * dim..][..dim], &composed)
    };
    found.assignments.iter().enumerate().map(value).sum()
}

/// Rectangles, circles, both together, and triangles, which are as far from both together as `height`, in turns; and who
/// is what. What triangles differ in is nearly the same for all rectangles and circles, and varies by `spread` for others.
fn shapes(height: f32, noise: f32, spread: f32, seed: u64) -> (Vec<f32>, Vec<Vec<u32>>) {
    let centres = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, height]];
    let truth = [vec![0], vec![1], vec![0, 1], vec![2]];
    let noises = examples::uniform(80, 3, seed);
    let noise = |class: usize, axis: usize| match (class, axis) {
        (0 | 1, 2) => 0.1 * noise,
        (_, 2) => spread,
        _ => noise,
    };
    let value = |at: usize| centres[at / 3 % 4][at % 3] + noise(at / 3 % 4, at % 3) * noises[at];
    ((0..240).map(value).collect(), (0..80).map(|row| truth[row % 4].clone()).collect())
}

/// The share of ordered pairs of which both say the same: whether the set of one has all of the other's.
fn agreement(found: &Sets, truth: &[Vec<u32>]) -> f64 {
    let inside = |a: &[u32], b: &[u32]| a.iter().all(|member| b.contains(member));
    let pairs = (0..truth.len()).flat_map(|i| (0..truth.len()).map(move |j| (i, j)));
    let same = pairs.filter(|&(i, j)| inside(&found[i], &found[j]) == inside(&truth[i], &truth[j])).count();
    same as f64 / (truth.len() * truth.len()) as f64
}
