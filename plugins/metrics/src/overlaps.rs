//! How many members the sets of two examples share: for each pair of a predicted and a true set that occurs, the
//! number J[t][u] of examples with which it shares t predicted and u true members. `omega` and `bcubed` are sums
//! over these.
//!
//! Two ways, of which the cheaper one is taken. Comparing each pair with each other one is quadratic in their
//! number. Counting subsets is not: Σ_{t,u} C(t,m) C(u,l) J[t][u] = S[m][l], the examples that contain s and s',
//! added up over the subsets s of the predicted and s' of the true set with m and l members, from which J follows
//! by inclusion-exclusion. That takes 2^(d + d') steps for sets with d and d' members, and memory for 2^d, so that
//! d is limited to [`MAX_MEMBERS`]; beyond, only the first way is left, up to [`MAX_COMPARED`] distinct pairs.

use compflow_api::{Error, Result, Services, Sets};
use rustc_hash::FxHashMap;

use crate::contingency::Contingency;

/// Members of a set whose subsets are counted: 4096 of them.
const MAX_MEMBERS: usize = 12;

/// Distinct pairs of sets that are compared with each other: 2^30 comparisons, some seconds.
const MAX_COMPARED: usize = 1 << 15;

/// If no two sets have a subset in common: its number, its holder, and its members as a key of a hash table.
const BYTES_PER_SUBSET: u64 = 128;

/// J for one pair of sets.
pub(crate) struct Overlap<'a> {
    /// One more than the predicted set has members.
    pub(crate) rows: usize,
    /// One more than the true set has members.
    pub(crate) columns: usize,
    /// J by rows: `counts[t * columns + u]`. They add up to the number of examples, those with this pair included.
    pub(crate) counts: &'a [u64],
}

impl Overlap<'_> {
    /// All (t, u, J[t][u]).
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        self.counts.iter().enumerate().map(|(at, &count)| (at / self.columns, at % self.columns, count))
    }
}

