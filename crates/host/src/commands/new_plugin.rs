//! `compflow new-plugin`: a folder with a plugin that builds, is found, runs, and has a test.
//!
//! `compflow-api` is in no registry, so its sources come along in the executable: what is generated needs neither this
//! repository nor a network beyond the usual registry, and it speaks the language of the compflow that made it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use compflow_api::Kind;
use compflow_engine::Registry;
use compflow_engine::files::{make_folders, plain, write_file};
use compflow_engine::plugin::trust;
use include_dir::{Dir, include_dir};

use super::{plugins, print};
use crate::cli::{Language, NewPluginArgs};
use crate::failure::Failure;

static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates");
static API: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../api/src");
static HEADERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../api/include");
const API_MANIFEST: &str = include_str!("../../../api/Cargo.toml");
const WORKSPACE_MANIFEST: &str = include_str!("../../../../Cargo.toml");

/// What crates, types and files cannot be called, or had better not.
const KEYWORDS: [(&str, &str); 2] = [
    (
        "Rust",
        "abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if \
         impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try \
         type typeof union unsafe unsized use virtual where while yield",
    ),
    (
        "C",
        "auto break case char const continue default do double else enum extern float for goto if inline int long main \
         register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while",
    ),
];

/// The files of a folder, by their path in it.
type Files = BTreeMap<PathBuf, String>;

/// Runs the command.
///
/// # Errors
/// If the name cannot be a component's, or the folder cannot be made.
pub(crate) fn run(plugins: &[PathBuf], args: &NewPluginArgs) -> Result<i32, Failure> {
    print(&new_plugin(plugins, args)?)
}

/// Makes the folder; returns what to do next.
///
/// # Errors
/// If the name cannot be a component's, or the folder cannot be made.
fn new_plugin(plugins: &[PathBuf], args: &NewPluginArgs) -> Result<String, Failure> {
    let name = &args.name;
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(good) {
        return Err(Failure::request(format!(
            "`{name}` cannot be the name of a component: use a lower case letter, then letters, digits, `_` and `-`"
        )));
    }
    let registry = plugins::registry(plugins)?;
    if let Some(reason) = unusable(args, &registry) {
        return Err(Failure::request(format!(
            "`{name}` cannot be the name of a plugin: {reason}; choose another name"
        )));
    }
    if registry.names(args.kind()).any(|known| known == name) {
        return Err(Failure::request(format!("there is a {} `{name}` already: choose another name", args.kind())));
    }
    let folder = Path::new(name);
    if folder.exists() {
        return Err(Failure::request(format!("{name} is already there")));
    }
    let files = match args.lang {
        Language::Rust => rust(args)?,
        Language::C => c(args)?,
    };
    for (path, text) in files {
        let path = folder.join(path);
        let written = path.parent().map_or(Ok(()), make_folders);
        let written = written.and_then(|()| write_file(&path, |file| file.write_all(text.as_bytes())));
        written.map_err(|error| Failure::run(format!("{}: {}", path.display(), plain(&error))))?;
    }
    let steps = template(&format!("README-{}.md", args.lang.name()), args);
    let steps = steps.split("```").nth(1).and_then(|steps| steps.split_once('\n')).map_or("", |(_, steps)| steps);
    let steps: String = steps.lines().map(|line| format!("  {line}\n")).collect();
    let article = if args.kind() == Kind::Evaluator { "an" } else { "a" };
    Ok(format!("{name} is {article} {} in {}. Next:\n\n  cd {name}\n{steps}", args.kind(), args.lang.title()))
}

