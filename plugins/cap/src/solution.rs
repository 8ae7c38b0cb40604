//! From exemplars to a feasible clustering: every example gets the nearest composition of exemplars, and exemplars move
//! to where they serve best.

use std::borrow::Cow;
use std::ops::Range;

use compflow_api::{Distance, Result, Services, Sets, Task};
use compflow_kernels::points::Points;
use compflow_kernels::workers::Workers;
use pulp::{Arch, Simd, WithSimd};

use crate::compositions::LANES;
use crate::row::highest;
use compflow_kernels::products::{Rows, Vectors};

/// Sets composed at a time by one thread.
pub(crate) const CHUNK: usize = 1024;
/// Chunks composed before examples are compared with them.
pub(crate) const BATCH: usize = 64;
/// Examples compared by one thread at a time.
const ROWS: usize = 64;
/// What a change must gain, as a share of the distances at stake: above the rounding of f32.
const GAIN: f64 = 1e-6;

/// Who belongs where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Solution {
    /// Ascending.
    pub(crate) exemplars: Vec<u32>,
    /// All sets of at most `degree` exemplars, or those that are used, as positions in the list; first every exemplar
    /// alone.
    pub(crate) sets: Sets,
    /// The set of every example; an exemplar has itself, unless messages alone decided.
    pub(crate) labels: Vec<u32>,
    /// How near each is to its set, in the units of products; 0 for exemplars.
    pub(crate) similarities: Vec<f32>,
    /// Σ S(i, c_i), in the user's units.
    pub(crate) objective: f64,
}

impl Solution {
    /// How many exemplars chose another.
    pub(crate) fn unfaithful(&self) -> usize {
        self.exemplars.iter().zip(0..).filter(|&(&row, at)| self.labels[row as usize] != at).count()
    }

    /// With labels from elsewhere.
    pub(crate) fn new(exemplars: Vec<u32>, sets: Sets, labels: Vec<u32>, objective: f64) -> Self {
        Self { exemplars, sets, labels, similarities: Vec::new(), objective }
    }
}

/// The examples that are to be assigned.
pub(crate) struct Examples<'a> {
    task: &'a Task<'a>,
    /// The examples in the space as it is, and prepared for products.
    space: Cow<'a, [f32]>,
    points: &'a Points,
    /// S(k, {k}) of every example, in the user's units.
    preferences: &'a [f64],
    workers: &'a Workers,
    services: &'a Services<'a>,
}

impl<'a> Examples<'a> {
    pub(crate) fn new(
        task: &'a Task<'a>,
        points: &'a Points,
        preferences: &'a [f64],
        workers: &'a Workers,
        services: &'a Services<'a>,
    ) -> Self {
        Self { task, space: task.points(), points, preferences, workers, services }
    }

    /// Assigns all examples to these exemplars, and moves each once to where it serves its cluster best, as affinity
    /// propagation does.
    pub(crate) fn refine(&self, exemplars: Vec<u32>) -> Result<Solution> {
        let solution = self.assign(exemplars)?;
        let next = self.assign(self.move_exemplars(&solution)?)?;
        Ok(if next.objective > solution.objective { next } else { solution })
    }

    /// Gives every example the set of examples that it chose. All members of these sets are exemplars, whatever they
    /// chose.
    pub(crate) fn chosen(&self, choices: &Sets) -> Result<Solution> {
        let mut exemplars = choices.values().to_vec();
        exemplars.sort_unstable();
        exemplars.dedup();
        let at = |row: &u32| exemplars.binary_search(row).unwrap_or(0) as u32;
        let places: Vec<Vec<u32>> = choices.iter().map(|set| set.iter().map(at).collect()).collect();
        let mut unions: Vec<&Vec<u32>> = places.iter().filter(|set| set.len() > 1).collect();
        unions.sort_unstable();
        unions.dedup();
        let label = |set: &Vec<u32>| match set[..] {
            [alone] => alone,
            _ => (exemplars.len() + unions.binary_search(&set).unwrap_or(0)) as u32,
        };
        let labels: Vec<u32> = places.iter().map(label).collect();
        let alone = (0..exemplars.len() as u32).map(|at| vec![at]);
        let sets: Sets = alone.chain(unions.iter().map(|&set| set.clone())).collect();
        let objective = self.objective(&exemplars, &sets, &labels)?;
        Ok(Solution::new(exemplars, sets, labels, objective))
    }

    /// By more than rounding.
    pub(crate) fn is_better(&self, next: &Solution, solution: &Solution) -> bool {
        let paid: f64 = solution.exemplars.iter().map(|&row| self.preferences[row as usize]).sum();
        let needed = GAIN * (solution.objective - paid).abs() + 4.0 * f64::EPSILON * paid.abs();
        next.objective > solution.objective + needed
    }

