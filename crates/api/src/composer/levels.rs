//! Sets composed from pairs: all sets of two first, then of three, and so on, each from those of one member less.
//!
//! What several sets of a batch are built on is composed once. Cost: of a set of s members the s terms of its mean, and
//! what its subsets cost, unless they are shared; of an associative composer s - 1 pairs.

use crate::{Composer, Embeddings, Result, Services};

/// The compositions of some sets and of all sets that they are built on, by size; the first have two members.
pub(super) struct Levels {
    levels: Vec<Level>,
    dim: usize,
}

/// Compositions of sets of one size.
struct Level {
    size: usize,
    /// The sets, distinct and in order, one after the other.
    sets: Vec<u32>,
    /// Terms that the mean of every set has: one for every member that comes last.
    terms: usize,
    /// Of every term: what is composed with the last member. A position among the sets of one less, or a row.
    before: Vec<usize>,
    last: Vec<u32>,
    /// The vectors of both.
    left: Vec<f32>,
    right: Vec<f32>,
    /// The composition of every set.
    values: Vec<f32>,
}

impl Level {
    /// Where a set stands; it is there.
    fn position(&self, set: &[u32]) -> usize {
        let (mut low, mut high) = (0, self.sets.len() / self.size);
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            match self.sets[middle * self.size..][..self.size] <= *set {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    fn row(&self, at: usize, dim: usize) -> &[f32] {
        &self.values[at * dim..][..dim]
    }
}

/// Every set without one of its members, for those members that are to come last.
fn shortened(sets: &[u32], size: usize, terms: usize) -> impl Iterator<Item = (Vec<u32>, u32)> + '_ {
    sets.chunks_exact(size)
        .flat_map(move |set| (size - terms..size).map(move |at| ([&set[..at], &set[at + 1..]].concat(), set[at])))
}

/// Sets of one size in order, each once, one after the other.
fn distinct(mut sets: Vec<&[u32]>) -> Vec<u32> {
    sets.sort_unstable();
    sets.dedup();
    sets.concat()
}

impl Levels {
    /// Composes `sets` (none empty) and what they are built on.
    pub(super) fn compose(
        composer: &dyn Composer,
        rows: Embeddings<'_>,
        sets: &[&[u32]],
        services: &Services<'_>,
    ) -> Result<Self> {
        let dim = rows.dim();
        // Which member of two comes last makes no difference.
        let terms = |size: usize| if size == 2 || composer.is_associative() { 1 } else { size };
        let mut needed: Vec<Vec<u32>> = Vec::new();
        let mut above: Vec<u32> = Vec::new();
        for size in (2..=sets.iter().map(|set| set.len()).max().unwrap_or(0)).rev() {
            let subsets: Vec<Vec<u32>> =
                shortened(&above, size + 1, terms(size + 1)).map(|(set, _)| set).collect();
            let own = sets.iter().copied().filter(|set| set.len() == size);
            above = distinct(own.chain(subsets.iter().map(Vec::as_slice)).collect());
            needed.push(above.clone());
        }
        let mut levels: Vec<Level> = Vec::with_capacity(needed.len());
        for (size, sets) in (2..).zip(needed.into_iter().rev()) {
            let terms = terms(size);
            let below = levels.last();
            let pairs = shortened(&sets, size, terms);
            let (before, last): (Vec<usize>, Vec<u32>) = pairs
                .map(|(set, last)| (below.map_or_else(|| set[0] as usize, |below| below.position(&set)), last))
                .unzip();
            let left =
                before.iter().flat_map(|&at| below.map_or_else(|| rows.row(at), |below| below.row(at, dim)));
            let (left, right): (Vec<f32>, Vec<f32>) =
                (left.copied().collect(), last.iter().flat_map(|&row| rows.row(row as usize)).copied().collect());
            let mut composed = vec![0.0; left.len()];
            composer.compose(dim, &left, &right, &mut composed, services)?;
            let values = if terms == 1 { composed } else { means(&composed, terms, dim) };
            levels.push(Level { size, sets, terms, before, last, left, right, values });
        }
        Ok(Self { levels, dim })
    }

    /// The compositions of `sets`, in their order.
    pub(super) fn collect(&self, rows: Embeddings<'_>, sets: &[&[u32]], out: &mut [f32]) {
        for (set, out) in sets.iter().zip(out.chunks_exact_mut(self.dim)) {
            out.copy_from_slice(match set.len() {
                1 => rows.row(set[0] as usize),
                size => {
                    let level = &self.levels[size - 2];
                    level.row(level.position(set), self.dim)
                }
            });
        }
    }

    /// Adds `grad`, a row for each of `sets`, pulled back to the rows.
    pub(super) fn pull_back(
        &self,
        composer: &dyn Composer,
        sets: &[&[u32]],
        grad: &[f32],
        grad_rows: &mut [f32],
        services: &Services<'_>,
    ) -> Result<()> {
        let dim = self.dim;
        let add = |to: &mut [f32], at: usize, grad: &[f32]| {
            to[at * dim..][..dim].iter_mut().zip(grad).for_each(|(sum, grad)| *sum += grad);
        };
        let mut grads: Vec<Vec<f32>> = self.levels.iter().map(|level| vec![0.0; level.values.len()]).collect();
        for (set, grad) in sets.iter().zip(grad.chunks_exact(dim)) {
            match set.len() {
                1 => add(grad_rows, set[0] as usize, grad),
                size => add(&mut grads[size - 2], self.levels[size - 2].position(set), grad),
            }
        }
        for (at, level) in self.levels.iter().enumerate().rev() {
            let part = 1.0 / level.terms as f32;
            let terms = grads[at].chunks_exact(dim).flat_map(|grad| std::iter::repeat_n(grad, level.terms));
            let out: Vec<f32> = terms.flatten().map(|grad| part * grad).collect();
            let (mut left, mut right) = (vec![0.0; out.len()], vec![0.0; out.len()]);
            composer.vjp(dim, &level.left, &level.right, &out, &mut left, &mut right, services)?;
            let (to_rows, to_below) = (&mut *grad_rows, &mut grads[..at]);
            for (&before, grad) in level.before.iter().zip(left.chunks_exact(dim)) {
                add(to_below.last_mut().map_or(&mut *to_rows, |below| below.as_mut_slice()), before, grad);
            }
            for (&last, grad) in level.last.iter().zip(right.chunks_exact(dim)) {
                add(to_rows, last as usize, grad);
            }
        }
        Ok(())
    }
}

/// The mean of every `terms` rows. Summed up in f64, so that their order makes a difference to hardly any digit.
fn means(rows: &[f32], terms: usize, dim: usize) -> Vec<f32> {
    let mut means = Vec::with_capacity(rows.len() / terms);
    for rows in rows.chunks_exact(terms * dim) {
        for axis in 0..dim {
            let sum: f64 = rows[axis..].iter().step_by(dim).map(|&value| f64::from(value)).sum();
            means.push((sum / terms as f64) as f32);
        }
    }
    means
}