/// Why a name that a component may have does not do for a plugin that is made from our templates.
fn unusable(args: &NewPluginArgs, registry: &Registry) -> Option<String> {
    let stem = args.name.replace('-', "_");
    if let Some((language, _)) = KEYWORDS.iter().find(|(_, words)| words.split(' ').any(|word| word == stem)) {
        return Some(format!("it is a keyword of {language}"));
    }
    // A library hides those of the same file name that come later on the search path, with all their components.
    let taken = registry.libraries.iter().find(|library| trust::stem(&library.path) == Some(&stem));
    if let Some(library) = taken {
        return Some(format!(
            "there is {} already, which a library of that name would hide",
            library.path.display()
        ));
    }
    if args.lang == Language::C {
        return None;
    }
    let class = class(&args.name);
    let mut words = text(&format!("rust/{}.rs", args.kind())).split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word == class).then(|| format!("its type would be called `{class}`, as another is"))
}

/// A template with nothing filled in.
fn text(path: &str) -> &'static str {
    TEMPLATES.get_file(path).and_then(include_dir::File::contents_utf8).unwrap_or_default()
}

/// The name as types have it.
fn class(name: &str) -> String {
    name.split(['_', '-'])
        .filter(|word| !word.is_empty())
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect()
}

/// A template with everything filled in.
fn template(path: &str, args: &NewPluginArgs) -> String {
    let stem = args.name.replace('-', "_");
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let test_args = if args.kind() == Kind::Loader { " --path points.txt" } else { "" };
    text(path)
        .replace("PLUGIN_KIND", &format!("COMPFLOW_KIND_{}", args.kind().to_string().to_uppercase()))
        .replace("PluginType", &class(&args.name))
        .replace("plugin_library", &format!("{prefix}compflow_{stem}{suffix}"))
        .replace("plugin_test_args", test_args)
        .replace("plugin_crate", &args.name.replace('_', "-"))
        .replace("plugin_kind", &args.kind().to_string())
        .replace("plugin_stem", &stem)
        .replace("plugin_name", &args.name)
}

/// What both languages have.
fn common(args: &NewPluginArgs) -> Files {
    let mut files = Files::new();
    files.insert("pipeline.toml".into(), template(&format!("pipelines/{}.toml", args.kind()), args));
    files.insert("README.md".into(), template(&format!("README-{}.md", args.lang.name()), args));
    if args.kind() == Kind::Loader {
        files.insert("points.txt".into(), template("pipelines/points.txt", args));
    }
    files
}

fn c(args: &NewPluginArgs) -> Result<Files, Failure> {
    if args.api.is_some() {
        return Err(Failure::request("--api is for Rust: a plugin in C needs nothing but the header beside it"));
    }
    let mut files = common(args);
    let source = template(&format!("c/{}.c", args.kind()), args) + &template("c/library.c", args);
    files.insert(format!("{}.c", args.name.replace('-', "_")).into(), source);
    files.insert("Makefile".into(), template("c/Makefile", args));
    files.insert(".gitignore".into(), "*.so\n*.dylib\n/results\n".to_owned());
    files.extend(texts(&HEADERS, ""));
    Ok(files)
}

fn rust(args: &NewPluginArgs) -> Result<Files, Failure> {
    let mut files = common(args);
    let api = match &args.api {
        None => {
            files.extend(texts(&API, "compflow-api/src"));
            files.insert("compflow-api/Cargo.toml".into(), api_manifest().map_err(Failure::run)?);
            "{ path = \"compflow-api\" }".to_owned()
        }
        Some(api) => api_dependency(api)?,
    };
    let mut dependencies = format!("compflow-api = {api}\n");
    let needed: &[&str] = match args.kind() {
        Kind::Clusterer | Kind::Composer => &["schemars", "serde"],
        Kind::Evaluator | Kind::Loader => &[],
    };
    for name in needed {
        dependencies += &format!("{name} = {}\n", shared_dependency(name).map_err(Failure::run)?);
    }
    let manifest = template("rust/Cargo.toml.in", args).replace("plugin_dependencies\n", &(dependencies + "\n"));
    files.insert("Cargo.toml".into(), manifest);
    files.insert("src/lib.rs".into(), template(&format!("rust/{}.rs", args.kind()), args));
    files.insert(".gitignore".into(), "/target\n/results\n".to_owned());
    Ok(files)
}

