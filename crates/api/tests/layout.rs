//! What the boundary looks like in memory: written to `docs/abi-layout.txt`, compared with it, and compared with what it
//! was when it was first released, of which nothing may change but the ends of structures.
//!
//! After a change of `abi.rs`: `COMPFLOW_UPDATE=1 cargo test --release -p compflow-api --test layout`.

#![cfg(target_pointer_width = "64")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::mem::{align_of, offset_of, size_of};
use std::path::{Path, PathBuf};

use compflow_api::abi::*;
use compflow_api::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema};

/// The layout of version 1 as first released.
const FIRST: &str = include_str!("frozen/abi-layout-1.txt");

struct Field {
    name: &'static str,
    offset: usize,
    size: usize,
    /// As the compiler calls it, without paths.
    of: String,
}

struct Structure {
    name: &'static str,
    size: usize,
    align: usize,
    fields: Vec<Field>,
}

fn describe<S, F>(name: &'static str, offset: usize, _field: fn(&S) -> &F) -> Field {
    // `core::option::Option<…>` is `Option<…>`.
    let words = std::any::type_name::<F>().split_inclusive(|c: char| !c.is_alphanumeric() && c != '_');
    let of = words.filter(|word| !word.ends_with(':')).collect();
    Field { name, offset, size: size_of::<F>(), of }
}

/// Lists structures; a field that is left out does not compile.
macro_rules! structures {
    ($($name:ident { $($field:ident),* })*) => {
        vec![$({
            #[expect(dead_code, reason = "only its pattern matters")]
            fn all_fields(value: &$name) {
                let $name { $($field: _),* } = value;
            }
            Structure {
                name: stringify!($name),
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                fields: vec![$(describe(stringify!($field), offset_of!($name, $field), |s: &$name| &s.$field)),*],
            }
        }),*]
    };
}

fn all() -> Vec<Structure> {
    structures! {
        RawAbi { magic, abi_version, size }
        RawStr { ptr, len }
        RawError { size, code, parameter, text, help }
        RawSets { len, offsets, values }
        RawLibrary { size, reserved, name, version, components, component_count }
        RawComponent {
            size, kind, flags, name, summary, documentation, schema, create, destroy, methods, flags_of, columns
        }
        RawInstance { instance, component }
        RawHost { size, threads, seed, memory, cancel, version, ctx, error, log, progress, input, create, content }
        RawColumn { name, source }
        RawLoadRequest { size, reserved, path, columns, column_count }
        RawDescription { size, reserved, rows, dim, columns }
        RawLoaderMethods { size, reserved, load, describe }
        RawComposerMethods { size, reserved, dim, compose, vjp, compose_sets, compose_sets_vjp }
        RawTask {
            size, degree, rows, dim, embeddings, normalize, distance, composer, truth, preferences, weights, columns,
            ctx, pass, seeds, reduce
        }
        RawPartial { size, reserved, sums, sums_len, largest, largest_len, rows, rows_len }
        RawTable { array, schema }
        RawClustering {
            size, converged, iterations, objective, assignments, clusters, trace, scalars, resolved, singletons,
            densities, factors
        }
        RawShape { size, degree, rows, dim }
        RawBatch { size, reserved, first, rows, dim, values, weights, seeds }
        RawClustererMethods { size, reserved, memory, cluster, streams, partial, partial_of }
        RawMetric { size, unit, name, least, most, larger_is_better, reserved }
        RawEvaluation {
            size, degree, rows, dim, predicted, truth, embeddings, normalize, distance, clusters, centroids, columns,
            ctx, pass
        }
        RawEvaluatorMethods { size, reserved, metrics, evaluate }
    }
}

/// Name, value and size of constants.
macro_rules! constants {
    ($($name:ident)*) => { vec![$((stringify!($name), i128::from($name), size_of_val(&$name))),*] };
}

fn all_constants() -> Vec<(&'static str, i128, usize)> {
    constants! {
        ABI_VERSION MIN_LIBRARY_SIZE MIN_COMPONENT_SIZE MAX_COMPONENTS STATUS_OK STATUS_ERROR STATUS_CANCELLED
        ERROR_INTERNAL ERROR_PARAMETER ERROR_DATA ERROR_BUDGET ERROR_COLUMN ERROR_CANCELLED KIND_LOADER KIND_COMPOSER KIND_CLUSTERER
        KIND_EVALUATOR FLAGS_TO_UNDERSTAND NEEDS_COMPOSER NEEDS_TRUTH NEEDS_GRADIENTS NEEDS_PATH NEEDS_EMBEDDINGS
        ASSIGNS_NONE HAS_GRADIENTS IS_ASSOCIATIVE COMPOSES_SETS USES_WEIGHTS USES_SEEDS HAS_PARTIAL NORMALIZE_NONE NORMALIZE_L2
        DISTANCE_SQEUCLIDEAN DISTANCE_EUCLIDEAN LOG_DEBUG LOG_INFO LOG_WARN UNIT_NUMBER UNIT_SHARE UNIT_COUNT
        UNIT_DISTANCE ROWS_UNKNOWN BATCH_ROWS
    }
}

