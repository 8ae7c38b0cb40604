//! The true sets, for components that are told them.

use std::collections::BTreeSet;

use compflow_api::{Error, Result, Sets, Task};

/// The sets that occur, and which of them every example has.
pub(crate) struct Truth<'a> {
    /// By size and then in lexicographic order, so that nothing depends on the order of the examples.
    pub(crate) sets: Vec<&'a [u32]>,
    /// Of every example the number of its set.
    pub(crate) labels: Vec<usize>,
}

impl<'a> Truth<'a> {
    /// Of a task.
    ///
    /// # Errors
    /// If it has none, or not one for every example.
    pub(crate) fn new(task: &Task<'a>) -> Result<Self> {
        let truth = of(task)?;
        let order: BTreeSet<(usize, &[u32])> = truth.iter().map(|set| (set.len(), set)).collect();
        let sets: Vec<&[u32]> = order.into_iter().map(|(_, set)| set).collect();
        let number = |set: &[u32]| sets.partition_point(|other| (other.len(), *other) < (set.len(), set));
        let labels = truth.iter().map(number).collect();
        Ok(Self { sets, labels })
    }
}

/// The true sets of a task.
///
/// # Errors
/// If it has none, or not one for every example.
pub(crate) fn of<'a>(task: &Task<'a>) -> Result<&'a Sets> {
    let truth = task.truth.ok_or_else(|| Error::data("needs the true sets, and the task has none"))?;
    let n = task.embeddings.len();
    if truth.len() != n {
        return Err(Error::data(format!("{} true sets were given for {n} examples", truth.len())));
    }
    Ok(truth)
}

#[cfg(test)]
mod tests {
    use compflow_api::Embeddings;

    use super::*;

    #[test]
    fn sets_are_listed_by_size() {
        let truth = Sets::from_iter([vec![1, 2], vec![3], vec![0], vec![3], vec![]]);
        let task = Task { truth: Some(&truth), ..Task::new(Embeddings::new(&[0.0; 5], 1)) };
        let found = Truth::new(&task).unwrap();
        assert_eq!(found.sets, [&[][..], &[0], &[3], &[1, 2]]);
        assert_eq!(found.labels, [3, 2, 1, 2, 0]);
    }

    #[test]
    fn as_many_sets_as_examples_are_asked_for() {
        let truth = Sets::singletons(&[0, 1]);
        let task = Task::new(Embeddings::new(&[0.0; 3], 1));
        let refused = |task: &Task<'_>| of(task).unwrap_err().to_string();
        assert_eq!(refused(&task), "needs the true sets, and the task has none");
        let task = Task { truth: Some(&truth), ..task };
        assert_eq!(refused(&task), "2 true sets were given for 3 examples");
    }
}