/// The files of an embedded folder, `below` another.
fn texts(folder: &Dir<'_>, below: &str) -> Files {
    let mut files = Files::new();
    for file in folder.files() {
        files.insert(Path::new(below).join(file.path()), file.contents_utf8().unwrap_or_default().to_owned());
    }
    for inner in folder.dirs() {
        files.extend(texts(inner, below));
    }
    files
}

/// Where the user wants `compflow-api` from: a folder, a repository, or a version in a registry.
fn api_dependency(api: &str) -> Result<String, Failure> {
    if Path::new(api).join("Cargo.toml").is_file() {
        let path = Path::new(api).canonicalize().unwrap_or_else(|_| PathBuf::from(api));
        return Ok(format!("{{ path = {:?} }}", path.display().to_string()));
    }
    if api.contains("://") || api.starts_with("git@") {
        return Ok(format!("{{ git = {api:?} }}"));
    }
    if api.starts_with(|c: char| c.is_ascii_digit() || "=^~<>".contains(c)) {
        return Ok(format!("{api:?}"));
    }
    Err(Failure::request(format!(
        "--api {api}: is neither a folder with a Cargo.toml nor a git address nor a version"
    )))
}

/// The workspace's requirement of a crate, as a value in TOML.
fn shared_dependency(name: &str) -> Result<String, String> {
    let workspace: toml::Table = toml::from_str(WORKSPACE_MANIFEST).map_err(|error| error.to_string())?;
    let found = workspace.get("workspace").and_then(|table| table.get("dependencies")?.get(name));
    found.map(ToString::to_string).ok_or_else(|| format!("the workspace does not name {name}"))
}

/// The api's manifest with what it inherits from the workspace written out, and without what only its tests need.
fn api_manifest() -> Result<String, String> {
    let workspace: toml::Table = toml::from_str(WORKSPACE_MANIFEST).map_err(|error| error.to_string())?;
    let mut manifest: toml::Table = toml::from_str(API_MANIFEST).map_err(|error| error.to_string())?;
    manifest.remove("lints");
    manifest.remove("dev-dependencies");
    manifest.remove("test");
    for (section, inherited) in [("package", "package"), ("dependencies", "dependencies")] {
        let shared =
            workspace.get("workspace").and_then(|table| table.get(inherited)).and_then(toml::Value::as_table);
        let Some(entries) = manifest.get_mut(section).and_then(toml::Value::as_table_mut) else { continue };
        for (key, value) in entries.iter_mut() {
            if value.get("workspace") == Some(&toml::Value::Boolean(true)) {
                *value = shared
                    .and_then(|shared| shared.get(key.as_str()))
                    .cloned()
                    .ok_or_else(|| format!("the workspace does not name {key}"))?;
            }
        }
    }
    toml::to_string(&manifest).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_of_the_api_stands_alone() {
        let manifest: toml::Table = toml::from_str(&api_manifest().unwrap()).unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some("compflow-api"));
        assert!(manifest["package"]["edition"].is_str());
        assert!(!manifest["dependencies"].to_string().contains("workspace"));
        assert!(!manifest.contains_key("test"), "its tests are not copied");
        assert!(manifest["dependencies"]["arrow-array"].get("version").is_some());
        assert_eq!(manifest["features"]["arrow"].as_array().map(Vec::len), Some(2));
        assert!(API.get_file("lib.rs").is_some() && HEADERS.get_file("compflow.h").is_some());
    }

    #[test]
    fn every_template_is_there() {
        for kind in Kind::ALL {
            for path in [format!("rust/{kind}.rs"), format!("c/{kind}.c"), format!("pipelines/{kind}.toml")] {
                assert!(TEMPLATES.get_file(&path).is_some(), "{path}");
            }
        }
    }
}
