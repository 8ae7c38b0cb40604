//! What examples add up to under a mixture: all that fitting it needs of them.
//!
//! One pass over the data. As long as every example has one set and none is an outlier, the likeliest set is that with the
//! least ‖u‖²_Σ - 2 x·Σ⁻¹u - 2 log π: a product and a comparison, as for `ckm`, in f32. Otherwise all densities are
//! computed, in f64.

use compflow_api::{BATCH_ROWS, Partial, Result, Services};
use compflow_kernels::assign::{Totals, assign_rows};
use compflow_kernels::known::Gathered;
use compflow_kernels::points::block_rows;
use compflow_kernels::products::Vectors;
use compflow_kernels::source::{Preparation, Source};
use compflow_kernels::told::{Heeded, Told};
use compflow_kernels::workers::Workers;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::densities::Densities;
use crate::mixture::{Mixture, add_outer};
use crate::params::Assignment;

/// Rows that are looked at together, at most.
const CHUNK: usize = 512;
/// Densities that are computed together, about.
const DENSITIES: usize = 1 << 18;
/// What of a count is left by rounding only.
const RESIDUE: f64 = 1e-9;
/// What is e⁻⁴⁰ times as likely as the likeliest adds nothing to any sum here.
const NOTHING: f64 = -40.0;

/// Rows whose densities at so many sets are computed together.
pub(crate) fn rows_together(sets: usize) -> usize {
    (DENSITIES / sets.max(1)).clamp(1, CHUNK)
}

/// What the examples add up to.
pub(crate) struct Statistics {
    /// N: the examples of every set, by their weights.
    pub(crate) counts: Vec<f64>,
    /// Σx of every set, row-major, prepared.
    pub(crate) sums: Vec<f64>,
    /// -Σ r log r.
    pub(crate) entropy: f64,
    /// How many are outliers.
    pub(crate) outliers: f64,
    /// Σ x xᵀ of the outliers; empty if there are none.
    pub(crate) outlier_scatter: Vec<f64>,
    /// The sum of their log-densities.
    pub(crate) outlier_density: f64,
}

impl Statistics {
    fn zero(sets: usize, dim: usize) -> Self {
        Self {
            counts: vec![0.0; sets],
            sums: vec![0.0; sets * dim],
            entropy: 0.0,
            outliers: 0.0,
            outlier_scatter: Vec::new(),
            outlier_density: 0.0,
        }
    }

    /// How many have a set.
    pub(crate) fn total(&self) -> f64 {
        self.counts.iter().sum()
    }

    fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, other)| *sum += other);
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += other);
        self.outlier_scatter.resize(self.outlier_scatter.len().max(other.outlier_scatter.len()), 0.0);
        self.outlier_scatter.iter_mut().zip(&other.outlier_scatter).for_each(|(sum, other)| *sum += other);
        self.entropy += other.entropy;
        self.outliers += other.outliers;
        self.outlier_density += other.outlier_density;
    }

    /// As numbers that add up; those of outliers are always there.
    fn into_partial(self, dim: usize) -> Partial {
        let Self { counts, sums, entropy, outliers, mut outlier_scatter, outlier_density } = self;
        outlier_scatter.resize(dim * dim, 0.0);
        let sums = [counts, sums, vec![entropy, outliers, outlier_density], outlier_scatter].concat();
        Partial { sums, ..Partial::default() }
    }

    /// What came of all batches.
    fn from_partial(found: Partial, sets: usize, dim: usize) -> Self {
        let mut counts = found.sums;
        let mut sums = counts.split_off(sets);
        let mut others = sums.split_off(sets * dim);
        let mut outlier_scatter = others.split_off(3);
        let number = |at: usize| others.get(at).copied().unwrap_or(0.0);
        let (entropy, outliers, outlier_density) = (number(0), number(1), number(2));
        if outliers == 0.0 {
            outlier_scatter.clear();
        }
        Self { counts, sums, entropy, outliers, outlier_scatter, outlier_density }
    }

    fn add_outlier(&mut self, row: &[f64], share: f64, log_density: f64) {
        self.outlier_scatter.resize(row.len() * row.len(), 0.0);
        add_outer(&mut self.outlier_scatter, row, share);
        self.outliers += share;
        self.outlier_density += share * log_density;
    }
}

