//! Evaluators: scores of predicted sets against the true ones.
//!
//! | component | compares | metrics |
//! |---|---|---|
//! | `cri` | which set contains which | `cri`, `acri` |
//! | `ari` | which sets are equal | `ari` |
//! | `nmi` | which sets are equal | `nmi` |
//! | `ami` | which sets are equal | `ami` |
//! | `omega` | how many members two sets share | `omega` |
//! | `bcubed` | how many members two sets share | `bcubed_f1`, `bcubed_precision`, `bcubed_recall` |
//! | `set_f1` | the sets themselves, their members matched to the true ones | `set_f1`, `set_accuracy` |
//!
//! More is better in all of them, and 1 is a perfect match. None depends on how clusters are named or on the order
//! of the examples (`set_accuracy` alone may, when two matchings of the members are equally good). None loops over
//! pairs of examples: `contingency` counts the distinct sets in one pass, and everything after it works on those
//! counts, in whole numbers as long as possible. `n` examples, `d` members in the largest set and `u` distinct
//! pairs of a predicted and a true set cost O(n d) for the counts and at most O(u 4^d) for the rest; where larger
//! sets are bounded, the component's file says so.
//!
//! # When there is nothing to compare
//!
//! Without two examples to compare, labels match: the metrics over pairs are 1 for a single example, and all are
//! for none. `bcubed` and `set_f1` also compare an example with itself, and see whether its two sets have equally
//! many members. No metric is ever NaN.
//!
//! # Testing
//!
//! Each metric is compared with its definition, written out literally over all pairs of examples; `ari`, `nmi` and
//! `ami` also with scikit-learn.

#![deny(unsafe_code)]

mod ami;
mod ari;
mod bcubed;
mod contingency;
mod cri;
mod information;
#[cfg(test)]
mod invariance;
#[cfg(test)]
mod naive;
mod nmi;
mod omega;
mod overlaps;
mod pair_table;
#[cfg(test)]
mod reference;
mod set_f1;
mod subsets;

compflow_api::export_library!();
