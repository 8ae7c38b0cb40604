//! Plain loops in f64, for fast code to be compared with.

/// The nearest centre of every point, and the sum of their squared distances.
pub fn nearest(points: &[f64], centres: &[f64], dim: usize) -> (Vec<u32>, f64) {
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
pub fn means(points: &[f64], labels: &[u32], centres: &[f64], dim: usize) -> Vec<f64> {
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