/// The data, and who works on it.
pub(crate) struct Data<'a> {
    pub(crate) source: &'a Source<'a>,
    /// What the examples add up to whose sets are known.
    pub(crate) gathered: &'a Gathered,
    /// How many singletons a set has at most.
    pub(crate) degree: usize,
    pub(crate) about: About<'a>,
}

/// What is known of examples, and who works on them.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) dim: usize,
    /// How much each counts, and whose sets are known.
    pub(crate) told: &'a Told<'a>,
    pub(crate) workers: &'a Workers,
    pub(crate) services: &'a Services<'a>,
}

impl Data<'_> {
    /// Σ w x xᵀ, the mean, and Σw.
    pub(crate) fn scatter(&self) -> Result<(Vec<f64>, Vec<f64>, f64)> {
        let (dim, about) = (self.about.dim, &self.about);
        let pass =
            ScatterPass { preparation: self.source.preparation(), heeded: about.told.heeded().without_seeds() };
        let found = self.source.reduce(SCATTER, &pass, |first, batch| about.scatter(first, batch))?;
        let mut scatter = found.sums;
        let examples = scatter.pop().unwrap_or(0.0);
        let mut mean = scatter.split_off(dim * dim);
        mean.iter_mut().for_each(|sum| *sum /= examples);
        Ok((scatter, mean, examples))
    }

    /// What the examples add up to, each by its likeliest set or by all.
    pub(crate) fn statistics(&self, mixture: &Mixture, assignment: Assignment) -> Result<Statistics> {
        let pass = Pass {
            preparation: self.source.preparation(),
            mixture: mixture.clone(),
            assignment,
            heeded: self.about.told.heeded(),
            degree: self.degree,
        };
        let judge = Judge::new(mixture, assignment, self.about.dim)?;
        let found =
            self.source.reduce(STATISTICS, &pass, |first, batch| self.about.statistics(&judge, first, batch))?;
        let mut total = Statistics::from_partial(found, mixture.log_weights.len(), self.about.dim);
        if matches!(judge, Judge::Nearest(..)) && !self.about.told.known.is_empty() {
            let Totals { counts, sums, .. } = &self.gathered.totals;
            let (counts, sums) = (counts.clone(), sums.clone());
            total.add(&Statistics { counts, sums, ..Statistics::zero(0, self.about.dim) });
        }
        Ok(total)
    }

    /// Makes outliers of some examples, by their numbers, that were given to the nearest sets.
    pub(crate) fn set_aside<'p>(
        &self,
        found: &mut Statistics,
        mixture: &Mixture,
        points: impl Iterator<Item = (usize, &'p [f32])>,
    ) -> Result<()> {
        let judge = Judge::new(mixture, Assignment::Hard, self.about.dim)?;
        let before = found.counts.clone();
        for (at, point) in points {
            let one = self.about.statistics(&judge, at, point)?;
            let one = Statistics::from_partial(one, found.counts.len(), point.len());
            found.counts.iter_mut().zip(&one.counts).for_each(|(count, own)| *count -= own);
            found.sums.iter_mut().zip(&one.sums).for_each(|(sum, own)| *sum -= own);
            let point: Vec<f64> = point.iter().map(|&value| f64::from(value)).collect();
            found.add_outlier(&point, self.about.told.weight(at), 0.0);
        }
        // Rounding is no example.
        let sums = found.sums.chunks_exact_mut(self.about.dim);
        for ((count, sum), before) in found.counts.iter_mut().zip(sums).zip(before) {
            if *count < RESIDUE * before {
                *count = 0.0;
                sum.fill(0.0);
            }
        }
        Ok(())
    }
}

/// The tags of passes.
pub(crate) const SCATTER: u8 = 1;
pub(crate) const STATISTICS: u8 = 2;

/// What the pass needs to know that finds the scatter.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScatterPass {
    pub(crate) preparation: Preparation,
    pub(crate) heeded: Heeded,
}

/// What a pass needs to know that judges examples by a mixture.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pass {
    pub(crate) preparation: Preparation,
    pub(crate) mixture: Mixture,
    pub(crate) assignment: Assignment,
    pub(crate) heeded: Heeded,
    pub(crate) degree: usize,
}

/// How examples are judged: by a comparison, or by all densities.
pub(crate) enum Judge {
    /// Vectors to compare with, and how many.
    Nearest(Vectors, usize),
    /// Densities of so many sets.
    Likeliest(Box<Densities>, Assignment, usize),
}

