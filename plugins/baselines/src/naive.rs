//! The methods as plain loops in f64, for tests to compare with.

use compflow_kernels::testing::naive::means;
pub(crate) use compflow_kernels::testing::naive::nearest;

/// Lloyd's algorithm until no label changes: labels, their inertia, and the iterations it took.
pub(crate) fn lloyd(points: &[f64], mut centres: Vec<f64>, dim: usize) -> (Vec<u32>, f64, u64) {
    let mut labels = Vec::new();
    for iteration in 1.. {
        let (next, inertia) = nearest(points, &centres, dim);
        centres = means(points, &next, &centres, dim);
        if next == labels {
            return (labels, inertia, iteration);
        }
        labels = next;
    }
    unreachable!("inertia falls with every change, and there are finitely many labellings")
}

/// One iteration of fuzzy c-means from memberships that need not add up to 1: centres, new memberships, objective.
pub(crate) fn fuzzy_step(points: &[f64], u: &[f64], dim: usize, k: usize, m: f64) -> (Vec<f64>, Vec<f64>, f64) {
    let mut powers = Vec::new();
    for row in u.chunks_exact(k) {
        let sum: f64 = row.iter().sum();
        powers.extend(row.iter().map(|u| (u / sum).powf(m)));
    }
    let mut centres = vec![0.0; k * dim];
    for (cluster, centre) in centres.chunks_exact_mut(dim).enumerate() {
        let weight: f64 = powers.chunks_exact(k).map(|row| row[cluster]).sum();
        for (axis, centre) in centre.iter_mut().enumerate() {
            let weighted = points.chunks_exact(dim).zip(powers.chunks_exact(k));
            *centre = weighted.map(|(point, row)| row[cluster] * point[axis]).sum::<f64>() / weight;
        }
    }
    let (mut memberships, mut objective) = (Vec::new(), 0.0);
    for (point, powers) in points.chunks_exact(dim).zip(powers.chunks_exact(k)) {
        let distance =
            |centre: &[f64]| point.iter().zip(centre).map(|(x, c)| (x - c).powi(2)).sum::<f64>().sqrt().max(1e-16);
        let distances: Vec<f64> = centres.chunks_exact(dim).map(distance).collect();
        objective += powers.iter().zip(&distances).map(|(power, d)| power * d * d).sum::<f64>();
        for d in &distances {
            memberships.push(1.0 / distances.iter().map(|other| (d / other).powf(2.0 / (m - 1.0))).sum::<f64>());
        }
    }
    (centres, memberships, objective)
}

/// One iteration of EM with full covariances: the responsibilities under the Gaussians that follow from those given, and
/// the mean log-likelihood.
pub(crate) fn mixture_step(
    points: &[f64],
    responsibilities: &[f64],
    dim: usize,
    k: usize,
    reg_covar: f64,
) -> (Vec<f64>, f64) {
    let n = points.len() / dim;
    let mut logs = vec![0.0; n * k];
    for component in 0..k {
        let weights = || responsibilities.iter().skip(component).step_by(k);
        let size: f64 = weights().sum();
        let average = |value: &dyn Fn(&[f64]) -> f64| {
            points.chunks_exact(dim).zip(weights()).map(|(point, weight)| weight * value(point)).sum::<f64>()
                / size
        };
        let mean: Vec<f64> = (0..dim).map(|axis| average(&|point| point[axis])).collect();
        let mut covariance = vec![0.0; dim * dim];
        for (i, j) in (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j))) {
            covariance[i * dim + j] = average(&|point| (point[i] - mean[i]) * (point[j] - mean[j]));
            covariance[i * dim + j] += if i == j { reg_covar } else { 0.0 };
        }
        for (row, point) in points.chunks_exact(dim).enumerate() {
            let z: Vec<f64> = point.iter().zip(&mean).map(|(x, mean)| x - mean).collect();
            let (solution, log_determinant) = solve(covariance.clone(), z.clone());
            let square: f64 = z.iter().zip(solution).map(|(z, solved)| z * solved).sum();
            logs[row * k + component] = (size / n as f64).ln()
                - 0.5 * (square + log_determinant + dim as f64 * std::f64::consts::TAU.ln());
        }
    }
    let (mut found, mut log_likelihood) = (Vec::new(), 0.0);
    for logs in logs.chunks_exact(k) {
        let total: f64 = logs.iter().map(|log| log.exp()).sum();
        log_likelihood += total.ln() / n as f64;
        found.extend(logs.iter().map(|log| log.exp() / total));
    }
    (found, log_likelihood)
}

/// The solution of a positive definite system and the logarithm of its determinant, by elimination.
fn solve(mut matrix: Vec<f64>, mut right: Vec<f64>) -> (Vec<f64>, f64) {
    let dim = right.len();
    let mut log_determinant = 0.0;
    for pivot in 0..dim {
        log_determinant += matrix[pivot * dim + pivot].ln();
        for row in (0..dim).filter(|row| *row != pivot) {
            let factor = matrix[row * dim + pivot] / matrix[pivot * dim + pivot];
            for column in 0..dim {
                matrix[row * dim + column] -= factor * matrix[pivot * dim + column];
            }
            right[row] -= factor * right[pivot];
        }
    }
    (right.iter().enumerate().map(|(row, value)| value / matrix[row * dim + row]).collect(), log_determinant)
}
