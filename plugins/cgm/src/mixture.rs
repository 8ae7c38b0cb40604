//! The mixture, and how it is fitted to what examples add up to.

use compflow_api::{Result, Sets};
use compflow_kernels::frame::Frame;
use compflow_kernels::lbfgs::{self, Limits};
use compflow_kernels::objective::{Model, Objective};
use compflow_kernels::pairs::squared;
use serde::{Deserialize, Serialize};

use crate::covariance::{Covariance, Prior, trace};
use crate::params::{Params, Residual, Weights};
use crate::residual::{self, Union, Unions};
use crate::statistics::Statistics;

/// Steps of a descent between two passes, at most.
const STEPS: usize = 30;
/// A descent ends at a step that brings less than this part of what the steps before it did.
const PART: f64 = 0.02;
/// The share of outliers that is expected before any was seen.
const FEW: f64 = 0.01;
/// A set with fewer examples has none.
const SOME: f64 = 1e-9;

/// What does not change while a mixture is fitted.
pub(crate) struct Setting<'a> {
    pub(crate) model: Model<'a>,
    pub(crate) frame: &'a Frame,
    /// All compositions.
    pub(crate) sets: &'a Sets,
    pub(crate) params: &'a Params,
    /// T = Σ w x xᵀ of all examples, prepared, their mean, and Σw.
    pub(crate) scatter: Vec<f64>,
    pub(crate) mean: Vec<f64>,
    pub(crate) examples: f64,
}

/// The parameters, and what follows from them. Points are prepared ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Mixture {
    /// m, k×p, as the composer takes them.
    pub(crate) singletons: Vec<f32>,
    /// g of every set.
    pub(crate) composed: Vec<f64>,
    /// u = g + ê of every set.
    pub(crate) centres: Vec<f64>,
    pub(crate) covariance: Covariance,
    /// What is known of the covariance, once there was one.
    pub(crate) prior: Option<Prior>,
    /// τ².
    pub(crate) tau2: f64,
    /// N of the unions that had examples in the first round: what is known of τ².
    pub(crate) first: Vec<f64>,
    /// log π of every set.
    pub(crate) log_weights: Vec<f64>,
    /// ½p·τ²/(1 + Nτ²) of every set: what its centre's uncertainty takes from every example's log-density.
    pub(crate) slack: Vec<f64>,
    pub(crate) outliers: Option<Outliers>,
    /// Steps that diverged.
    pub(crate) diverged: usize,
}

impl Mixture {
    /// How far every point is from the nearest centre, squared.
    pub(crate) fn distances(&self, points: &[f32]) -> Vec<f32> {
        let dim = self.centres.len() / self.slack.len();
        let nearest = |point: &[f32]| {
            self.centres.chunks_exact(dim).map(|centre| squared(point, centre)).fold(f64::INFINITY, f64::min)
                as f32
        };
        points.chunks_exact(dim).map(nearest).collect()
    }
}

/// The component that takes what no set explains: normal around the mean of all data, with the shape that sets had after
/// the first round and as wide as all data. (The covariance of all data would do only if n ≫ p: otherwise it fits every
/// example, and takes all.)
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outliers {
    /// The mean of all data.
    pub(crate) centre: Vec<f64>,
    pub(crate) covariance: Covariance,
    /// log π₀.
    pub(crate) log_weight: f64,
}