impl Judge {
    pub(crate) fn new(mixture: &Mixture, assignment: Assignment, dim: usize) -> Result<Self> {
        let sets = mixture.log_weights.len();
        if assignment == Assignment::Hard && mixture.outliers.is_none() {
            return Ok(Self::Nearest(linear(mixture, dim), sets));
        }
        Ok(Self::Likeliest(Box::new(Densities::new(mixture, dim)?), assignment, sets))
    }
}

impl About<'_> {
    /// The results of `work` on the pieces of a batch, prepared, and the numbers of their first rows, in order. `numbers` is
    /// how many a result has.
    pub(crate) fn pieces<T: Send>(
        &self,
        numbers: usize,
        first: usize,
        batch: &[f32],
        work: impl Fn(usize, &[f32]) -> Result<T> + Sync + Send,
    ) -> Result<Vec<T>> {
        let rows = block_rows(BATCH_ROWS, numbers);
        let pieces = batch.chunks(rows * self.dim).enumerate().map(|(at, piece)| (first + at * rows, piece));
        self.workers.map(pieces, |(first, piece)| {
            self.services.check_cancelled()?;
            work(first, piece)
        })
    }

    /// Of a batch: Σ w x xᵀ, Σ w x and Σw.
    pub(crate) fn scatter(&self, first: usize, batch: &[f32]) -> Result<Partial> {
        let dim = self.dim;
        let pieces = self.pieces(dim * dim, first, batch, |first, piece| {
            let (mut sum, mut first_moment, mut examples) =
                (Array2::<f64>::zeros((dim, dim)), vec![0.0; dim], 0.0);
            for (at, chunk) in piece.chunks(CHUNK * dim).enumerate() {
                let rows = wide(chunk, dim)?;
                let mut weighted = rows.clone();
                for (row, mut values) in (first + at * CHUNK..).zip(weighted.outer_iter_mut()) {
                    values *= self.told.weight(row);
                    examples += self.told.weight(row);
                    first_moment.iter_mut().zip(&values).for_each(|(sum, value)| *sum += value);
                }
                ndarray::linalg::general_mat_mul(1.0, &rows.t(), &weighted, 1.0, &mut sum);
            }
            Ok((sum, first_moment, examples))
        })?;
        let mut sums = vec![0.0; dim * dim + dim + 1];
        for (sum, first_moment, examples) in pieces {
            let numbers = sum.iter().chain(&first_moment).chain(std::iter::once(&examples));
            sums.iter_mut().zip(numbers).for_each(|(total, number)| *total += number);
        }
        Ok(Partial { sums, ..Partial::default() })
    }

    /// What a batch adds up to, without examples whose sets are known if these are only compared.
    pub(crate) fn statistics(&self, judge: &Judge, first: usize, batch: &[f32]) -> Result<Partial> {
        let dim = self.dim;
        let (sets, pieces) = match judge {
            Judge::Nearest(vectors, sets) => {
                let pieces = self.pieces(sets * dim, first, batch, |first, piece| {
                    let (mut totals, mut labels) = (Totals::zero(*sets, dim), [0; CHUNK]);
                    for (at, rows) in piece.chunks(CHUNK * dim).enumerate() {
                        let (first, count) = (first + at * CHUNK, rows.len() / dim);
                        let weights = self.told.others(first, count);
                        assign_rows(rows, weights, vectors, &mut labels[..count], &mut totals);
                    }
                    Ok(Statistics { counts: totals.counts, sums: totals.sums, ..Statistics::zero(0, dim) })
                })?;
                (*sets, pieces)
            }
            Judge::Likeliest(densities, assignment, sets) => {
                let pieces = self.pieces(sets * dim, first, batch, |first, piece| {
                    let (mut part, rows) = (Statistics::zero(*sets, dim), rows_together(*sets));
                    for (at, chunk) in piece.chunks(rows * dim).enumerate() {
                        self.gather(densities, *assignment, first + at * rows, wide(chunk, dim)?, &mut part)?;
                    }
                    Ok(part)
                })?;
                (*sets, pieces)
            }
        };
        let mut total = Statistics::zero(sets, dim);
        pieces.iter().for_each(|part| total.add(part));
        Ok(total.into_partial(dim))
    }

    /// Adds some rows by their posteriors.
    fn gather(
        &self,
        densities: &Densities,
        assignment: Assignment,
        first: usize,
        rows: Array2<f64>,
        part: &mut Statistics,
    ) -> Result<()> {
        let sets = part.counts.len();
        let mut joint = densities.log_joint(&rows);
        for ((number, x), mut logs) in (first..).zip(rows.outer_iter()).zip(joint.outer_iter_mut()) {
            let weight = self.told.weight(number);
            if let Some(set) = self.told.known.label(number) {
                logs.fill(0.0);
                logs[set as usize] = weight;
                continue;
            }
            let posterior = Posterior::of(logs.as_slice().unwrap_or(&[]));
            let outlier = logs.get(sets).map(|log| log - densities.log_outlier());
            match assignment {
                Assignment::Hard => {
                    logs.fill(0.0);
                    logs[posterior.set] = weight;
                }
                Assignment::Soft => {
                    part.entropy += weight * posterior.entropy(&logs.to_vec());
                    logs.mapv_inplace(|log| weight * posterior.share(log));
                }
            }
            if let (Some(log_density), Some(x)) = (outlier, x.as_slice())
                && logs[sets] > 0.0
            {
                part.add_outlier(x, logs[sets], log_density);
            }
        }
        let shares = joint.slice(ndarray::s![.., ..sets]);
        shares.outer_iter().for_each(|row| part.counts.iter_mut().zip(row).for_each(|(sum, share)| *sum += share));
        let mut sums = ndarray::ArrayViewMut2::from_shape((sets, rows.ncols()), &mut part.sums)?;
        ndarray::linalg::general_mat_mul(1.0, &shares.t(), &rows, 1.0, &mut sums);
        Ok(())
    }
}

