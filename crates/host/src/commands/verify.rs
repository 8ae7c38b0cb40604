//! `compflow verify`: whether results are what was written.

use std::path::PathBuf;

use compflow_engine::results::{Verified, verify};
use serde_json::json;

use super::{print, print_json};
use crate::failure::Failure;
use crate::terminal::{interrupt, to_stderr};

/// Runs the command: 1 if anything is damaged.
///
/// # Errors
/// If a folder holds no results, or cannot be read.
pub(crate) fn run(folders: &[PathBuf], json: bool) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let (mut code, mut all) = (0, Vec::new());
    for folder in folders {
        let Verified { tables, cells, damaged } = verify(folder, &cancel)?;
        code = code.max(i32::from(!damaged.is_empty()));
        if json {
            let damaged: Vec<_> =
                damaged.iter().map(|(path, text)| json!({ "file": path, "problem": text })).collect();
            all.push(json!({ "folder": folder, "tables": tables, "cells": cells, "damaged": damaged }));
            continue;
        }
        damaged.iter().for_each(|(_, text)| to_stderr(&format!("error: {text}")));
        let verdict = match damaged.len() {
            0 => "all as they were written".to_owned(),
            1 => "1 file is damaged".to_owned(),
            several => format!("{several} files are damaged"),
        };
        code = code
            .max(print(&format!("{}: {tables} tables and {cells} kept files: {verdict}\n", folder.display()))?);
    }
    if json {
        code = code.max(print_json(&format!("{}\n", serde_json::Value::from(all)))?);
    }
    Ok(code)
}
