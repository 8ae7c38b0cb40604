//! The tree of merges, and its cuts.

/// Two groups become one; each is named by one of its examples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Merge {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) height: f64,
}

/// All merges of some examples, by ascending height.
pub(super) struct Dendrogram {
    pairs: Vec<(u32, u32)>,
    heights: Vec<f64>,
    examples: usize,
}

impl Dendrogram {
    /// Sorts the merges; those of equal height keep their order.
    pub(super) fn new(examples: usize, mut merges: Vec<Merge>) -> Self {
        merges.sort_by(|a, b| a.height.total_cmp(&b.height));
        let pairs = merges.iter().map(|merge| (merge.a, merge.b)).collect();
        let heights = merges.iter().map(|merge| merge.height).collect();
        Self { pairs, heights, examples }
    }

    /// The height of every merge.
    pub(super) fn heights(&self) -> &[f64] {
        &self.heights
    }

    /// The same, at the end.
    pub(super) fn into_heights(self) -> Vec<f64> {
        self.heights
    }

    /// How many clusters there are if only merges below `height` are done.
    pub(super) fn clusters_below(&self, height: f64) -> usize {
        self.examples - self.heights.partition_point(|&merge| merge < height)
    }

    /// The cluster of every example after as many merges as leave `clusters`, numbered in the order of their first
    /// examples.
    pub(super) fn labels(&self, clusters: usize) -> Vec<u32> {
        let mut parents: Vec<u32> = (0..self.examples as u32).collect();
        for &(a, b) in &self.pairs[..self.examples - clusters] {
            let (a, b) = (root(&mut parents, a), root(&mut parents, b));
            // The root is a cluster's first example.
            parents[a.max(b) as usize] = a.min(b);
        }
        let mut labels: Vec<u32> = Vec::with_capacity(self.examples);
        let mut found = 0;
        for example in 0..self.examples as u32 {
            let root = root(&mut parents, example);
            if root == example {
                labels.push(found);
                found += 1;
            } else {
                labels.push(labels[root as usize]);
            }
        }
        labels
    }
}

/// The root of an example's tree; paths are halved on the way.
fn root(parents: &mut [u32], mut example: u32) -> u32 {
    while parents[example as usize] != example {
        let grandparent = parents[parents[example as usize] as usize];
        parents[example as usize] = grandparent;
        example = grandparent;
    }
    example
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_keep_the_lowest_merges_and_number_clusters_by_their_first_example() {
        let merge = |a, b, height| Merge { a, b, height };
        let tree =
            Dendrogram::new(5, vec![merge(3, 4, 2.0), merge(1, 2, 1.0), merge(2, 4, 3.0), merge(0, 4, 3.0)]);
        assert_eq!(tree.heights(), [1.0, 2.0, 3.0, 3.0]);
        assert_eq!(tree.labels(5), [0, 1, 2, 3, 4]);
        assert_eq!(tree.labels(3), [0, 1, 1, 2, 2]);
        assert_eq!(tree.labels(2), [0, 1, 1, 1, 1]);
        assert_eq!(tree.labels(1), [0; 5]);
        assert_eq!([0.0, 1.0, 1.5, 3.0, 4.0].map(|height| tree.clusters_below(height)), [5, 5, 4, 3, 1]);
    }

    #[test]
    fn one_example_is_one_cluster() {
        let tree = Dendrogram::new(1, Vec::new());
        assert_eq!((tree.clusters_below(0.0), tree.labels(1)), (1, vec![0]));
    }
}
