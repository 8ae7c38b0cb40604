//! Sequences of sets: labels of examples, and compositions.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A sequence of sets of numbers, each strictly ascending, stored back to back.
///
/// ```
/// use compflow_api::Sets;
/// let sets = Sets::from_iter([vec![0], vec![2, 0], vec![1]]);
/// assert_eq!(&sets[1], [0, 2]);
/// assert_eq!(sets.len(), 3);
/// ```
#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct Sets {
    /// Ascending, the first 0, one more than there are sets. Borrowed by [`borrowed`](Self::borrowed) only.
    offsets: Cow<'static, [u64]>,
    values: Cow<'static, [u32]>,
}

/// Sets as somebody wrote them, which may be none.
#[derive(Deserialize)]
struct Parts {
    offsets: Vec<u64>,
    values: Vec<u32>,
}

impl TryFrom<Parts> for Sets {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        Self::from_parts(parts.offsets, parts.values)
    }
}

/// A copy owns what it holds, even if the original borrows.
impl Clone for Sets {
    fn clone(&self) -> Self {
        Self { offsets: Cow::Owned(self.offsets.to_vec()), values: Cow::Owned(self.values.to_vec()) }
    }
}

impl Sets {
    /// No sets yet, with room for `sets` sets of `members` members in all.
    pub fn with_capacity(sets: usize, members: usize) -> Self {
        let mut offsets = Vec::with_capacity(sets + 1);
        offsets.push(0);
        Self { offsets: Cow::Owned(offsets), values: Cow::Owned(Vec::with_capacity(members)) }
    }

    /// One singleton per label.
    pub fn singletons(labels: &[u32]) -> Self {
        Self { offsets: (0..=labels.len() as u64).collect(), values: Cow::Owned(labels.to_vec()) }
    }

    /// All sets of 1 to `degree` of the numbers below `k`: by size, then in lexicographic order.
    pub fn all_up_to(k: usize, degree: usize) -> Self {
        let mut sets = Self::default();
        for size in 1..=degree.min(k) {
            let mut set: Vec<u32> = (0..size as u32).collect();
            loop {
                sets.push(&set);
                // The last position that can still be raised; those behind it follow it closely.
                let Some(at) = (0..size).rev().find(|&at| (set[at] as usize) < k - size + at) else { break };
                set[at] += 1;
                for next in at + 1..size {
                    set[next] = set[next - 1] + 1;
                }
            }
        }
        sets
    }

    /// Takes the parts as they are.
    ///
    /// # Errors
    /// If they are not ascending offsets with strictly ascending sets; the text names the set.
    pub fn from_parts(offsets: Vec<u64>, values: Vec<u32>) -> Result<Self> {
        check(&offsets, &values)?;
        Ok(Self { offsets: Cow::Owned(offsets), values: Cow::Owned(values) })
    }

    /// Views memory of somebody else.
    ///
    /// # Errors
    /// As for [`from_parts`](Self::from_parts).
    ///
    /// # Safety
    /// The result is dropped before the memory goes, and is handed on by shared reference only: what is cloned from
    /// it is a copy.
    pub(crate) unsafe fn borrowed(offsets: &[u64], values: &[u32]) -> Result<Self> {
        check(offsets, values)?;
        // SAFETY: the caller sees to it that the lifetimes are kept, which the type no longer says.
        let (offsets, values) = unsafe {
            (
                std::mem::transmute::<&[u64], &'static [u64]>(offsets),
                std::mem::transmute::<&[u32], &'static [u32]>(values),
            )
        };
        Ok(Self { offsets: Cow::Borrowed(offsets), values: Cow::Borrowed(values) })
    }

    /// Appends a set given in any order; repeated members count once.
    pub fn push(&mut self, members: &[u32]) {
        let values = self.values.to_mut();
        let start = values.len();
        values.extend_from_slice(members);
        if !members.is_sorted_by(|a, b| a < b) {
            let mut set = values.split_off(start);
            set.sort_unstable();
            set.dedup();
            values.append(&mut set);
        }
        let end = values.len() as u64;
        self.offsets.to_mut().push(end);
    }

    /// How many sets.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no sets at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sets in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u32]> + ExactSizeIterator + Clone {
        self.offsets.windows(2).map(|ends| &self.values[ends[0] as usize..ends[1] as usize])
    }

    /// `len() + 1` positions in [`values`](Self::values).
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The members, set after set.
    pub fn values(&self) -> &[u32] {
        &self.values
    }
}

/// Whether these are ascending offsets with strictly ascending sets.
fn check(offsets: &[u64], values: &[u32]) -> Result<()> {
    if offsets.first() != Some(&0) || offsets.last().map(|&end| end as usize) != Some(values.len()) {
        return Err(Error::new(format!(
            "set offsets must begin with 0 and end with the number of members, {}",
            values.len()
        )));
    }
    for (row, ends) in offsets.windows(2).enumerate() {
        let Some(set) = values.get(ends[0] as usize..ends[1] as usize) else {
            return Err(Error::new(format!("set offsets descend at set {row}")));
        };
        if !set.is_sorted_by(|a, b| a < b) {
            return Err(Error::new(format!("set {row} is not strictly ascending: {set:?}")));
        }
    }
    Ok(())
}

impl Default for Sets {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl std::ops::Index<usize> for Sets {
    type Output = [u32];

    fn index(&self, index: usize) -> &[u32] {
        &self.values[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

impl<S: AsRef<[u32]>> FromIterator<S> for Sets {
    fn from_iter<I: IntoIterator<Item = S>>(sets: I) -> Self {
        let mut collected = Self::default();
        for set in sets {
            collected.push(set.as_ref());
        }
        collected
    }
}

impl fmt::Debug for Sets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sets_come_by_size_and_in_order() {
        let sets = Sets::all_up_to(3, 2);
        assert_eq!(sets, Sets::from_iter([vec![0], vec![1], vec![2], vec![0, 1], vec![0, 2], vec![1, 2]]));
        assert_eq!(Sets::all_up_to(5, 3).len(), 5 + 10 + 10);
        assert_eq!(Sets::all_up_to(2, 7).len(), 3);
        assert!(Sets::all_up_to(0, 2).is_empty());
    }

    #[test]
    fn a_clone_of_borrowed_sets_outlives_them() {
        let (offsets, values) = (vec![0, 1, 3], vec![4, 1, 9]);
        // SAFETY: dropped before the vectors are.
        let clone = unsafe { Sets::borrowed(&offsets, &values) }.unwrap().clone();
        drop((offsets, values));
        assert_eq!(clone, Sets::from_iter([vec![4], vec![1, 9]]));
    }

    #[test]
    fn parts_that_are_no_sets_are_refused() {
        let refused = |offsets: &[u64], values: &[u32]| {
            Sets::from_parts(offsets.to_vec(), values.to_vec()).unwrap_err().to_string()
        };
        assert_eq!(refused(&[0, 2], &[3, 3]), "set 0 is not strictly ascending: [3, 3]");
        assert_eq!(refused(&[0, 2, 1, 2], &[3, 4]), "set offsets descend at set 1");
        assert!(refused(&[], &[]).contains("must begin with 0"));
        assert!(refused(&[0, 1], &[3, 4]).contains("end with the number of members, 2"));
        let read = |json| serde_json::from_str::<Sets>(json).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"offsets": [0, 1], "values": [3]}"#), Ok(Sets::singletons(&[3])));
        assert_eq!(
            read(r#"{"offsets": [0, 2, 1], "values": [3]}"#),
            Err("set offsets descend at set 0".to_owned())
        );
    }
}
