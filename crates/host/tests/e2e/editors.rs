//! `compflow schema`: what `check` accepts is valid, what it refuses is not.

use serde_json::Value;

use crate::common::{Folder, SMALL, repository};

/// The schema of this build, ready to be used, and its text.
struct Validator {
    schemas: boon::Schemas,
    schema: boon::SchemaIndex,
}

impl Validator {
    fn new(folder: &Folder) -> Self {
        let (stdout, _) = folder.run(&["schema"], 0);
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.add_resource("https://compflow/schema", serde_json::from_str(&stdout).unwrap()).unwrap();
        let schema = compiler.compile("https://compflow/schema", &mut schemas).unwrap();
        Self { schemas, schema }
    }

    fn check(&self, pipeline: &str) -> Result<(), String> {
        let document: toml::Table = toml::from_str(pipeline).unwrap();
        let document: Value = serde_json::to_value(document).unwrap();
        self.schemas.validate(&document, self.schema).map_err(|error| format!("{error:#}"))
    }
}

#[test]
fn shipped_pipelines_are_valid() {
    let folder = Folder::new();
    let validator = Validator::new(&folder);
    let mut seen = 0;
    for entry in std::fs::read_dir(repository().join("pipelines")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let checked = validator.check(&std::fs::read_to_string(&path).unwrap());
            assert_eq!(checked, Ok(()), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 2);
    assert_eq!(validator.check(SMALL), Ok(()));
    assert_eq!(validator.check(&SMALL.replace("k = 6", "k = { grid = [3, 6] }")), Ok(()));
    let pinned = format!("{SMALL}\n[plugins]\nrequire = {{ cap = \"blake3:{}\" }}", "0a".repeat(32));
    assert_eq!(validator.check(&pinned), Ok(()));
}

#[test]
fn broken_pipelines_are_not_valid() {
    let folder = Folder::new();
    let validator = Validator::new(&folder);
    let broken = [
        ("name = \"small\"", "nmae = \"small\""),
        ("seed = 3", "seed = \"three\""),
        ("use = \"kmeans\"", "use = \"kmeens\""),
        ("k = 6", "k = 0"),
        ("k = 6", "k = \"six\""),
        ("k = 6", "clusters = 6"),
        ("k = 6", "k = { grid = [] }"),
        ("k = 6", "k = { grid = [3, 0] }"),
        ("loader = \"synthetic\"", "loader = \"parquet\""),
        ("[[evaluator]]\nuse = \"ari\"", "[[evaluator]]\nus = \"ari\""),
        ("[[clusterer]]", "[clusterer]"),
        ("seed = 3", "plugins = { require = { cap = \"sha256:00\" } }"),
    ];
    for (right, wrong) in broken {
        assert!(SMALL.contains(right), "{right}");
        let pipeline = SMALL.replacen(right, wrong, 1);
        assert!(validator.check(&pipeline).is_err(), "{wrong} is valid");
        // The command agrees.
        folder.write("broken.toml", &pipeline);
        folder.run(&["check", "broken.toml"], 2);
    }
}
