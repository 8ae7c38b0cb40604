//! Tests of the loader `npy`, on files made by hand.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use compflow_api::{Host, Sets};

use super::*;
use crate::testing::{concat, described_with, load, load_with, refusal, sets_of};

/// Writes an array in the npy format.
fn write(path: &Path, dtype: &str, fortran: bool, shape: &str, data: &[u8]) -> PathBuf {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).unwrap();
    path.to_owned()
}

fn request(path: &Path) -> LoadRequest<'_> {
    LoadRequest { path: Some(path), columns: &[("embedding", "any")] }
}

/// With true sets.
fn labelled(path: &Path) -> LoadRequest<'_> {
    LoadRequest { path: Some(path), columns: &[("embedding", "any"), ("truth", "any")] }
}

/// The numbers of all rows as f64.
fn numbers(batches: &[RecordBatch]) -> Vec<f64> {
    let matrix = concat(batches)["embedding"].as_fixed_size_list().values().clone();
    arrow_cast::cast(&matrix, &DataType::Float64).unwrap().as_primitive::<Float64Type>().values().to_vec()
}

/// Three rows of two, with labels in a file of this kind; the true sets that come out.
fn truth(dtype: &str, shape: &str, data: &[u8]) -> Result<ArrayRef> {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder.path().join("x.npy"), "<f4", false, "(3, 2)", &[0; 24]);
    let labels = write(&folder.path().join("x.labels.npy"), dtype, false, shape, data);
    let params = format!(r#"{{"labels": {:?}}}"#, labels.parent().unwrap().join("{stem}.labels.npy"));
    Ok(concat(&load::<Npy>(&params, &labelled(&path), 1)?)["truth"].clone())
}

#[test]
fn every_type_order_and_byte_order_gives_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let rows = [1.0, 2.0, 3.0, -0.5, 0.25, 1024.0];
    let columns = [1.0, -0.5, 2.0, 0.25, 3.0, 1024.0];
    for (fortran, values) in [(false, rows), (true, columns)] {
        let bytes = |encode: &dyn Fn(f64) -> Vec<u8>| values.iter().flat_map(|value| encode(*value)).collect();
        let cases: [(&str, DataType, Vec<u8>); 6] = [
            ("<f2", DataType::Float16, bytes(&|value| f16::from_f64(value).to_le_bytes().to_vec())),
            (">f2", DataType::Float16, bytes(&|value| f16::from_f64(value).to_be_bytes().to_vec())),
            ("<f4", DataType::Float32, bytes(&|value| (value as f32).to_le_bytes().to_vec())),
            (">f4", DataType::Float32, bytes(&|value| (value as f32).to_be_bytes().to_vec())),
            ("<f8", DataType::Float64, bytes(&|value| value.to_le_bytes().to_vec())),
            (">f8", DataType::Float64, bytes(&|value| value.to_be_bytes().to_vec())),
        ];
        for (dtype, expected, data) in cases {
            write(&path, dtype, fortran, "(2, 3)", &data);
            let found = load::<Npy>("{}", &request(&path), 1).unwrap();
            assert_eq!(found[0].num_columns(), 1);
            assert_eq!(found[0]["embedding"].as_fixed_size_list().value_type(), expected);
            assert_eq!(numbers(&found), rows, "{dtype} {fortran}");
        }
    }
}

#[test]
fn large_arrays_come_in_several_batches() {
    let folder = tempfile::tempdir().unwrap();
    let rows = (1 << 16) + 3;
    let columns: Vec<f32> =
        (0..2).flat_map(|column| (0..rows).map(move |row| (2 * row + column) as f32)).collect();
    let data: Vec<u8> = columns.iter().flat_map(|value| value.to_le_bytes()).collect();
    let path = write(&folder.path().join("x.npy"), "<f4", true, &format!("({rows}, 2)"), &data);
    let found = load::<Npy>("{}", &request(&path), 1).unwrap();
    assert_eq!(found.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [1 << 16, 3]);
    assert!(numbers(&found).iter().copied().eq((0..2 * rows).map(f64::from)));
}

