//! Embeddings that are pictures: raw pixels of a square.

/// Smaller or larger squares are no thumbnails.
const SIDES: std::ops::RangeInclusive<usize> = 4..=64;
/// So many examples tell whether all are pictures.
const ENOUGH: usize = 200;
/// Neighbours differ by less than this share of what pixels in general differ by.
const SMOOTH: f64 = 0.75;

/// The side of the square, if the rows, of length `dim`, are pictures of one: nothing is negative, and neighbours in the square
/// are alike, which they are not if the numbers mean anything else.
pub(crate) fn side(rows: &[f32], dim: usize) -> Option<usize> {
    let side = dim.isqrt();
    if side * side != dim || !SIDES.contains(&side) || rows.iter().any(|value| *value < 0.0) {
        return None;
    }
    let count = rows.len() / dim;
    let step = count.div_ceil(ENOUGH).max(1);
    let (mut near, mut far) = (Difference::default(), Difference::default());
    for row in rows.chunks_exact(dim).step_by(step) {
        for at in 0..dim {
            let pixel = |at: usize| f64::from(row[at]);
            if at % side + 1 < side {
                near.add(pixel(at), pixel(at + 1));
            }
            if at + side < dim {
                near.add(pixel(at), pixel(at + side));
            }
            // Half a picture away, in both directions.
            far.add(pixel(at), pixel((at + (side / 2) * side + side / 2) % dim));
        }
    }
    (far.mean() > 0.0 && near.mean() < SMOOTH * far.mean()).then_some(side)
}

/// Pixels as bytes, from the lightest to the darkest of all rows.
pub(crate) fn bytes(rows: impl Iterator<Item = f32> + Clone) -> Vec<u8> {
    let most = rows.clone().fold(0.0f32, f32::max);
    rows.map(|value| if most > 0.0 { (255.0 * value / most).round() as u8 } else { 0 }).collect()
}

#[derive(Default)]
struct Difference {
    sum: f64,
    count: f64,
}

impl Difference {
    fn add(&mut self, a: f64, b: f64) {
        self.sum += (a - b).abs();
        self.count += 1.0;
    }

    fn mean(&self) -> f64 {
        if self.count > 0.0 { self.sum / self.count } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Discs at different places in squares of 8 × 8.
    fn discs() -> Vec<f32> {
        let pixel = |picture: usize, at: usize| {
            let (x, y) = ((at % 8) as f32, (at / 8) as f32);
            let (cx, cy) = (2.0 + (picture % 4) as f32, 2.0 + (picture / 4 % 4) as f32);
            (3.0 - (x - cx).hypot(y - cy)).max(0.0)
        };
        (0..32 * 64).map(|at| pixel(at / 64, at % 64)).collect()
    }

    #[test]
    fn pictures_are_told_from_other_vectors_of_the_same_length() {
        let pictures = discs();
        assert_eq!(side(&pictures, 64), Some(8));
        // The same numbers in another order are no pictures.
        let shuffled: Vec<f32> =
            (0..pictures.len()).map(|at| pictures[at / 64 * 64 + (at % 64 * 37 + 11) % 64]).collect();
        assert_eq!(side(&shuffled, 64), None);
        let signed: Vec<f32> = pictures.iter().map(|value| value - 1.0).collect();
        assert_eq!(side(&signed, 64), None);
        assert_eq!(side(&pictures, 32), None, "no square");
    }

    #[test]
    fn pixels_become_bytes() {
        assert_eq!(bytes([0.0, 8.0, 16.0].into_iter()), [0, 128, 255]);
        assert_eq!(bytes([0.0; 2].into_iter()), [0, 0]);
    }
}
