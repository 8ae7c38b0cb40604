//! The methods as plain loops in f64, for tests to compare with.

/// The nearest centre of every point, and the sum of their squared distances.
pub(crate) fn nearest(points: &[f64], centres: &[f64], dim: usize) -> (Vec<u32>, f64) {
    let (mut labels, mut inertia) = (Vec::new(), 0.0);
    for point in points.chunks_exact(dim) {
        let (mut nearest, mut least) = (0, f64::INFINITY);
        for (at, centre) in centres.chunks_exact(dim).enumerate() {
            let distance: f64 = point.iter().zip(centre).map(|(p, c)| (p - c).powi(2)).sum();
            if distance < least {
                (nearest, least) = (at as u32, distance);
            }
        }
        labels.push(nearest);
        inertia += least;
    }
    (labels, inertia)
}

/// The mean of each cluster's points; where there are none, the centre as it was.
pub(crate) fn means(points: &[f64], labels: &[u32], centres: &[f64], dim: usize) -> Vec<f64> {
    let mut means = centres.to_vec();
    for (label, mean) in means.chunks_exact_mut(dim).enumerate() {
        let members: Vec<&[f64]> = points
            .chunks_exact(dim)
            .zip(labels)
            .filter(|(_, of)| **of as usize == label)
            .map(|(point, _)| point)
            .collect();
        if !members.is_empty() {
            for (axis, mean) in mean.iter_mut().enumerate() {
                *mean = members.iter().map(|point| point[axis]).sum::<f64>() / members.len() as f64;
            }
        }
    }
    means
}

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