#[test]
fn integer_labels_keep_their_values() {
    let found = truth("|i1", "(3,)", &[5, 0, 0xff]).unwrap();
    assert_eq!(found.as_primitive::<Int64Type>().values(), &[5, 0, -1]);
    let found = truth(">u2", "(3,)", &[0, 1, 1, 0, 0xff, 0xff]).unwrap();
    assert_eq!(found.as_primitive::<UInt64Type>().values(), &[1, 256, 65535]);
    let bytes: Vec<u8> = [i64::MIN, 7, i64::MAX].iter().flat_map(|value| value.to_le_bytes()).collect();
    let found = truth("<i8", "(3,)", &bytes).unwrap();
    assert_eq!(found.as_primitive::<Int64Type>().values(), &[i64::MIN, 7, i64::MAX]);
}

#[test]
fn string_labels_lose_their_padding() {
    let big: Vec<u8> = ["fig", "ä", ""]
        .iter()
        .flat_map(|text| text.chars().chain(std::iter::repeat('\0')).take(3).collect::<Vec<_>>())
        .flat_map(|character| u32::from(character).to_be_bytes())
        .collect();
    let found = truth(">U3", "(3,)", &big).unwrap();
    assert_eq!(found.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["fig", "ä", ""]);
    let error = truth("<U1", "(3,)", &[b'a', 0, 0, 0, 0, 0xd8, 0, 0, 0, 0, 0, 0]).unwrap_err().to_string();
    assert!(error.ends_with("x.labels.npy: row 1 is not a valid string"), "{error}");
}

#[test]
fn an_indicator_matrix_becomes_sets_and_may_leave_one_empty() {
    let expected = Sets::from_iter([vec![0, 2], vec![], vec![1]]);
    let found = truth("|b1", "(3, 3)", &[1, 0, 1, 0, 0, 0, 0, 1, 0]).unwrap();
    assert_eq!(sets_of(&found), expected);
    let wide: Vec<u8> = [1, 0, 1, 0, 0, 0, 0, 1, 0].iter().flat_map(|value: &u32| value.to_le_bytes()).collect();
    assert_eq!(sets_of(&truth("<i4", "(3, 3)", &wide).unwrap()), expected);
    let error = truth("|u1", "(3, 1)", &[0, 1, 4]).unwrap_err().to_string();
    assert!(error.contains("column 0 of row 2 holds neither 0 nor 1"), "{error}");
}

#[test]
fn labels_come_in_the_batches_of_the_embeddings_and_are_held_to_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder.path().join("x.npy"), "<f4", false, "(100, 1)", &[0; 400]);
    let labels = folder.path().join("labels.npy");
    let params = format!(r#"{{"labels": {labels:?}}}"#);
    let with = |memory| load_with::<Npy>(&params, &labelled(&path), &Services { memory, ..Services::none() });
    // The example with the number n is in the sets n and 1000, in either order of the file.
    for fortran in [false, true] {
        let mut flags = vec![0_u8; 100 * 1024 * 8];
        for (row, column) in (0..100).flat_map(|row| [(row, row), (row, 1000)]) {
            flags[8 * if fortran { column * 100 + row } else { row * 1024 + column }] = 1;
        }
        write(&labels, "<i8", fortran, "(100, 1024)", &flags);
        let found = with(1 << 20).unwrap();
        assert_eq!(found.len(), 100_usize.div_ceil((1 << 14) / (1024 * 8)));
        assert_eq!(sets_of(&concat(&found)["truth"]), (0..100).map(|row| vec![row, 1000]).collect::<Sets>());
        flags[8 * if fortran { 70 } else { 70 * 1024 }] = 2;
        write(&labels, "<i8", fortran, "(100, 1024)", &flags);
        let error = with(1 << 20).unwrap_err().to_string();
        assert!(error.contains("labels.npy: column 0 of row 70 holds neither 0 nor 1"), "{error}");
    }
    // Nearly a tebibyte, of which nothing is there.
    for (dtype, shape) in [("|i1", "(100, 8589934592)"), ("<U2147483648", "(100,)")] {
        write(&labels, dtype, false, shape, &[]);
        std::fs::File::options().write(true).open(&labels).unwrap().set_len(1 << 40).unwrap();
        let error = with(1 << 30).unwrap_err().to_string();
        let refused = format!("a row of {} takes more than 134217728 bytes, ", labels.display());
        assert!(error.starts_with(&refused) && error.ends_with("--memory"), "{error}");
    }
}

