//! Seeds.

use crate::files::hash_parts;

/// The seed of a stream of its own: nothing that runs beside it, before it or in another order changes it.
pub(crate) fn derive_seed(seed: u64, path: &[&str]) -> u64 {
    let seed = seed.to_le_bytes();
    let hash = hash_parts(std::iter::once(&seed[..]).chain(path.iter().map(|part| part.as_bytes())));
    // 63 bits, so that tables can hold it as the signed number that every reader of Parquet knows.
    u64::from_str_radix(&hash[..16], 16).unwrap_or(0) >> 1
}
