//! The bound and the posteriors beside plain loops in f64.

use compflow_kernels::cholesky::inverse_factor;
use compflow_kernels::known::gather;
use compflow_kernels::objective::Model;
use compflow_kernels::source::Source;
use compflow_kernels::starts::Starts;
use compflow_kernels::told::Told;
use compflow_kernels::workers::Workers;

use super::*;
use crate::Assignment;
use crate::densities::Densities;
use crate::mixture::{Mixture, Setting};
use crate::statistics::{About, Data, Posterior, wide};

/// log N(x; μ, C) with a dense covariance.
fn log_normal(x: &[f64], mean: &[f64], covariance: &[f64]) -> f64 {
    let dim = x.len();
    let factor = inverse_factor(covariance, dim).unwrap();
    let rest: Vec<f64> = x.iter().zip(mean).map(|(x, mean)| x - mean).collect();
    let white = factor.chunks_exact(dim).map(|row| row.iter().zip(&rest).map(|(a, b)| a * b).sum::<f64>());
    let squared: f64 = white.map(|value| value * value).sum();
    let log_det: f64 = factor.iter().step_by(dim + 1).map(|pivot| -2.0 * pivot.ln()).sum();
    -0.5 * (dim as f64 * std::f64::consts::TAU.ln() + log_det + squared)
}

/// Σ.
fn covariance(mixture: &Mixture, dim: usize) -> Vec<f64> {
    // The inverse of the precision, one unit vector after the other by its own factor.
    let factor = inverse_factor(&mixture.covariance.precision, dim).unwrap();
    let column = |at: usize| factor.chunks_exact(dim).map(move |row| row[at]).collect::<Vec<f64>>();
    (0..dim * dim).map(|at| column(at / dim).iter().zip(column(at % dim)).map(|(a, b)| a * b).sum()).collect()
}

/// A mixture after some rounds, its setting and data.
fn with<T>(
    planted: &Planted,
    params: &Params,
    work: impl Fn(&Setting<'_>, &Data<'_>, &mut Mixture, &[f32]) -> T,
) -> T {
    let (rows, workers, services) =
        (Embeddings::new(&planted.values, planted.dim), Workers::alone(), Services::none());
    let (source, sample) = Source::new(&rows, Space::default(), true, 9999, &workers, &services).unwrap();
    let model = Model { composer: &planted.g, space: Space::default(), dim: planted.dim, services: &services };
    let sets = Sets::all_up_to(params.k, planted.degree);
    let starts = Starts { model, frame: &source.frame, sample: &sample, k: params.k, degree: planted.degree };
    let told = Told::default();
    let gathered = gather(&rows, &told, &starts, &sets).unwrap();
    let about = About { dim: planted.dim, told: &told, workers: &workers, services: &services };
    let data = Data { source: &source, gathered: &gathered, degree: planted.degree, about };
    let (scatter, mean, examples) = data.scatter().unwrap();
    let setting = Setting { model, frame: &source.frame, sets: &sets, params, scatter, mean, examples };
    let mut mixture = setting.start(planted.values[..params.k * planted.dim].to_vec()).unwrap();
    work(&setting, &data, &mut mixture, &sample.points)
}

