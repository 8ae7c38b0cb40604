//! `compflow verify`: whether results are what was written.

use std::path::PathBuf;

use compflow_api::plural;
use compflow_engine::results::{Verified, verify};
use serde_json::json;

use super::{print, print_json};
use crate::failure::Failure;
use crate::terminal::clean::one_line;
use crate::terminal::{interrupt, to_stderr};

/// Runs the command: 1 if anything is damaged.
///
/// # Errors
/// If a folder holds no results, or cannot be read.
pub(crate) fn run(folders: &[PathBuf], json: bool) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let (mut code, mut all) = (0, Vec::new());
    for folder in folders {
        let Verified { tables, cells, foreign, parts, inputs, damaged } = verify(folder, &cancel)?;
        code = code.max(i32::from(!damaged.is_empty()));
        if json {
            let damaged: Vec<_> =
                damaged.iter().map(|(path, text)| json!({ "file": path, "problem": text })).collect();
            all.push(json!({
                "folder": folder, "tables": tables, "cells": cells, "other_versions": foreign, "parts": parts, "inputs": inputs,
                "damaged": damaged,
            }));
            continue;
        }
        damaged.iter().for_each(|(_, text)| to_stderr(&format!("error: {text}")));
        let verdict = match damaged.len() {
            0 => "all as they were written".to_owned(),
            1 => "1 file is damaged".to_owned(),
            several => format!("{several} files are damaged"),
        };
        let files = |count: usize, of: &str| match count {
            0 => String::new(),
            _ => format!(", {} of {of}", plural(count, "file")),
        };
        let (parts, inputs) = (files(parts, "parts"), files(inputs, "examples"));
        let others = match foreign {
            0 => "",
            1 => "; 1 more is of another version, which this one does not use",
            _ => "; more are of other versions, which this one does not use",
        };
        let line = format!(
            "{}: {} and {}{parts}{inputs}: {verdict}{others}\n",
            one_line(&folder.to_string_lossy()),
            plural(tables, "table"),
            plural(cells, "kept file")
        );
        code = code.max(print(&line)?);
    }
    if json {
        code = code.max(print_json(&format!("{}\n", serde_json::Value::from(all)))?);
    }
    Ok(code)
}
