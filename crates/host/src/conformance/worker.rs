//! One component, point by point.

use std::fs::File;
use std::path::{Path, PathBuf};

use compflow_api::{Error, ForeignComponent, Kind};
use compflow_engine::files::plain;
use compflow_engine::plugin::library;
use serde_json::{Map, Value};

use crate::cli::TestPluginArgs;
use crate::commands::plugins;
use crate::conformance::report::{Verdict, point, require};
use crate::conformance::subject::Subject;
use crate::conformance::{clusterer, composer, evaluator, loader, parameters};
use crate::failure::Failure;

/// Tests the component with this number.
///
/// # Errors
/// If the request was wrong.
pub(crate) fn work(plugins: &[PathBuf], args: &TestPluginArgs, file: &Path, number: usize) -> Result<(), Failure> {
    let opened = File::open(file).map_err(|error| Failure::run(plain(&error)))?;
    let siblings =
        library::open(file, opened, false).map_err(|reason| Failure::run(reason.to_string()))?.components;
    let component = *siblings.get(number).ok_or_else(|| Failure::request("there is no such component"))?;
    let registry = plugins::registry(plugins)?;
    let schema: Value = serde_json::from_str(component.schema).unwrap_or_default();
    let (params, missing) = given_params(&schema, &for_component(&args.params, component.name))?;
    // Work that does not stop may use it to the very end.
    let subject: &'static Subject = Box::leak(Box::new(Subject {
        component,
        siblings,
        registry,
        schema,
        params,
        path: for_component(&args.path, component.name).map(PathBuf::from),
        columns: columns_for(&args.columns, component.name)?,
    }));
    point("describes itself", || {
        describes_itself(&subject.component)?;
        parameters::describes_all(&subject.schema)?;
        Ok(Verdict::Pass)
    });
    if let Some(missing) = missing {
        let name = subject.component.name;
        let why = format!("needs `{missing}`: give --params {name}='{{\"{missing}\": ...}}'");
        point("everything else", || Ok(Verdict::Skip(why)));
        return Ok(());
    }
    let mut made = true;
    point("can be made, and from its defaults too", || {
        let outcome = parameters::defaults(subject);
        made = outcome.is_ok();
        let hint = format!("or give --params {}='{{...}}'", subject.component.name);
        outcome.map_err(|error| Error::new(format!("{error}; {hint}")))
    });
    if !made {
        return Ok(());
    }
    point("refuses bad parameters by their names", || parameters::refuses_bad(subject));
    point("says what it needs", || parameters::says_what_it_needs(subject));
    match subject.component.kind {
        Kind::Clusterer => clusterer::test(subject),
        Kind::Composer => composer::test(subject),
        Kind::Evaluator => evaluator::test(subject),
        Kind::Loader => loader::test(subject),
    }
    Ok(())
}

/// What an option says for this component: `NAME=VALUE` before a value for all.
fn for_component(values: &[String], name: &str) -> Option<String> {
    let own = values.iter().find_map(|value| value.strip_prefix(&format!("{name}=")));
    let is_named = |value: &str| {
        value
            .split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-'))
    };
    own.or_else(|| values.iter().map(String::as_str).find(|value| !is_named(value))).map(str::to_owned)
}

/// Refuses values of `--params` that are no object, or for a component with a typing error.
///
/// # Errors
/// Naming what was found, and what would do.
pub(super) fn check_params(values: &[String], components: &[&str]) -> Result<(), Failure> {
    for value in values {
        let named = value.split_once('=').filter(|(name, _)| !name.contains(['{', '"']));
        // One that is named quite differently is of another library that is tested with the same options.
        if let Some((name, _)) = named.filter(|(name, _)| !components.contains(name))
            && let Some(near) = compflow_api::nearest(name, components.iter().copied())
        {
            let text = format!("--params: the library offers no `{name}`; did you mean `{near}`?");
            return Err(Failure::request(text));
        }
        let json = named.map_or(value.as_str(), |(_, json)| json);
        if let Err(error) = serde_json::from_str::<Map<String, Value>>(json) {
            let name = named.map_or(components.first().copied().unwrap_or("NAME"), |(name, _)| name);
            let text = format!(
                "--params: expected a JSON object in quotes, such as {name}='{{\"k\": 4}}', found `{json}` ({error})"
            );
            return Err(Failure::request(text));
        }
    }
    Ok(())
}