/// Those of Arrow's specification, which are nobody's to change.
fn arrow() -> Vec<Structure> {
    structures! {
        ArrowSchema { format, name, metadata, flags, n_children, children, dictionary, release, private_data }
        ArrowArray {
            length, null_count, offset, n_buffers, n_children, buffers, children, dictionary, release, private_data
        }
        ArrowArrayStream { get_schema, get_next, get_last_error, release, private_data }
    }
}

fn source() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/abi.rs")).unwrap()
}

/// A line per symbol, constant, structure and field.
fn layout() -> String {
    let mut text = format!("symbol {ABI_SYMBOL}: RawAbi\nsymbol {ENTRY_SYMBOL}: EntryFn\n");
    for line in source().lines().filter(|line| line.starts_with("pub const ")) {
        writeln!(text, "{}", line.trim_start_matches("pub ").trim_end_matches(';')).unwrap();
    }
    for structure in all() {
        let Structure { name, size, align, fields } = structure;
        writeln!(text, "struct {name}, {size} bytes, aligned to {align}").unwrap();
        for Field { name: field, offset, size, of } in fields {
            writeln!(text, "    {name}.{field} at {offset}, {size} bytes: {of}").unwrap();
        }
    }
    text
}

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/abi-layout.txt")
}

#[test]
fn the_layout_in_the_repository_is_that_of_the_abi() {
    let made = layout();
    if std::env::var_os("COMPFLOW_UPDATE").is_some() {
        std::fs::write(kept(), &made).unwrap();
    }
    let kept = std::fs::read_to_string(kept()).unwrap_or_default();
    let first = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(kept == made, "docs/abi-layout.txt is out of date, first at {first:?}; see the head of this test");
}

#[test]
fn every_structure_and_every_constant_is_listed() {
    let listed: BTreeSet<String> = all().iter().map(|structure| structure.name.to_owned()).collect();
    let source = source();
    let written = source.lines().filter_map(|line| line.strip_prefix("pub struct ")?.split(' ').next());
    assert_eq!(listed, written.map(str::to_owned).collect());
    let listed: BTreeSet<&str> = all_constants().into_iter().map(|(name, ..)| name).collect();
    let written = source.lines().filter_map(|line| line.strip_prefix("pub const ")?.split_once(": "));
    let numbers = written.filter(|(_, rest)| ["u32", "i32", "u64"].iter().any(|number| rest.starts_with(number)));
    assert_eq!(listed, numbers.map(|(name, _)| name).collect());
}

/// What may change: a structure that begins with its size may become longer, and there may be more of everything.
#[test]
fn everything_that_was_released_is_where_it_was() {
    let now = layout();
    let now: BTreeSet<&str> = now.lines().collect();
    for line in FIRST.lines() {
        if let Some(structure) = line.strip_prefix("struct ").filter(|_| !now.contains(line)) {
            let name = structure.split(',').next().unwrap();
            let grown = all().into_iter().find(|structure| structure.name == name).unwrap();
            let first: usize = structure.split([',', ' ']).nth(2).unwrap().parse().unwrap();
            assert_eq!(grown.fields[0].name, "size", "{name} has no `size` and cannot grow");
            assert!(grown.size > first, "{name} has become shorter");
            for Field { name: field, offset, .. } in &grown.fields {
                let released = FIRST.contains(&format!("    {name}.{field} at "));
                assert!(released || *offset >= first, "{name}.{field} lies where old makers left padding");
            }
            continue;
        }
        assert!(now.contains(line), "released and gone: {line}");
    }
}

/// The same numbers from the header, so that C and Rust mean the same memory.
#[test]
fn the_header_describes_the_same_memory() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let c_name = |name: &str| name.replace("Raw", "Compflow");
    let mut program = "#include <stddef.h>\n#include \"compflow.h\"\n".to_owned();
    for structure in all().into_iter().chain(arrow()) {
        let name = c_name(structure.name);
        writeln!(program, "_Static_assert(sizeof({name}) == {}, \"{name}\");", structure.size).unwrap();
        for Field { name: field, offset, .. } in structure.fields {
            writeln!(program, "_Static_assert(offsetof({name}, {field}) == {offset}, \"{name}.{field}\");")
                .unwrap();
        }
    }
    for (name, value, size) in all_constants() {
        writeln!(program, "_Static_assert(COMPFLOW_{name} == UINT64_C({value}), \"{name}\");").unwrap();
        writeln!(program, "_Static_assert(sizeof(COMPFLOW_{name}) == {size}, \"{name}\");").unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layout.c");
    std::fs::write(&file, program).unwrap();
    // Rust links with the C compiler, so there is one.
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = std::process::Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
        .args([&include, &file])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