/// What is known of an example's set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posterior {
    /// The likeliest; the number of sets for an outlier.
    pub(crate) set: usize,
    /// Its log π·density.
    log_best: f64,
    /// The example's log-density.
    pub(crate) log_total: f64,
}

impl Posterior {
    /// From the log π·density of all; the first of equally likely ones.
    pub(crate) fn of(logs: &[f64]) -> Self {
        let first = (0, f64::NEG_INFINITY);
        let (set, log_best) =
            logs.iter().copied().enumerate().fold(first, |best, next| if next.1 > best.1 { next } else { best });
        let shares = logs.iter().map(|log| log - log_best).filter(|log| *log > NOTHING);
        let total: f64 = shares.map(libm::exp).sum();
        Self { set, log_best, log_total: log_best + libm::log(total) }
    }

    /// Of an example whose set is known, with its log π·density.
    pub(crate) fn certain(set: usize, log: f64) -> Self {
        // However unlikely that is.
        let log = log.max(f64::MIN);
        Self { set, log_best: log, log_total: log }
    }

    /// The probability of a set with this log π·density.
    pub(crate) fn share(&self, log: f64) -> f64 {
        if log - self.log_best > NOTHING { libm::exp(log - self.log_total) } else { 0.0 }
    }

    /// The probability of the likeliest.
    pub(crate) fn probability(&self) -> f64 {
        self.share(self.log_best)
    }

    fn entropy(&self, logs: &[f64]) -> f64 {
        let each = logs.iter().map(|log| (log - self.log_total, self.share(*log)));
        each.filter(|(_, share)| *share > 0.0).map(|(log, share)| -log * share).sum()
    }
}

/// Rows in f64.
pub(crate) fn wide(rows: &[f32], dim: usize) -> Result<Array2<f64>> {
    Ok(ArrayView2::from_shape((rows.len() / dim, dim), rows)?.mapv(f64::from))
}

/// Sets as vectors to compare examples with.
fn linear(mixture: &Mixture, dim: usize) -> Vectors {
    let (mut vectors, mut offsets) = (Vec::with_capacity(mixture.centres.len()), Vec::new());
    for (at, centre) in mixture.centres.chunks_exact(dim).enumerate() {
        vectors.extend(mixture.covariance.measured(centre).map(|value| value as f32));
        let offset = mixture.covariance.squared(centre) + 2.0 * (mixture.slack[at] - mixture.log_weights[at]);
        offsets.push(offset as f32);
    }
    Vectors::with_offsets(&vectors, &offsets, dim)
}
