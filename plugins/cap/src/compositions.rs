//! The compositions of two and more candidates, in an order made for streaming.
//!
//! A composition {k < t₂ < … < t_s} is found under its *rest* {t₂, …, t_s}: the compositions with the same rest form a
//! segment, k = 0, 1, … t₂ - 1. So whatever is kept per candidate is read from its beginning along every segment.
//! Segments are filled up to whole vectors of [`LANES`] numbers. Several segments make a tile, the piece in which
//! vectors are composed and multiplied.

use std::ops::Range;

use compflow_api::Sets;
use compflow_kernels::counting;

/// Numbers in a vector; segments are filled up to multiples of it.
pub(crate) use compflow_kernels::products::LANES;
/// Vectors in a tile, unless a single segment has more. With 32 dimensions a tile fills a quarter of the second cache.
const TILE: usize = 128;

/// All sets of 2 to `degree` of the numbers below `candidates`.
pub(crate) struct Compositions {
    /// Members of a rest at most, and numbers per rest in `rests`.
    stride: usize,
    /// Ascending; those of small sets are filled up with `candidates`.
    rests: Vec<u32>,
    /// Where each segment starts, in vectors; one more than there are segments.
    starts: Vec<u32>,
    tiles: Vec<Tile>,
    candidates: usize,
}

/// Segments that follow one another.
#[derive(Clone)]
pub(crate) struct Tile {
    pub(crate) segments: Range<usize>,
    /// The vectors they take.
    pub(crate) vectors: Range<usize>,
}

/// How many vectors, and how many segments, there are; saturating.
pub(crate) fn count(candidates: usize, degree: usize) -> (u64, u64) {
    let (mut vectors, mut segments) = (0u64, 0u64);
    for size in 2..=degree.min(candidates) {
        // With t₂ = t there are C(candidates - 1 - t, size - 2) rests.
        for t in 1..candidates {
            let rests = saturate(counting::binomial(candidates - 1 - t, size - 2));
            vectors = vectors.saturating_add(rests.saturating_mul(t.div_ceil(LANES) as u64));
            segments = segments.saturating_add(rests);
        }
    }
    (vectors, segments)
}

/// How many sets of 1 to `degree` of `candidates` there are; saturating.
pub(crate) fn count_sets(candidates: usize, degree: usize) -> u64 {
    saturate(counting::sets(candidates, 1..=degree))
}

fn saturate(count: Option<u128>) -> u64 {
    count.and_then(|count| u64::try_from(count).ok()).unwrap_or(u64::MAX)
}

impl Compositions {
    /// Lists them.
    pub(crate) fn new(candidates: usize, degree: usize) -> Self {
        let degree = degree.min(candidates);
        let stride = degree.saturating_sub(1).max(1);
        let mut found = Self { stride, rests: Vec::new(), starts: vec![0], tiles: Vec::new(), candidates };
        for size in 2..=degree {
            let mut rest = vec![0; size - 1];
            found.list(&mut rest, size - 1, candidates);
        }
        let mut start = 0;
        for segment in 1..=found.len() {
            let vectors = found.starts[start] as usize..found.starts[segment] as usize;
            if vectors.len() >= TILE || segment == found.len() {
                found.tiles.push(Tile { segments: start..segment, vectors });
                start = segment;
            }
        }
        found
    }

    /// Appends all rests whose members from `left` on are set, and whose others are below `below`.
    fn list(&mut self, rest: &mut [u32], left: usize, below: usize) {
        if left == 0 {
            let length = rest[0] as usize;
            self.rests.extend_from_slice(rest);
            self.rests.resize(self.rests.len() + self.stride - rest.len(), self.candidates as u32);
            let start = self.starts[self.starts.len() - 1];
            self.starts.push(start + length.div_ceil(LANES) as u32);
            return;
        }
        // There must be something below the least member.
        for member in left..below {
            rest[left - 1] = member as u32;
            self.list(rest, left - 1, member);
        }
    }

    /// How many segments.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many vectors all segments take.
    pub(crate) fn vectors(&self) -> usize {
        self.starts[self.len()] as usize
    }

    pub(crate) fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// The rests of some segments, each [`stride`](Self::stride) numbers.
    pub(crate) fn rests(&self, segments: Range<usize>) -> &[u32] {
        &self.rests[segments.start * self.stride..segments.end * self.stride]
    }

    /// The rest of one segment: ascending, perhaps followed by the number of candidates.
    pub(crate) fn rest(&self, segment: usize) -> &[u32] {
        self.rests(segment..segment + 1)
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// How many compositions a segment has.
    pub(crate) fn length(&self, segment: usize) -> usize {
        self.rests[segment * self.stride] as usize
    }

    /// Where a segment starts, in vectors.
    pub(crate) fn start(&self, segment: usize) -> usize {
        self.starts[segment] as usize
    }

    /// The composition of `first` with a segment's rest, ascending.
    pub(crate) fn set(&self, segment: usize, first: usize) -> impl Iterator<Item = usize> + '_ {
        let rest = self.rest(segment).iter().map(|&member| member as usize);
        std::iter::once(first).chain(rest.filter(|&member| member < self.candidates))
    }

    /// All compositions of a tile as sets of `columns`, ascending numbers that the candidates stand for.
    pub(crate) fn sets(&self, tile: &Tile, columns: &[u32]) -> Sets {
        let most = tile.vectors.len() * LANES;
        let mut sets = Sets::with_capacity(most, most * (self.stride + 1));
        let mut set = Vec::new();
        for segment in tile.segments.clone() {
            for first in 0..self.length(segment) {
                set.clear();
                set.extend(self.set(segment, first).map(|member| columns[member]));
                sets.push(&set);
            }
        }
        sets
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_set_is_there_once_and_segments_are_filled_up() {
        for (candidates, degree) in [(1, 3), (2, 1), (5, 2), (9, 3), (20, 2), (12, 4), (3, 9), (40, 3)] {
            let all = Compositions::new(candidates, degree);
            let columns: Vec<u32> = (0..candidates as u32).map(|at| 2 * at + 1).collect();
            let mut found: Vec<Vec<u32>> = Vec::new();
            let (mut segment, mut vector) = (0, 0);
            for tile in all.tiles() {
                assert_eq!((tile.segments.start, tile.vectors.start), (segment, vector));
                (segment, vector) = (tile.segments.end, tile.vectors.end);
                found.extend(all.sets(tile, &columns).iter().map(<[u32]>::to_vec));
            }
            assert_eq!((segment, vector), (all.len(), all.vectors()));
            assert_eq!(count(candidates, degree), (all.vectors() as u64, all.len() as u64));
            let expected = Sets::all_up_to(candidates, degree);
            let expected: BTreeSet<Vec<u32>> = expected
                .iter()
                .filter(|set| set.len() > 1)
                .map(|set| set.iter().map(|&at| columns[at as usize]).collect())
                .collect();
            assert_eq!(found.len(), expected.len());
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
            assert_eq!(count_sets(candidates, degree), (expected.len() + candidates) as u64);
        }
    }

    #[test]
    fn numbers_beyond_all_memory_saturate() {
        assert_eq!(count_sets(1_000_000, 9), u64::MAX);
        assert_eq!(count(100_000, 7), (u64::MAX, u64::MAX));
        assert_eq!(count_sets(1500, 2), 1500 + 1500 * 1499 / 2);
    }
}
