//! The page's script: what it is, and that nothing else may run.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// One function, so that nothing of it is seen from outside.
const SCRIPT: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("script/element.js"),
    include_str!("script/trial.js"),
    include_str!("script/scatter.js"),
    include_str!("script/graph.js"),
    include_str!("script/confusion.js"),
    include_str!("script/examples.js"),
    include_str!("script/explore.js"),
    "})();\n"
);

/// What stands in `<script>`.
pub(crate) fn text() -> &'static str {
    SCRIPT
}

/// What a browser may do with the page: run this script and no other, fetch nothing from anywhere. Pictures and sounds may be
/// files of the machine.
pub(crate) fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; img-src file:; media-src file:; \
         base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_stand_in_a_page_and_makes_no_markup_of_texts() {
        for text in [
            "</script",
            "<!--",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "fetch(",
        ] {
            assert!(!SCRIPT.contains(text), "{text}");
        }
        assert!(SCRIPT.len() < 40_000, "{} bytes", SCRIPT.len());
    }

    #[test]
    fn the_policy_names_the_script_by_its_hash() {
        assert!(policy().contains("script-src 'sha256-") && !policy().contains("http"));
    }
}
