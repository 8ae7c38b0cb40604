//! Evaluators: scores of predicted sets, against the true ones or against the data.
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
//! | `unions` | the sets of two and more members, matched in the same way | `union_precision`, `union_recall` |
//! | `der` | who speaks when, speakers matched in every recording | `der`, `missed`, `false_alarm`, `confusion` |
//! | `jer` | who speaks when, speaker by speaker | `jer` |
//! | `silhouette` | distances from the own and the nearest other centre | `silhouette` |
//! | `ssd` | distances from the own centre | `ssd`, `msd` |
//!
//! The last two look at the examples, not at the truth, and read them batch by batch; `der` and `jer` also look at the times
//! of the examples, and less is better; the others look at the sets alone. Of those, more is better in all, and 1 is a
//! perfect match. None depends on how clusters are named or on the order
//! of the examples (`set_accuracy`, `jer` and those of `unions` alone may, when two matchings of the members are equally good).
//! None loops over pairs of examples: `contingency` counts the distinct sets in one pass, and everything after it works on
//! those counts, in whole numbers as long as possible. `n` examples, `d` members in the largest set and `u` distinct
//! pairs of a predicted and a true set cost O(n d) for the counts and at most O(u 4^d) for the rest; where larger
//! sets are bounded, the component's file says so.
//!
//! # The empty set
//!
//! An example may be in none of the clusters, in truth or as predicted. Its set is a set like any other:
//!
//! | component | the empty set |
//! |---|---|
//! | `cri` | is contained in every set, and contains itself only |
//! | `ari`, `nmi`, `ami` | is a label of its own, equal to itself |
//! | `omega` | shares 0 clusters with every set, itself included |
//! | `bcubed` | shares nothing either; precision is a mean over the examples with a predicted cluster, recall over those with a true one |
//! | `set_f1` | is right where the true set is empty; it takes no part in `set_f1`, only in `set_accuracy` |
//! | `unions` | is no union; a union said where the true set is empty is wrong |
//! | `der`, `jer` | is silence |
//! | `silhouette`, `ssd` | is no cluster: its examples are left out |
//!
//! # When there is nothing to compare
//!
//! Without two examples to compare, labels match: the metrics over pairs are 1 for a single example, and all are
//! for none. `bcubed` and `set_f1` also compare an example with itself, and see whether its two sets have equally
//! many members. Where there are no unions, none were missed: `union_recall` is 1, and so is `union_precision` if none are
//! said. Where there are unions and none are said, it is 0. Where nobody speaks, `der` and `jer` are 0 if nobody is said to, and
//! 1 otherwise. No metric is ever NaN.
//!
//! # Testing
//!
//! Each metric is compared with its definition, written out literally over all pairs of examples; `ari`, `nmi` and
//! `ami` also with scikit-learn. `der` and `jer` are compared with pyannote.metrics.

#![deny(unsafe_code)]

mod ami;
mod ari;
mod bcubed;
mod clusters;
mod contingency;
mod conversation;
mod cri;
mod der;
#[cfg(test)]
mod diarization;
mod information;
#[cfg(test)]
mod invariance;
mod jer;
mod matching;
#[cfg(test)]
mod naive;
mod nmi;
mod omega;
mod overlaps;
mod pair_table;
#[cfg(test)]
mod reference;
mod set_f1;
mod silhouette;
mod speakers;
mod ssd;
mod subsets;
mod unions;

compflow_api::export_library!();
