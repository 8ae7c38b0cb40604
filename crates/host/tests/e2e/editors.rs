//! `compflow schema`: what `check` accepts is valid, what it refuses is not.

use serde_json::Value;

use crate::common::{Folder, SMALL, repository};

/// As much of JSON Schema as is used, by the letter; a keyword that is not known fails the test.
struct Validator {
    root: Value,
}

impl Validator {
    fn new(folder: &Folder) -> Self {
        let (stdout, _) = folder.run(&["schema"], 0);
        Self { root: serde_json::from_str(&stdout).unwrap() }
    }

    fn check(&self, pipeline: &str) -> Result<(), String> {
        let document: toml::Table = toml::from_str(pipeline).unwrap();
        self.validate(&self.root, &serde_json::to_value(document).unwrap(), "")
    }

    fn validate(&self, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
        let Value::Object(keywords) = schema else {
            return if *schema == Value::Bool(true) { Ok(()) } else { Err(format!("{path}: nothing is allowed")) };
        };
        for (keyword, argument) in keywords {
            let holds = self.holds(schema, keyword, argument, value, path)?;
            if !holds {
                return Err(format!("{path}: {keyword} {argument} does not hold for {value}"));
            }
        }
        Ok(())
    }

    fn holds(
        &self,
        schema: &Value,
        keyword: &str,
        argument: &Value,
        value: &Value,
        path: &str,
    ) -> Result<bool, String> {
        let matching = |schemas: &Value| {
            schemas.as_array().unwrap().iter().filter(|schema| self.validate(schema, value, path).is_ok()).count()
        };
        let list = |argument: &Value| argument.as_array().unwrap().clone();
        let compare =
            |holds: fn(f64, f64) -> bool| value.as_f64().is_none_or(|it| holds(it, argument.as_f64().unwrap()));
        Ok(match keyword {
            "$ref" => {
                let target = argument.as_str().unwrap().trim_start_matches('#');
                self.validate(self.root.pointer(target).expect(target), value, path)?;
                true
            }
            "type" => match argument {
                Value::Array(names) => names.iter().any(|name| is_a(value, name.as_str().unwrap())),
                name => is_a(value, name.as_str().unwrap()),
            },
            "const" => value == argument,
            "enum" => list(argument).contains(value),
            "not" => self.validate(argument, value, path).is_err(),
            "anyOf" => matching(argument) > 0,
            "oneOf" => matching(argument) == 1,
            "minimum" => compare(|it, bound| it >= bound),
            "maximum" => compare(|it, bound| it <= bound),
            "exclusiveMinimum" => compare(|it, bound| it > bound),
            "exclusiveMaximum" => compare(|it, bound| it < bound),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= argument.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= argument.as_u64().unwrap()),
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.validate(argument, item, &format!("{path}[{at}]"))?;
                }
                true
            }
            "required" => value
                .as_object()
                .is_none_or(|table| list(argument).iter().all(|key| table.contains_key(key.as_str().unwrap()))),
            "properties" => {
                for (key, schema) in argument.as_object().unwrap() {
                    value
                        .get(key)
                        .map_or(Ok(()), |inner| self.validate(schema, inner, &format!("{path}.{key}")))?;
                }
                true
            }
            "additionalProperties" => {
                let known = |key: &str| schema.get("properties").is_some_and(|known| known.get(key).is_some());
                for (key, inner) in value.as_object().into_iter().flatten().filter(|(key, _)| !known(key)) {
                    self.validate(argument, inner, &format!("{path}.{key}"))?;
                }
                true
            }
            // The one pattern there is.
            "pattern" if argument == "^blake3:[0-9a-f]{64}$" => value.as_str().is_none_or(|text| {
                text.strip_prefix("blake3:")
                    .is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
            }),
            "$schema" | "$defs" | "title" | "description" | "default" | "examples" | "format" => true,
            // What presets stand for; a validator ignores what it does not know.
            "instead_of" | "values" | "x-select" => true,
            other => panic!("the schema uses `{other}`, which this test does not know"),
        })
    }
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0),
        other => panic!("no such type: {other}"),
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
    for selected in ["{ select = [3, 6] }", "{ select = { from = 3, to = 6 } }", "\"auto\""] {
        assert_eq!(validator.check(&SMALL.replace("k = 6", &format!("k = {selected}"))), Ok(()));
    }
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
        ("k = 6", "k = { select = [] }"),
        ("k = 6", "k = { select = { from = 2 } }"),
        ("restarts = 3", "restarts = \"auto\""),
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