/// The columns that `--columns` names for this component: `NAME:COLUMN=SOURCE,…` before those for all.
///
/// # Errors
/// If they are not named like this.
pub(super) fn columns_for(values: &[String], name: &str) -> Result<Option<Vec<(String, String)>>, Failure> {
    // A further column is called `column:…`, which is no component's name.
    let split = |value: &'_ String| match value.split_once(':') {
        Some((name, columns)) if name != "column" && !name.contains(['=', ',']) => {
            (Some(name.to_owned()), columns.to_owned())
        }
        _ => (None, value.clone()),
    };
    let mut found: Vec<(Option<String>, String)> = values.iter().map(split).collect();
    found.retain(|(of, _)| of.as_deref().is_none_or(|of| of == name));
    found.sort_by_key(|(of, _)| of.is_none());
    let Some((_, columns)) = found.into_iter().next() else { return Ok(None) };
    let pair = |column: &str| match column.split_once('=') {
        Some((name, source)) if !name.is_empty() && !source.is_empty() => Ok((name.to_owned(), source.to_owned())),
        _ => Err(Failure::request(format!("--columns {columns}: expected COLUMN=SOURCE, found `{column}`"))),
    };
    columns.split(',').map(pair).collect::<Result<_, _>>().map(Some)
}

/// The parameters to test with, and one that must be given and is not.
fn given_params(schema: &Value, given: &Option<String>) -> Result<(Map<String, Value>, Option<String>), Failure> {
    let given = given.as_deref().unwrap_or("{}");
    let mut params: Map<String, Value> =
        serde_json::from_str(given).map_err(|error| Failure::request(format!("--params {given}: {error}")))?;
    let required =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if params.contains_key(name) {
            continue;
        }
        match parameters::some_value(&schema["properties"][name]) {
            Some(value) => params.insert(name.to_owned(), value),
            None => return Ok((params, Some(name.to_owned()))),
        };
    }
    Ok((params, None))
}

fn describes_itself(component: &ForeignComponent) -> compflow_api::Result<()> {
    let ForeignComponent { name, summary, .. } = component;
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    require(name.chars().all(good), || format!("`{name}` is not lower case letters, digits, `_` and `-`"))?;
    require(!summary.trim().is_empty(), || "has no summary".to_owned())?;
    require(!summary.contains('\n'), || "its summary is more than one line".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_for_all_or_for_one() {
        let values = ["a={\"k\": 1}".to_owned(), "{\"k\": 2}".to_owned()];
        assert_eq!(for_component(&values, "a").as_deref(), Some("{\"k\": 1}"));
        assert_eq!(for_component(&values, "b").as_deref(), Some("{\"k\": 2}"));
        assert_eq!(for_component(&values[..1], "b"), None);
        assert_eq!(for_component(&["data/x=1.npy".to_owned()], "b").as_deref(), Some("data/x=1.npy"));
    }

    #[test]
    fn parameters_that_are_none_are_refused_with_what_would_do() {
        let refused = |value: &str| check_params(&[value.to_owned()], &["mine", "other"]).unwrap_err().to_string();
        assert_eq!(refused("mime={}"), "--params: the library offers no `mime`; did you mean `mine`?");
        assert!(
            refused("mine=k:4")
                .starts_with("--params: expected a JSON object in quotes, such as mine='{\"k\": 4}'")
        );
        assert!(refused("[1]").contains("found `[1]`"));
        assert!(check_params(&["{\"k\": \"a=b\"}".to_owned(), "gcr={}".to_owned()], &["mine"]).is_ok());
    }

    #[test]
    fn columns_are_for_all_or_for_one() {
        let values = ["embedding=vec,column:age=years".to_owned(), "a:embedding=x,truth=y".to_owned()];
        let columns = |name: &str| {
            let columns = columns_for(&values, name).unwrap().unwrap();
            columns.iter().map(|(name, source)| format!("{name} {source}")).collect::<Vec<_>>()
        };
        assert_eq!(columns("a"), ["embedding x", "truth y"]);
        assert_eq!(columns("b"), ["embedding vec", "column:age years"]);
        assert!(columns_for(&values[1..], "b").unwrap().is_none());
        assert!(columns_for(&["column:age=years".to_owned()], "b").unwrap().is_some());
        assert!(columns_for(&["embedding".to_owned()], "b").is_err());
    }
}
