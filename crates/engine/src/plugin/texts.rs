//! What is read out of the texts of components. An error at the boundary is a text and nothing else, so that the parameter
//! or column it is about, and what was probably meant, stand in the text only. Nobody but this file looks for them there.

/// A refusal taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal<'t> {
    /// What is wrong, without the suggestion.
    pub(crate) text: &'t str,
    /// The path of the parameter that the text begins with: `` `base.params.k` must be … ``.
    pub(crate) parameter: Option<&'t str>,
    /// The column that a loader does not find: ``no column `labels` …``.
    pub(crate) column: Option<&'t str>,
    /// The name that was probably meant: ``…; did you mean `damping`?``.
    pub(crate) suggestion: Option<&'t str>,
}

/// Takes one line of a refusal apart.
pub(crate) fn refusal(line: &str) -> Refusal<'_> {
    let quoted =
        |after: &str| line.strip_prefix(after).and_then(|rest| rest.split_once('`')).map(|(name, _)| name);
    let (text, suggestion) = match line.split_once("; did you mean ") {
        Some((text, near)) => (text, Some(near)),
        None => (line, None),
    };
    Refusal { text, parameter: quoted("`"), column: quoted("no column `"), suggestion }
}

/// Whether a component has itself warned that it did not converge; many do, and say what would help.
pub(crate) fn warned_of_no_convergence(warnings: &[String]) -> bool {
    warnings.iter().any(|warning| warning.contains("did not converge"))
}

/// What a loader said: Arrow puts the kinds of errors before it, once for every hand it went through.
pub(crate) fn without_error_kinds(error: &str) -> String {
    let text = error.rsplit_once("Producer error: ").map_or(error, |(_, text)| text);
    let kinds = ["External error: ", "Compute error: ", "Cast error: ", "Parser error: ", "Parquet error: "];
    kinds.iter().find_map(|kind| text.strip_prefix(kind)).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_its_parameter_and_what_was_meant() {
        let found = refusal("`dampin` is no parameter; did you mean `damping`?");
        assert_eq!((found.parameter, found.column), (Some("dampin"), None));
        assert_eq!((found.text, found.suggestion), ("`dampin` is no parameter", Some("`damping`?")));
        assert_eq!(refusal("no column `x` in a.parquet").column, Some("x"));
        assert_eq!(refusal("too large").parameter, None);
    }

    #[test]
    fn only_the_words_of_the_loader_stay() {
        assert_eq!(without_error_kinds("C Data interface error: Producer error: External error: no"), "no");
        assert_eq!(without_error_kinds("Cast error: no"), "no");
    }
}