    /// Gives every example the nearest composition of these exemplars, and every exemplar itself.
    pub(crate) fn assign(&self, exemplars: Vec<u32>) -> Result<Solution> {
        let sets = Sets::all_up_to(exemplars.len(), self.task.degree);
        // With nobody left to be assigned, nothing needs composing.
        let nearest = match exemplars.len() == self.points.len() {
            true => vec![(0.0, 0); exemplars.len()],
            false => self.nearest(sets.len(), |set| rows_of(&sets[set], &exemplars))?,
        };
        let (mut similarities, mut labels): (Vec<f32>, Vec<u32>) = nearest.into_iter().unzip();
        for (label, &exemplar) in exemplars.iter().enumerate() {
            labels[exemplar as usize] = label as u32;
            similarities[exemplar as usize] = 0.0;
        }
        let objective = self.objective(&exemplars, &sets, &labels)?;
        Ok(Solution { exemplars, sets, labels, similarities, objective })
    }

    /// Of `count` sets of examples the one that is nearest to each row, the first of equally near ones, and how similar.
    pub(crate) fn nearest(
        &self,
        count: usize,
        set: impl Fn(usize) -> Vec<u32> + Sync + Send,
    ) -> Result<Vec<(f32, u32)>> {
        let rows = self.rows();
        let (mut nearest, arch) = (vec![(f32::NEG_INFINITY, 0); rows.norms.len()], Arch::new());
        for batch in (0..count).step_by(CHUNK * BATCH) {
            let composed = self.compose_chunks(batch..count.min(batch + CHUNK * BATCH), &set)?;
            self.workers.map(nearest.chunks_mut(ROWS).enumerate(), |(block, nearest)| {
                self.services.check_cancelled()?;
                for (chunk, vectors) in composed.iter().enumerate() {
                    let rows = rows.slice(block * ROWS, nearest.len());
                    arch.dispatch(Nearest { rows, vectors, nearest, first: (batch + chunk * CHUNK) as u32 });
                }
                Ok(())
            })?;
        }
        Ok(nearest)
    }

    /// Σ S(i, c_i), where every exemplar that has itself counts its preference.
    pub(crate) fn objective(&self, exemplars: &[u32], sets: &Sets, labels: &[u32]) -> Result<f64> {
        self.services.check_cancelled()?;
        let dim = self.points.dim();
        let mut used = labels.to_vec();
        used.sort_unstable();
        used.dedup();
        let rows = used.iter().map(|&set| rows_of(&sets[set as usize], exemplars)).collect();
        let composed = self.task.compose_sets(self.task.embeddings, &rows, self.services)?;
        let mut at = vec![0; sets.len()];
        used.iter().zip((0..).step_by(dim)).for_each(|(&set, start)| at[set as usize] = start);
        let nearness =
            |(row, &label): (&[f32], &u32)| -self.task.space.distance(row, &composed[at[label as usize]..][..dim]);
        let mut sums: Vec<f64> = self.space.chunks_exact(dim).zip(labels).map(nearness).collect();
        for (&exemplar, own) in exemplars.iter().zip(0..) {
            if labels[exemplar as usize] == own {
                sums[exemplar as usize] = self.preferences[exemplar as usize];
            }
        }
        Ok(sums.iter().sum())
    }

