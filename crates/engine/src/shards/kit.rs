//! What somebody who takes part computes with. Sums of another version, library or file look like ours and are of something else, so
//! the driver sends its own along, and whoever has others refuses to answer.

use compflow_api::Kind;
use serde::{Deserialize, Serialize};

use super::job::Used;
use crate::error::{Error, Result};
use crate::files::sealed;
use crate::machine::host;
use crate::plugin::Registry;
use crate::plugin::factory::Created;

/// What somebody who takes part computes with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kit {
    /// The version of compflow.
    compflow: String,
    components: Vec<Part>,
}

/// A component as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    kind: Kind,
    name: String,
    /// The file that it is from, and the hash of its content.
    library: String,
    hash: String,
    /// Another one if anything else that it is made of differs: a file that it reads, a component that it asks for.
    key: String,
}

impl Kit {
    pub(super) fn new() -> Self {
        Self { compflow: env!("CARGO_PKG_VERSION").to_owned(), components: Vec::new() }
    }

    /// Adds a component that was made.
    pub(super) fn add(&mut self, registry: &Registry, kind: Kind, used: &Used, made: &Created) {
        let Ok(entry) = registry.find(kind, &used.name) else { return };
        let library = &registry.libraries[entry.library];
        self.components.push(Part {
            kind,
            name: used.name.clone(),
            library: library.path.display().to_string(),
            hash: library.hash().map(str::to_owned).unwrap_or_default(),
            key: made.key.clone(),
        });
    }

    /// As bytes, to be sent to others.
    pub fn to_bytes(&self) -> Vec<u8> {
        sealed::to_json(self).unwrap_or_default().into_bytes()
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let text = "these bytes do not say what the driver computes with, or are damaged";
        sealed::from_json(bytes).ok_or_else(|| Error::request(text))
    }

    /// Refuses to work for a driver that computes with something else.
    ///
    /// # Errors
    /// Saying what differs, and what each side has.
    pub fn require(&self, driver: &Self) -> Result<()> {
        let differs =
            |text: String| Err(Error::request(format!("{text}: what comes of both would not go together")));
        let host = host();
        if self.compflow != driver.compflow {
            let (ours, theirs) = (&self.compflow, &driver.compflow);
            return differs(format!("compflow is {ours} on {host}, and {theirs} where the driver is"));
        }
        for (ours, theirs) in self.components.iter().zip(&driver.components) {
            let (kind, name) = (theirs.kind, &theirs.name);
            if ours.hash != theirs.hash {
                let (here, there) = (short(&ours.hash), short(&theirs.hash));
                return differs(format!(
                    "{kind} `{name}` is of {} (blake3:{here}…) on {host}, and of {} (blake3:{there}…) where the driver is",
                    ours.library, theirs.library
                ));
            }
            if ours.key != theirs.key {
                return differs(format!(
                    "{kind} `{name}` reads other files, or asks for other components, on {host} than where the driver is"
                ));
            }
        }
        Ok(())
    }
}

/// Enough of a hash to tell two of them apart.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_computes_with_something_else_says_what() {
        let kit = |compflow: &str, hash: &str, key: &str| Kit {
            compflow: compflow.to_owned(),
            components: vec![Part {
                kind: Kind::Clusterer,
                name: "ckm".to_owned(),
                library: "/lib/libcompflow_ckm.so".to_owned(),
                hash: hash.to_owned(),
                key: key.to_owned(),
            }],
        };
        let driver = Kit::from_bytes(&kit("0.2.0", "ab", "k").to_bytes()).unwrap();
        kit("0.2.0", "ab", "k").require(&driver).unwrap();
        let refused = |kit: Kit| kit.require(&driver).unwrap_err().to_string();
        let text = refused(kit("0.1.0", "ab", "k"));
        assert!(
            text.starts_with("compflow is 0.1.0 on ") && text.contains("and 0.2.0 where the driver"),
            "{text}"
        );
        let text = refused(kit("0.2.0", "cd", "k"));
        assert!(text.contains("(blake3:cd…) on ") && text.contains("(blake3:ab…) where the driver"), "{text}");
        let text = refused(kit("0.2.0", "ab", "other"));
        assert!(text.starts_with("clusterer `ckm` reads other files"), "{text}");
        let mut bytes = driver.to_bytes();
        bytes[20] ^= 1;
        assert!(Kit::from_bytes(&bytes).is_err());
    }
}