impl Setting<'_> {
    fn dim(&self) -> usize {
        self.model.dim
    }

    /// The mean variance of all data.
    pub(crate) fn spread(&self) -> f64 {
        trace(&self.centred(), self.dim()).max(0.0) / (self.examples * self.dim() as f64)
    }

    /// The scatter of all examples around their mean.
    fn centred(&self) -> Vec<f64> {
        let mut centred = self.scatter.clone();
        add_outer(&mut centred, &self.mean, -self.examples);
        centred
    }

    /// Unit spheres around what these singletons compose to, all equally common.
    pub(crate) fn start(&self, singletons: Vec<f32>) -> Result<Mixture> {
        let (dim, sets) = (self.dim(), self.sets.len());
        let composed = self.prepared(&self.model.centres(&singletons, self.sets)?);
        // Outliers have no part in the first assignment: nothing is known yet of how far is far.
        Ok(Mixture {
            singletons,
            centres: composed.clone(),
            composed,
            covariance: Covariance::sphere(dim),
            prior: None,
            tau2: 0.0,
            first: Vec::new(),
            log_weights: vec![0.0; sets],
            slack: vec![0.0; sets],
            outliers: None,
            diverged: 0,
        })
    }

    fn prepared(&self, points: &[f32]) -> Vec<f64> {
        self.frame.prepared(points).iter().map(|&value| f64::from(value)).collect()
    }

    /// Raises the bound for what the examples add up to; returns it.
    pub(crate) fn fit(&self, mixture: &mut Mixture, found: &Statistics) -> Result<f64> {
        let dim = self.dim();
        let (means, within) = (self.means(mixture, found), self.within(found));
        let scatter = self.around(mixture, found, &means, &within);
        let prior = mixture.prior.unwrap_or_else(|| {
            let Params { covariance, shrinkage, .. } = *self.params;
            let unions = self.unions(mixture, found, &means);
            mixture.first = unions.iter().map(|union| union.count).collect();
            Prior::new(covariance, shrinkage, &scatter, found.total(), dim, self.spread())
        });
        mixture.prior = Some(prior);
        mixture.covariance = prior.covariance(&scatter, found.total(), dim);
        mixture.tau2 = match self.params.residual {
            Residual::Value(tau2) => tau2,
            Residual::Auto(_) => {
                let unions = self.unions(mixture, found, &means);
                residual::estimate(Unions { unions: &unions, first: &mixture.first, dim }, mixture.tau2)
            }
        };
        self.descend(mixture, found, &means)?;
        self.weigh(mixture, found);
        for (at, set) in self.sets.iter().enumerate() {
            let (count, row) = (found.counts[at], at * dim..(at + 1) * dim);
            let (part, slack) = match set.len() {
                1 => (0.0, 0.0),
                _ => (residual::part(count, mixture.tau2), mixture.tau2 / (1.0 + count * mixture.tau2)),
            };
            mixture.slack[at] = 0.5 * dim as f64 * slack;
            for axis in row {
                mixture.centres[axis] = mixture.composed[axis] + part * (means[axis] - mixture.composed[axis]);
            }
        }
        Ok(self.bound(mixture, found, &means, &within))
    }

    /// x̄ of every set; of those without examples what they compose to.
    fn means(&self, mixture: &Mixture, found: &Statistics) -> Vec<f64> {
        let mut means = mixture.composed.clone();
        let rows = means.chunks_exact_mut(self.dim()).zip(found.sums.chunks_exact(self.dim()));
        for ((mean, sum), &count) in rows.zip(&found.counts).filter(|(_, count)| **count > SOME) {
            mean.iter_mut().zip(sum).for_each(|(mean, sum)| *mean = sum / count);
        }
        means
    }

    /// W = Σ (x - x̄)(x - x̄)ᵀ of the examples that have a set.
    fn within(&self, found: &Statistics) -> Vec<f64> {
        let mut within = self.scatter.clone();
        within.iter_mut().zip(&found.outlier_scatter).for_each(|(sum, outliers)| *sum -= outliers);
        for (sum, &count) in found.sums.chunks_exact(self.dim()).zip(&found.counts).filter(|(_, c)| **c > SOME) {
            add_outer(&mut within, sum, -1.0 / count);
        }
        within
    }

    /// A = W + Σ_c w_c (x̄ - g)(x̄ - g)ᵀ.
    fn around(&self, mixture: &Mixture, found: &Statistics, means: &[f64], within: &[f64]) -> Vec<f64> {
        let mut scatter = within.to_vec();
        for (at, rest) in self.rests(mixture, means) {
            add_outer(&mut scatter, &rest, self.pull(mixture, found, at));
        }
        scatter
    }

    /// x̄ - g of every set.
    fn rests<'s>(
        &'s self,
        mixture: &'s Mixture,
        means: &'s [f64],
    ) -> impl Iterator<Item = (usize, Vec<f64>)> + 's {
        let rows = means.chunks_exact(self.dim()).zip(mixture.composed.chunks_exact(self.dim()));
        rows.map(|(mean, composed)| mean.iter().zip(composed).map(|(mean, g)| mean - g).collect()).enumerate()
    }

    /// w of a set.
    fn pull(&self, mixture: &Mixture, found: &Statistics, set: usize) -> f64 {
        let tau2 = if self.sets[set].len() > 1 { mixture.tau2 } else { 0.0 };
        residual::pull(found.counts[set], tau2)
    }

    /// The unions that have examples.
    pub(crate) fn unions(&self, mixture: &Mixture, found: &Statistics, means: &[f64]) -> Vec<Union> {
        let all = self.rests(mixture, means).map(|(at, rest)| (at, found.counts[at], rest));
        all.filter(|(at, count, _)| self.sets[*at].len() > 1 && *count > SOME)
            .map(|(_, count, rest)| Union { count, squared: mixture.covariance.squared(&rest) })
            .collect()
    }

    /// How far unions lie from where the composer says, beside how far examples lie from the mean of their set: plain
    /// distances, because Σ takes in what a wrong composer leaves over. 0 where there is too little to say so.
    pub(crate) fn miss(&self, mixture: &Mixture, found: &Statistics) -> f64 {
        let free = found.total() - found.counts.iter().filter(|count| **count > SOME).count() as f64;
        let spread = self.within(found).iter().step_by(self.dim() + 1).sum::<f64>() / free;
        if !(free > 0.0 && spread > 0.0) {
            return 0.0;
        }
        let (mut examples, mut beyond) = (0.0, 0.0);
        for (at, rest) in self.rests(mixture, &self.means(mixture, found)) {
            let count = found.counts[at];
            if self.sets[at].len() > 1 && count > SOME {
                examples += count;
                // What the mean of N examples is off by chance does not count.
                beyond += count * rest.iter().map(|value| value * value).sum::<f64>() / spread - 1.0;
            }
        }
        if examples > 0.0 { (beyond / examples).max(0.0).sqrt() } else { 0.0 }
    }

    /// Moves the singletons.
    fn descend(&self, mixture: &mut Mixture, found: &Statistics, means: &[f64]) -> Result<()> {
        let (mut sets, mut pulls, mut points) = (Sets::default(), Vec::new(), Vec::new());
        for (at, mean) in means.chunks_exact(self.dim()).enumerate().filter(|(at, _)| found.counts[*at] > SOME) {
            sets.push(&self.sets[at]);
            pulls.push(self.pull(mixture, found, at));
            points.extend(self.frame.mean(mean, 1.0));
        }
        // Singletons are in the units of the data.
        let unit = self.frame.scale() * self.frame.scale();
        let metric = mixture.covariance.precision.iter().map(|value| value * unit).collect();
        let objective = Objective::new(self.model, sets, pulls, points).in_metric(metric);
        let limits = Limits { steps: STEPS, least: 0.1 * self.params.tol * self.examples, part: PART };
        let from = mixture.singletons.clone();
        let done = lbfgs::descend(&objective, &mut mixture.singletons, limits)?;
        let (centres, halvings) = self.model.settle(&mut mixture.singletons, &from, self.sets)?;
        mixture.diverged += done.diverged + halvings;
        mixture.composed = self.prepared(&centres);
        Ok(())
    }

    /// Sets that have a weight in common: a number for each set, and how many numbers there are.
    fn classes(&self) -> (Vec<usize>, usize) {
        match self.params.weights {
            Weights::Sets => ((0..self.sets.len()).collect(), self.sets.len()),
            Weights::Equal => (vec![0; self.sets.len()], 1),
            Weights::Sizes => {
                let classes: Vec<usize> = self.sets.iter().map(|set| set.len() - 1).collect();
                let count = classes.iter().max().map_or(0, |most| most + 1);
                (classes, count)
            }
        }
    }

    /// π: the share of every class, and one example more, is shared out among its sets.
    fn weigh(&self, mixture: &mut Mixture, found: &Statistics) {
        let (classes, count) = self.classes();
        let (mut shares, mut members) = (vec![1.0; count], vec![0.0f64; count]);
        for (&class, examples) in classes.iter().zip(&found.counts) {
            shares[class] += examples;
            members[class] += 1.0;
        }
        let mut all: f64 = shares.iter().sum();
        if self.params.outliers {
            // The first estimate takes none for granted; later ones know.
            let outliers = match mixture.outliers {
                None => FEW * all,
                Some(_) => found.outliers + 1.0,
            };
            all += outliers;
            let log_weight = libm::log(outliers / all);
            match &mut mixture.outliers {
                Some(known) => known.log_weight = log_weight,
                None => {
                    let covariance = mixture.covariance.as_wide_as(&self.centred(), self.examples, self.dim());
                    mixture.outliers = Some(Outliers { centre: self.mean.clone(), covariance, log_weight });
                }
            }
        }
        for (log_weight, &class) in mixture.log_weights.iter_mut().zip(&classes) {
            *log_weight = libm::log(shares[class] / all / members[class]);
        }
    }

    /// The bound, in the units of the data: the log-likelihood of the examples with e integrated out, as assigned, and
    /// the priors of Σ, τ² and π.
    fn bound(&self, mixture: &Mixture, found: &Statistics, means: &[f64], within: &[f64]) -> f64 {
        let (p, n) = (self.dim() as f64, found.total());
        let covariance = &mixture.covariance;
        let weights: f64 = found.counts.iter().zip(&mixture.log_weights).map(|(count, log)| count * log).sum();
        let singles: f64 = self
            .rests(mixture, means)
            .filter(|(at, _)| self.sets[*at].len() == 1)
            .map(|(at, rest)| found.counts[at] * covariance.squared(&rest))
            .sum();
        let unions = self.unions(mixture, found, means);
        let unions = Unions { unions: &unions, first: &mixture.first, dim: self.dim() }.log_density(mixture.tau2);
        let density =
            n * (covariance.log_det + p * libm::log(std::f64::consts::TAU)) + covariance.traced(within) + singles;
        let prior = mixture.prior.map_or(0.0, |prior| prior.log_density(covariance, self.dim()));
        // A class's share has the prior of one example.
        let (classes, count) = self.classes();
        let (mut shares, mut members) = (vec![0.0; count], vec![0.0f64; count]);
        classes.iter().for_each(|&class| members[class] += 1.0);
        for (&class, log) in classes.iter().zip(&mixture.log_weights) {
            shares[class] = log + libm::log(members[class]);
        }
        let outliers = mixture.outliers.as_ref().map_or(0.0, |outliers| {
            found.outliers * outliers.log_weight + outliers.log_weight + found.outlier_density
        });
        let bound =
            weights + shares.iter().sum::<f64>() + outliers + found.entropy - 0.5 * density + unions + prior;
        bound + self.examples * p * libm::log(self.frame.scale())
    }

    /// How many numbers the mixture has: those that a residual has are counted by how far the data moved them.
    pub(crate) fn parameters(&self, mixture: &Mixture, found: &Statistics) -> f64 {
        let residuals: f64 = (self.sets.iter().zip(&found.counts))
            .filter(|(set, _)| set.len() > 1)
            .map(|(_, &count)| residual::part(count, mixture.tau2) * self.dim() as f64)
            .sum();
        let tau = f64::from(u8::from(matches!(self.params.residual, Residual::Auto(_)) && mixture.tau2 > 0.0));
        let weights = (self.classes().1 - 1) as f64 + f64::from(u8::from(self.params.outliers));
        let covariance = mixture.prior.map_or(0.0, |prior| prior.parameters(self.dim()));
        mixture.singletons.len() as f64 + covariance + residuals + tau + weights
    }
}

/// Adds `factor`·r rᵀ.
pub(crate) fn add_outer(matrix: &mut [f64], row: &[f64], factor: f64) {
    for (out, &a) in matrix.chunks_exact_mut(row.len()).zip(row) {
        out.iter_mut().zip(row).for_each(|(out, b)| *out += factor * a * b);
    }
}
