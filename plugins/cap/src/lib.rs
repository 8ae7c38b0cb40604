//! Compositional affinity propagation (CAP): examples choose exemplars among themselves, and may choose the composition of
//! several.
//!
//! The paper's Algorithms 1 and 2, reduced to what matters in them (`messages` has the equations, and why they are the
//! same). In the paper's symbols:
//!
//! | the paper | here |
//! | --- | --- |
//! | S(i, c), 𝒞 | `Similarities`, and `Compositions` for its sets of two and more |
//! | γ = -S(k, {k}) | minus the `preference` |
//! | a - ā | δ, the availabilities |
//! | b - b̄, for i ≠ k | max(0, ρ), of the responsibilities |
//! | h(k) - b̄(k, k) | ρ(k, k), `own` of the columns |
//! | e - ē | P(k), `support` of the columns |
//! | q(i, c) - q*(i) | Σ_{k in c} δ(i, k); S(i, c) with it is v_i(c), and is nowhere kept |
//! | q*(i), which grows without bounds | nothing, as it never matters |
//! | FindAllMaxes: r(k) over φ(k), s(k) over the others | `Row::with`, `Row::without` |
//! | ψ_τ: compositions that share all but the last member | a segment: they share all but the first |
//! | c_i = argmax q + S | `Messages::choices` |
//! | Val = λ·OldVal + (1 - λ)·NewVal | `damping` λ, of what `Damped` says |
//! | CAP⊂ and its set ℰ | `subset`, with `extension = "nearest-inferred"` |
//!
//! | module | holds |
//! | --- | --- |
//! | `cap` | the clusterer: parameters, and the extension of a subset |
//! | `approach`, `candidates` | who passes messages, and who may become an exemplar |
//! | `order` | examples sorted, so that nothing depends on their rows |
//! | `run` | iterations until nobody chooses otherwise, and the search for a preference |
//! | `messages` | one iteration |
//! | `row` | the maxima that one example needs in it |
//! | `compositions` | which compositions there are, in the order they are read |
//! | `similarities` | how near examples and compositions are |
//! | `memory` | whether similarities are kept or computed anew |
//! | `solution` | from exemplars to a feasible clustering |
//! | `exchange` | what another exemplar, one less or one more gains |
//! | `climb` | exemplars changed until nothing is better, or there are as many as wanted |
//!
//! Measurements are in `docs/cap.md`.
//!
//! # Testing
//!
//! Messages are compared with the paper's listing as it is printed, damped and not, with plain loops over all sets, and for
//! degree 1 with affinity propagation; the presets' answers with those of the listing. What a change of exemplars gains is
//! compared with carrying it out, and objectives with the best of all solutions where those can be counted. That results
//! are feasible and objectives true, and that nothing depends on the order of rows, are property tests.
//!
//! # Weaknesses
//!
//! - A cluster is where one example lies, and unions are composed of several such examples, with the noise of each.
//!   Methods that average (`ckm`) come nearer to the truth the more examples there are.
//! - The preference decides how many singletons there are, and no value suits all data. The default finds up to three
//!   too many where classes overlap widely; of one true singleton it finds 2 to 12, and of two up to five, as the
//!   median distance, of which the price is a part, is one of noise then. Many singletons (30, 50) it finds where the
//!   last one gains at least three times as much as one too many; where noise is as large as what tells them apart,
//!   it finds a few of them only.
//! - Where single examples are mostly noise, as in hundreds of dimensions, a composition of two or three of them lies farther from a
//!   union than an example of that union does. Then unions become exemplars, and at a low price nothing else:
//!   `preference = { k = … }`, or a method that averages.
//! - Compositions cost nothing. With some exemplars too many, their unions reach nearly everywhere, and examples between two
//!   classes become unions of others.
//! - A class that never occurs alone has no exemplar. Nor is there an outlier: everybody belongs somewhere.
//! - Squared distances are compared as if all clusters were equally wide.
//! - Exact CAP takes n^(d+1) steps an iteration. Messages between sets have no guarantee: they may settle on a solution
//!   that is not the best, or never. Exchanging exemplars mends what changing one at a time can mend.

#![deny(unsafe_code)]

mod approach;
mod candidates;
mod cap;
mod climb;
mod compositions;
mod exchange;
mod memory;
mod messages;
mod order;
mod row;
mod run;
mod similarities;
mod solution;

pub use cap::{Cap, Extension, Params, Preset};
pub use compflow_kernels::preference::{MedianPerExample, PerExample, Preference, Target};
pub use messages::Damped;
pub use run::Finish;

compflow_api::export_library!();