    /// Puts in place of each exemplar, one after the other, the example of its cluster that raises the objective most
    /// if all examples keep their sets, those of compositions included.
    pub(crate) fn move_exemplars(&self, solution: &Solution) -> Result<Vec<u32>> {
        let Solution { sets, labels, .. } = solution;
        let mut exemplars = solution.exemplars.clone();
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); sets.len()];
        labels.iter().enumerate().for_each(|(row, &label)| members[label as usize].push(row as u32));
        let used: Vec<usize> = (0..sets.len()).filter(|&set| !members[set].is_empty()).collect();
        let mut of_exemplar = vec![Vec::new(); exemplars.len()];
        for &set in &used {
            sets[set].iter().for_each(|&at| of_exemplar[at as usize].push(set));
        }
        for (at, affected) in of_exemplar.iter().enumerate() {
            if members[at].len() < 2 {
                continue;
            }
            let candidates = &members[at];
            let values = self.workers.map(candidates.chunks(CHUNK), |candidates| {
                let mut values: Vec<f64> = candidates.iter().map(|&row| self.preference(row)).collect();
                for &set in affected {
                    self.services.check_cancelled()?;
                    let alternatives = candidates.iter().map(|&candidate| {
                        let other = |&member: &u32| {
                            if member as usize == at { candidate } else { exemplars[member as usize] }
                        };
                        sets[set].iter().map(other).collect::<Vec<u32>>()
                    });
                    let vectors = self.compose(&alternatives.collect())?;
                    self.add_similarities(&members[set], &vectors, &mut values)?;
                }
                Ok(values)
            })?;
            let values = values.concat();
            let mut best = candidates.iter().position(|row| *row == exemplars[at]).unwrap_or(0);
            let distances = values[best] - self.preference(candidates[best]);
            let needed = values[best] + GAIN * distances.abs();
            for (other, &value) in values.iter().enumerate() {
                if value > needed && value > values[best] {
                    best = other;
                }
            }
            exemplars[at] = candidates[best];
        }
        exemplars.sort_unstable();
        Ok(exemplars)
    }

    /// Adds to each of `values` the similarities of these examples to one of the points in `vectors`.
    fn add_similarities(&self, rows: &[u32], vectors: &Vectors, values: &mut [f64]) -> Result<()> {
        let arch = Arch::new();
        for rows in rows.chunks(ROWS) {
            self.services.check_cancelled()?;
            let (points, norms) = self.gather(rows);
            let rows = Rows { values: &points, norms: &norms, ..self.rows() };
            arch.dispatch(Sum { rows, vectors, values });
        }
        Ok(())
    }

    /// Some points and their norms, one after the other.
    fn gather(&self, rows: &[u32]) -> (Vec<f32>, Vec<f32>) {
        let points = rows.iter().flat_map(|&row| self.points.row(row as usize)).copied().collect();
        (points, rows.iter().map(|&row| self.points.norms()[row as usize]).collect())
    }

    /// All points.
    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows {
            values: self.points.values(),
            norms: self.points.norms(),
            dim: self.points.dim(),
            rooted: self.rooted(),
        }
    }

    pub(crate) fn degree(&self) -> usize {
        self.task.degree
    }

    pub(crate) fn workers(&self) -> &Workers {
        self.workers
    }

    pub(crate) fn check_cancelled(&self) -> Result<()> {
        self.services.check_cancelled()
    }

    /// S(k, {k}), in the units of products.
    pub(crate) fn preference(&self, row: u32) -> f64 {
        self.preferences[row as usize] * self.scale()
    }

    fn rooted(&self) -> bool {
        self.task.space.distance == Distance::Euclidean
    }

    /// What a distance of 1 is in the units of products.
    pub(crate) fn scale(&self) -> f64 {
        if self.rooted() {
            self.points.frame().scale()
        } else {
            self.points.frame().scale() * self.points.frame().scale()
        }
    }

    /// Composes a range of sets of examples, [`CHUNK`] at a time.
    pub(crate) fn compose_chunks(
        &self,
        range: Range<usize>,
        set: impl Fn(usize) -> Vec<u32> + Sync + Send,
    ) -> Result<Vec<Vectors>> {
        self.workers.map(range.clone().step_by(CHUNK), |start| {
            self.services.check_cancelled()?;
            self.compose(&(start..range.end.min(start + CHUNK)).map(&set).collect())
        })
    }

    /// Composes sets of examples, in the coordinates of the points.
    pub(crate) fn compose(&self, sets: &Sets) -> Result<Vectors> {
        let mut composed = self.task.compose_sets(self.task.embeddings, sets, self.services)?;
        self.points.frame().enter(&mut composed);
        let mut vectors = Vectors::with_capacity(sets.len().div_ceil(LANES), self.points.dim());
        vectors.push(&composed);
        Ok(vectors)
    }
}

/// The examples that a set of positions stands for.
pub(crate) fn rows_of(set: &[u32], exemplars: &[u32]) -> Vec<u32> {
    set.iter().map(|&at| exemplars[at as usize]).collect()
}

/// Puts the nearest of some points in place of what was nearest so far.
struct Nearest<'a> {
    rows: Rows<'a>,
    vectors: &'a Vectors,
    nearest: &'a mut [(f32, u32)],
    /// The number of the first of the points.
    first: u32,
}

impl WithSimd for Nearest<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let stride = self.vectors.len() * LANES;
        let mut values = vec![0.0; self.nearest.len() * stride];
        self.rows.similarities(simd, self.vectors, &mut values, stride);
        for (values, nearest) in values.chunks_exact(stride).zip(self.nearest) {
            let best = highest(values);
            if best > nearest.0 {
                let at = values.iter().position(|value| *value == best).unwrap_or(0);
                *nearest = (best, self.first + at as u32);
            }
        }
    }
}

/// Adds up the similarities of all rows to each of some points.
struct Sum<'a> {
    rows: Rows<'a>,
    vectors: &'a Vectors,
    values: &'a mut [f64],
}

impl WithSimd for Sum<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let stride = self.vectors.len() * LANES;
        let mut similarities = vec![0.0; self.rows.norms.len() * stride];
        self.rows.similarities(simd, self.vectors, &mut similarities, stride);
        for row in similarities.chunks_exact(stride) {
            self.values.iter_mut().zip(row).for_each(|(value, &similarity)| *value += f64::from(similarity));
        }
    }
}