#[test]
fn the_bound_is_the_likelihood_of_whole_unions_with_their_residuals_integrated_out() {
    let planted = plant(Plain::Sum, 3, 2, 2, 4, 0.8, 1.5, 3);
    let params = Params { residual: Residual::Value(0.3), ..Params::new(3) };
    with(&planted, &params, |setting, data, mixture, points| {
        let dim = planted.dim;
        let mut bound = 0.0;
        let mut found = data.statistics(mixture, Assignment::Hard).unwrap();
        let mut labels: Vec<usize> = Vec::new();
        for _ in 0..3 {
            let rows = wide(points, dim).unwrap();
            let joint = Densities::new(mixture, dim).unwrap().log_joint(&rows);
            labels = joint.outer_iter().map(|logs| Posterior::of(logs.as_slice().unwrap()).set).collect();
            found = data.statistics(mixture, Assignment::Hard).unwrap();
            bound = setting.fit(mixture, &found).unwrap();
        }
        let sigma = covariance(mixture, dim);
        let mut expected = 0.0;
        for (at, set) in setting.sets.iter().enumerate() {
            let members: Vec<usize> = (0..labels.len()).filter(|&row| labels[row] == at).collect();
            assert_eq!(members.len() as f64, found.counts[at]);
            let size = members.len() * dim;
            let tau2 = if set.len() > 1 { mixture.tau2 } else { 0.0 };
            // All examples of the set as one vector: Σ for each, and τ²Σ between any two.
            let joint: Vec<f64> = (0..size * size)
                .map(|entry| {
                    let (row, column) = (entry / size, entry % size);
                    let own = if row / dim == column / dim { 1.0 } else { 0.0 };
                    (own + tau2) * sigma[row % dim * dim + column % dim]
                })
                .collect();
            let x: Vec<f64> = members
                .iter()
                .flat_map(|row| &points[row * dim..][..dim])
                .map(|&value| f64::from(value))
                .collect();
            let mean = mixture.composed[at * dim..][..dim].repeat(members.len());
            if size > 0 {
                expected += log_normal(&x, &mean, &joint);
            }
            expected += members.len() as f64 * mixture.log_weights[at];
        }
        // What a residual costs beyond its likelihood: as often again as three times make.
        expected -= mixture.first.iter().map(|count| (count * mixture.tau2).ln_1p() * dim as f64).sum::<f64>();
        let prior = mixture.prior.unwrap();
        expected += prior.log_density(&mixture.covariance, dim);
        // One example of every size, shared out by three sets each.
        expected += 3f64.ln() * 2.0 + mixture.log_weights[0] + mixture.log_weights[3];
        expected += labels.len() as f64 * dim as f64 * setting.frame.scale().ln();
        assert!((bound - expected).abs() < 1e-6 * expected.abs(), "{bound} {expected}");
    });
}

#[test]
fn posteriors_are_those_of_bayes_and_statistics_their_sums() {
    let planted = plant(Plain::Max, 3, 2, 3, 7, 1.2, 1.3, 6);
    for assignment in [Assignment::Hard, Assignment::Soft] {
        let params = Params { assignment, outliers: true, residual: Residual::Value(0.1), ..Params::new(3) };
        with(&planted, &params, |setting, data, mixture, points| {
            let dim = planted.dim;
            let found = data.statistics(mixture, Assignment::Hard).unwrap();
            setting.fit(mixture, &found).unwrap();
            let sigma = covariance(mixture, dim);
            let outliers = mixture.outliers.as_ref().unwrap();
            let broad = Mixture {
                covariance: outliers.covariance.clone(),
                ..setting.start(mixture.singletons.clone()).unwrap()
            };
            let broad = covariance(&broad, dim);
            let sets = setting.sets.len();
            let (mut counts, mut sums, mut entropy) = (vec![0.0; sets + 1], vec![0.0; sets * dim], 0.0);
            for x in points.chunks_exact(dim) {
                let x: Vec<f64> = x.iter().map(|&value| f64::from(value)).collect();
                let mut logs: Vec<f64> = (0..sets)
                    .map(|at| {
                        let density = log_normal(&x, &mixture.centres[at * dim..][..dim], &sigma);
                        density + mixture.log_weights[at] - mixture.slack[at]
                    })
                    .collect();
                logs.push(log_normal(&x, &outliers.centre, &broad) + outliers.log_weight);
                let total = logs.iter().map(|log| log.exp()).sum::<f64>();
                let best = (0..=sets).max_by(|&a, &b| logs[a].total_cmp(&logs[b])).unwrap();
                for (at, log) in logs.iter().enumerate() {
                    let share = match assignment {
                        Assignment::Soft => log.exp() / total,
                        Assignment::Hard => f64::from(u8::from(at == best)),
                    };
                    counts[at] += share;
                    entropy -= if share > 0.0 { share * share.ln() } else { 0.0 };
                    if at < sets {
                        sums[at * dim..][..dim].iter_mut().zip(&x).for_each(|(sum, x)| *sum += share * x);
                    }
                }
            }
            let found = data.statistics(mixture, assignment).unwrap();
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-7 * (1.0 + b.abs()), "{a} {b}");
            found.counts.iter().zip(&counts).for_each(|(a, b)| near(*a, *b));
            found.sums.iter().zip(&sums).for_each(|(a, b)| near(*a, *b));
            near(found.outliers, counts[sets]);
            near(found.entropy, entropy);
        });
    }
}
