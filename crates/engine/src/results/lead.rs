//! Which metric decides where only one can: the star of a table, the winners of a page.

/// The metric that corrects CRI for chance.
const CORRECTED: &str = "acri";

/// The leading one of some metrics: `acri` if it is among them, else the first.
///
/// Raw CRI does not lead where it can be helped. Most pairs of examples contain each other in no labelling, so it is high
/// for many small clusters whatever they hold, and grows with their number beyond the true one.
pub fn lead<'a>(metrics: &[&'a str]) -> Option<&'a str> {
    metrics.iter().find(|metric| **metric == CORRECTED).or(metrics.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_corrected_for_chance_leads_and_else_the_first() {
        assert_eq!(lead(&["cri", "acri", "ari"]), Some("acri"));
        assert_eq!(lead(&["ari", "set_f1"]), Some("ari"));
        assert_eq!(lead(&[]), None);
    }
}
