//! Passes over examples that are not here: what a pass needs to know goes there as bytes, a tag and a state, and what the
//! examples add up to comes back. Passes here are summed up in the same order, so that results are the same to the last bit.

use compflow_api::{Embeddings, Error, Fold, Partial, Result, Rows};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The tag of the first pass, of [`Look`](crate::source::Look).
pub const LOOK: u8 = 0;
/// That of [`Gathering`](crate::known::Gathering); methods have others.
pub const GATHER: u8 = 255;

/// What all examples add up to: what `here` says of every batch, and of the number of its first example; or what is said for
/// that state where they are.
///
/// # Errors
/// Those of the rows and of `here`.
pub fn reduce(
    rows: &dyn Rows,
    tag: u8,
    state: &impl Serialize,
    mut here: impl FnMut(usize, Embeddings<'_>) -> Result<Partial>,
) -> Result<Partial> {
    if rows.is_elsewhere() {
        return rows.reduce(&encode(tag, state)?);
    }
    let (mut fold, mut first, mut batches) = (Fold::new(), 0, 0);
    rows.pass(&mut |batch| {
        fold.push(batches, here(first, batch)?)?;
        first += batch.len();
        batches += 1;
        Ok(())
    })?;
    fold.finish(batches)
}

/// A tag and a state as bytes; numbers keep all their digits.
///
/// # Errors
/// If the state cannot be written so.
pub fn encode(tag: u8, state: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_extend(state, vec![tag])
        .map_err(|error| Error::new(format!("a state cannot be encoded: {error}")))
}

/// The tag of a state, and the rest of it.
///
/// # Errors
/// If it is empty.
pub fn split(state: &[u8]) -> Result<(u8, &[u8])> {
    let (tag, rest) = state.split_first().ok_or_else(|| Error::new("a state is empty"))?;
    Ok((*tag, rest))
}

/// The state behind a tag.
///
/// # Errors
/// If it is none of this kind.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let damaged = |error| Error::new(format!("a state is damaged, or of another version: {error}"));
    match postcard::take_from_bytes(bytes).map_err(damaged)? {
        (state, []) => Ok(state),
        (_, rest) => Err(Error::new(format!("a state has {} bytes too many", rest.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_with_all_digits_and_a_damaged_one_does_not() {
        let state = (vec![0.1f64, f64::MIN_POSITIVE, -0.0], vec![1e-40f32], 7usize);
        let bytes = encode(3, &state).unwrap();
        let (tag, rest) = split(&bytes).unwrap();
        let back: (Vec<f64>, Vec<f32>, usize) = decode(rest).unwrap();
        assert_eq!((tag, &back), (3, &state));
        assert!(back.0[2].is_sign_negative());
        assert!(decode::<(Vec<f64>, Vec<f32>, usize)>(&rest[..rest.len() - 1]).is_err());
        assert!(decode::<Vec<f64>>(rest).is_err());
        assert!(split(&[]).is_err());
    }
}
