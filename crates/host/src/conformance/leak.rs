//! Does memory come back?

use compflow_api::Result;
use compflow_engine::plugin::library;

use crate::conformance::report::{Verdict, require};

/// How often something is created, run and dropped.
const ROUNDS: usize = 1000;

/// Bytes that are allocated and not freed, as exactly as can be told, and how many of them are within the noise.
fn allocated() -> (usize, usize) {
    match library::allocated().filter(|bytes| *bytes > 0) {
        Some(bytes) => (bytes, 8 << 10),
        None => (memory_stats::memory_stats().map_or(0, |stats| stats.physical_mem), 8 << 20),
    }
}

/// Memory that grows during both halves of the rounds is lost; what grows once may be something kept for later.
///
/// # Errors
/// What a round returned, or how much was lost.
pub(crate) fn none(mut round: impl FnMut() -> Result<()>) -> Result<Verdict> {
    for _ in 0..ROUNDS / 20 {
        round()?;
    }
    let mut at = [allocated().0; 3];
    for mark in &mut at[1..] {
        for _ in 0..ROUNDS / 2 {
            round()?;
        }
        *mark = allocated().0;
    }
    let noise = allocated().1;
    let grown = [at[1].saturating_sub(at[0]), at[2].saturating_sub(at[1])];
    require(grown.iter().any(|grown| *grown <= noise), || {
        format!("{} bytes more are allocated after {ROUNDS} rounds of create, run and drop", grown[0] + grown[1])
    })?;
    Ok(Verdict::Pass)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_bytes_a_round_are_noticed() {
        let kept = || {
            none(|| {
                std::mem::forget(std::hint::black_box(Box::new([7u8; 48])));
                Ok(())
            })
        };
        // Tests beside this one may free as much meanwhile, but not every time.
        let said = (0..5).find_map(|_| kept().err()).unwrap().to_string();
        assert!(said.contains("bytes more are allocated after 1000 rounds"), "{said}");
    }
}
