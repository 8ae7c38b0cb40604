//! A corpus that fuzzing has left, once more: every crate that has a target includes this file in its tests.

use std::path::Path;

/// Gives every input of a target's corpus to what the target calls.
pub(crate) fn replay(target: &str, called: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut inputs: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{target} has no corpus");
    for input in inputs {
        // A panic says which input it was.
        println!("{}", input.display());
        called(&std::fs::read(&input).unwrap());
    }
}