/// Calls `visit` for each cell of the table of these labels, in order, with the number of examples in the cell and
/// its overlaps.
///
/// # Errors
/// If the sets are too large for the one way and too many for the other, or if cancelled.
pub(crate) fn each_overlap(
    truth: &Sets,
    predicted: &Sets,
    services: &Services<'_>,
    visit: impl FnMut(u64, &Overlap<'_>),
) -> Result<()> {
    let table = Contingency::new(truth, predicted);
    let cells = table.cells.len();
    // In floats, because sets of any size come here.
    let subset_pairs: f64 = shapes(&table).map(|(rows, columns)| ((rows + columns - 2) as f64).exp2()).sum();
    let countable = shapes(&table).all(|(rows, columns)| rows.max(columns) <= MAX_MEMBERS + 1);
    let comparable = cells <= MAX_COMPARED;
    if comparable && (!countable || (cells as f64).powi(2) <= subset_pairs) {
        compare_all(&table, services, visit)
    } else if countable {
        count_subsets(&table, services, visit)
    } else {
        Err(too_large(truth, predicted, cells))
    }
}

/// `rows` and `columns` of the overlaps of each cell.
fn shapes(table: &Contingency<'_>) -> impl Iterator<Item = (usize, usize)> {
    table.cells.iter().map(|cell| {
        let (predicted, truth) = table.sets(cell);
        (predicted.len() + 1, truth.len() + 1)
    })
}

fn too_large(truth: &Sets, predicted: &Sets, cells: usize) -> Error {
    let found = [("predicted", predicted), ("true", truth)].into_iter().find_map(|(side, sets)| {
        let row = sets.iter().position(|set| set.len() > MAX_MEMBERS)?;
        Some(format!("the {side} set of row {row} has {} members", sets[row].len()))
    });
    Error::data(format!(
        "{}; with {cells} distinct pairs of predicted and true sets, over {MAX_COMPARED}, a set may have at most \
         {MAX_MEMBERS}",
        found.unwrap_or_default()
    ))
}

/// Compares each pair of sets with each other one.
fn compare_all(
    table: &Contingency<'_>,
    services: &Services<'_>,
    mut visit: impl FnMut(u64, &Overlap<'_>),
) -> Result<()> {
    let (mut shared_truth, mut counts) = (Vec::new(), Vec::new());
    for (cell, (rows, columns)) in table.cells.iter().zip(shapes(table)) {
        services.check_cancelled()?;
        let (predicted, truth) = table.sets(cell);
        shared_truth.clear();
        shared_truth.extend(table.truth.sets.iter().map(|other| shared(truth, other)));
        counts.clear();
        counts.resize(rows * columns, 0);
        for (number, other) in table.predicted.sets.iter().enumerate() {
            let start = shared(predicted, other) * columns;
            for other in &table.cells[table.row(number)] {
                counts[start + shared_truth[other.truth as usize]] += other.count;
            }
        }
        visit(cell.count, &Overlap { rows, columns, counts: &counts });
    }
    Ok(())
}

/// How many members two sets share.
fn shared(a: &[u32], b: &[u32]) -> usize {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut shared = 0;
    while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
        let order = left.cmp(right);
        shared += usize::from(order.is_eq());
        if order.is_le() {
            a.next();
        }
        if order.is_ge() {
            b.next();
        }
    }
    shared
}

/// Counts, for all subsets of predicted and of true sets, the examples that contain both.
fn count_subsets(
    table: &Contingency<'_>,
    services: &Services<'_>,
    mut visit: impl FnMut(u64, &Overlap<'_>),
) -> Result<()> {
    let subsets: u64 = table.predicted.sets.iter().chain(&table.truth.sets).map(|set| 1 << set.len()).sum();
    services.require_memory(subsets * BYTES_PER_SUBSET, "it grows with 2 to the power of the members of a set")?;
    let (predicted, truth) = (AllSubsets::new(&table.predicted.sets), AllSubsets::new(&table.truth.sets));
    let mut starts = vec![0];
    starts.extend(shapes(table).scan(0, |end, (rows, columns)| {
        *end += rows * columns;
        Some(*end)
    }));
    // S of each cell, then J in the same place. Modulo 2^64, which is exact: J is below that.
    let mut sums = vec![0u64; starts[table.cells.len()]];
    let mut containing = vec![0u64; truth.distinct];
    for holders in predicted.holders() {
        services.check_cancelled()?;
        let cells = || holders.iter().flat_map(|holder| table.row(holder.set as usize));
        // With one subset of the predicted sets fixed, those of the true sets need no table of pairs.
        for cell in cells().map(|at| &table.cells[at]) {
            for &subset in truth.of(cell.truth) {
                containing[subset as usize] += cell.count;
            }
        }
        for holder in &holders {
            for at in table.row(holder.set as usize) {
                let cell = &table.cells[at];
                let columns = table.sets(cell).1.len() + 1;
                let start = starts[at] + holder.size * columns;
                for (mask, &subset) in truth.of(cell.truth).iter().enumerate() {
                    let sum = &mut sums[start + mask.count_ones() as usize];
                    *sum = sum.wrapping_add(containing[subset as usize]);
                }
            }
        }
        for cell in cells().map(|at| &table.cells[at]) {
            for &subset in truth.of(cell.truth) {
                containing[subset as usize] = 0;
            }
        }
    }
    for ((at, cell), (rows, columns)) in table.cells.iter().enumerate().zip(shapes(table)) {
        let counts = &mut sums[starts[at]..starts[at + 1]];
        for row in 0..rows {
            exclude(counts, row * columns, 1, columns);
        }
        for column in 0..columns {
            exclude(counts, column, columns, rows);
        }
        visit(cell.count, &Overlap { rows, columns, counts });
    }
    Ok(())
}

/// Solves S_m = Σ_t C(t,m) J_t for J in place, in the `len` entries from `start` on, `step` apart: Σ S_m x^m is
/// Σ J_t (1 + x)^t, so that J are the coefficients of the polynomial at x - 1, found by Horner's scheme.
fn exclude(sums: &mut [u64], start: usize, step: usize, len: usize) {
    for lowest in 0..len {
        for at in (lowest + 1..len).rev() {
            let above = sums[start + at * step];
            let below = &mut sums[start + (at - 1) * step];
            *below = below.wrapping_sub(above);
        }
    }
}

/// The subsets of some sets, the empty one included, numbered.
struct AllSubsets {
    starts: Vec<usize>,
    /// The numbers of the subsets of each set, at the mask that says which members are in.
    numbers: Vec<u32>,
    distinct: usize,
}

/// A set that contains a subset.
#[derive(Clone)]
struct Holder {
    set: u32,
    /// Members of the subset.
    size: usize,
}

impl AllSubsets {
    fn new(sets: &[&[u32]]) -> Self {
        let mut known: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let (mut starts, mut numbers) = (vec![0], Vec::new());
        let mut subset = Vec::new();
        for set in sets {
            for mask in 0..1usize << set.len() {
                subset.clear();
                subset.extend(
                    set.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, &member)| member),
                );
                let number = known.get(&subset).copied().unwrap_or_else(|| {
                    let next = known.len() as u32;
                    known.insert(subset.clone(), next);
                    next
                });
                numbers.push(number);
            }
            starts.push(numbers.len());
        }
        Self { starts, numbers, distinct: known.len() }
    }

    fn of(&self, set: u32) -> &[u32] {
        &self.numbers[self.starts[set as usize]..self.starts[set as usize + 1]]
    }

    /// The other way round: for each subset, the sets that contain it.
    fn holders(&self) -> Vec<Vec<Holder>> {
        let mut holders = vec![Vec::new(); self.distinct];
        for set in 0..self.starts.len() as u32 - 1 {
            for (mask, &subset) in self.of(set).iter().enumerate() {
                holders[subset as usize].push(Holder { set, size: mask.count_ones() as usize });
            }
        }
        holders
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::naive::labels;

    proptest! {
        #[test]
        fn both_ways_count_the_same((truth, predicted) in labels()) {
            let table = Contingency::new(&truth, &predicted);
            let mut compared = Vec::new();
            compare_all(&table, &Services::none(), |count, overlap| {
                compared.push((count, overlap.rows, overlap.columns, overlap.counts.to_vec()));
            }).unwrap();
            let mut counted = Vec::new();
            count_subsets(&table, &Services::none(), |count, overlap| {
                counted.push((count, overlap.rows, overlap.columns, overlap.counts.to_vec()));
            }).unwrap();
            prop_assert_eq!(&compared, &counted);
            for (.., counts) in compared {
                prop_assert_eq!(counts.iter().sum::<u64>(), table.n());
            }
        }
    }

    #[test]
    fn few_large_sets_are_compared() {
        let truth = Sets::from_iter([(0..1000).collect::<Vec<u32>>(), (500..1500).collect()]);
        let predicted = Sets::singletons(&[0, 1]);
        let mut found = Vec::new();
        each_overlap(&truth, &predicted, &Services::none(), |_, overlap| {
            found.push(overlap.entries().filter(|entry| entry.2 > 0).collect::<Vec<_>>());
        })
        .unwrap();
        assert_eq!(found, [[(0, 500, 1), (1, 1000, 1)]; 2]);
    }

    #[test]
    fn refuses_subsets_over_the_budget() {
        let services = Services { memory: 4 * BYTES_PER_SUBSET - 1, ..Services::none() };
        let labels = Sets::singletons(&[0, 0]);
        let refused = count_subsets(&Contingency::new(&labels, &labels), &services, |_, _| ()).unwrap_err();
        assert!(refused.to_string().contains("the members of a set"), "{refused}");
    }

    #[test]
    fn many_large_sets_are_refused() {
        for members in [13, 60] {
            let truth: Sets =
                (0..40_000).map(|row| if row == 7 { (0..members).collect() } else { vec![row] }).collect();
            let refused = each_overlap(&truth, &truth, &Services::none(), |_, _| ()).unwrap_err().to_string();
            assert_eq!(
                refused,
                format!(
                    "the predicted set of row 7 has {members} members; with 40000 distinct pairs of predicted and \
                     true sets, over 32768, a set may have at most 12"
                )
            );
        }
    }
}
