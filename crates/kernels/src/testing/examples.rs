//! Data for tests.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// `n` points spread evenly over [-1, 1)^dim.
pub fn uniform(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n * dim).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// `k` groups of `each` points around corners of a coarse grid, interleaved, and the group of each point. The groups
/// are five times as far apart as they are wide.
pub fn blobs(k: usize, each: usize, dim: usize, seed: u64) -> (Vec<f32>, Vec<u32>) {
    let noise = uniform(k * each, dim, seed);
    let truth: Vec<u32> = (0..each).flat_map(|_| 0..k as u32).collect();
    let corner = |group: u32, axis: usize| (group as usize / 3usize.pow(axis as u32) % 3) as f32 * 10.0;
    let values = noise.iter().enumerate().map(|(at, noise)| corner(truth[at / dim], at % dim) + noise).collect();
    (values, truth)
}

/// Labels renamed in the order of their first appearance, so that equal partitions become equal.
pub fn partition(labels: &[u32]) -> Vec<u32> {
    let mut names = Vec::new();
    let mut name = |label: &u32| match names.iter().position(|known| known == label) {
        Some(at) => at as u32,
        None => {
            names.push(*label);
            names.len() as u32 - 1
        }
    };
    labels.iter().map(&mut name).collect()
}