#[test]
fn labels_of_another_number_or_kind_are_refused() {
    let error = truth("|u1", "(4,)", &[0, 1, 4, 4]).unwrap_err().to_string();
    assert!(error.contains("x.labels.npy has 4 rows, but ") && error.ends_with("x.npy has 3"), "{error}");
    let error = truth("<f2", "(3,)", &[0; 6]).unwrap_err().to_string();
    assert!(error.contains("holds 3 values of type <f2, expected one integer or string"), "{error}");
}

#[test]
fn labels_are_looked_for_where_the_host_says() {
    struct Elsewhere(PathBuf);
    impl Host for Elsewhere {
        fn input(&self, path: &str) -> Result<PathBuf> {
            Ok(self.0.join(path))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder.path().join("x.npy"), "<f4", false, "(2, 1)", &[0; 8]);
    write(&folder.path().join("y-x.npy"), "|u1", false, "(2,)", &[3, 4]);
    let services = Services { host: &Elsewhere(folder.path().to_owned()), ..Services::none() };
    let params = r#"{"labels": "y-{stem}.npy"}"#;
    let found = load_with::<Npy>(params, &labelled(&path), &services).unwrap();
    assert_eq!(concat(&found)["truth"].as_primitive::<UInt64Type>().values(), &[3, 4]);
    // Only what was asked for, in the order asked for.
    assert_eq!(concat(&load_with::<Npy>(params, &request(&path), &services).unwrap()).num_columns(), 1);
    let swapped = LoadRequest { path: Some(&path), columns: &[("truth", "any"), ("embedding", "any")] };
    assert_eq!(concat(&load_with::<Npy>(params, &swapped, &services).unwrap()).schema().field(0).name(), "truth");

    let found = described_with::<Npy>(params, &labelled(&path), &services).unwrap();
    assert_eq!((found.rows, found.dim), (Some(2), Some(1)));
    assert_eq!(found.names().unwrap(), ["embedding", "truth"]);
    write(&folder.path().join("y-x.npy"), "|u1", false, "(3,)", &[3, 4, 5]);
    let text = described_with::<Npy>(params, &labelled(&path), &services).unwrap_err().to_string();
    assert!(text.contains("has 3 rows, but "), "{text}");
}

#[test]
fn columns_that_an_array_cannot_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder.path().join("x.npy"), "<f4", false, "(2, 1)", &[0; 8]);
    let columns = [("embedding", "e"), ("trial", "t"), ("column:height", "h")];
    let text = refusal::<Npy>("{}", &LoadRequest { path: Some(&path), columns: &columns });
    assert_eq!(
        text,
        format!(
            "`trial` names the column `t`, which is not in {0}; there are no columns\n\
             `column:height` names the column `h`, which is not in {0}; there are no columns",
            path.display()
        )
    );
    let text = refusal::<Npy>("{}", &labelled(&path));
    assert_eq!(text, "`labels` is missing: npy files have no column of true sets");
}

#[test]
fn files_that_are_no_matrix_of_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let refused = || refusal::<Npy>("{}", &request(&path)).replace(&path.display().to_string(), "x");
    let with = |dtype: &str, shape: &str| {
        write(&path, dtype, false, shape, &[0; 64]);
        refused()
    };
    std::fs::write(&path, "no array at all").unwrap();
    assert_eq!(refused(), "x is not an npy file: magic not found for NPY file");
    let floats = "expected one row of numbers, of at most 64 bits, per example";
    assert_eq!(with("<c8", "(4, 2)"), format!("x holds 4 × 2 values of type <c8, {floats}"));
    assert_eq!(with("<f4", "(16,)"), format!("x holds 16 values of type <f4, {floats}"));
    assert_eq!(with("<f4", "(4, 0)"), format!("x holds 4 × 0 values of type <f4, {floats}"));
    assert_eq!(with("<f4", "(2, 2, 4)"), "x has 3 axes, expected one or two");
    assert_eq!(with("|O", "(2, 2)"), "x holds values of type |O, which have no fixed size");
    assert_eq!(with("<f4", "(5, 4)"), "x is cut off: it has 134 bytes, too few for 5 rows of 4 values of 4 bytes");
    let huge = with("<f4", "(18446744073709551615, 18446744073709551615)");
    assert!(huge.starts_with("x is cut off: "), "{huge}");
}
