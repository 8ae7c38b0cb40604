//! What is inside the pages of a Parquet column, as far as it says how much memory it decodes to: how long texts are, and how many
//! values are in one row.

use std::fs::File;
use std::sync::Arc;

use arrow_schema::ArrowError;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::check_memory;
use super::walk::Walk;

/// Bytes that decoders need for a text: two lengths.
const BYTES_A_TEXT: u64 = 8;

/// The pages of a column, one after the other.
///
/// # Errors
/// If they cannot be read.
pub(super) fn pages(
    file: &File,
    chunk: &ColumnChunkMetaData,
    rows: usize,
) -> Result<SerializedPageReader<File>, ArrowError> {
    Ok(SerializedPageReader::new(Arc::new(file.try_clone()?), chunk, rows, None)?)
}

/// The texts of a column.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// Bytes of the longest.
    pub(super) longest: u64,
    /// Bytes of all, where a text that many rows share counts as often.
    pub(super) total: u64,
    /// Of those that many rows may share.
    shared: u64,
}

impl Texts {
    /// Takes a page into account.
    ///
    /// # Errors
    /// If it claims what it cannot hold, or more than the memory.
    pub(super) fn add(&mut self, page: &Page, chunk: &ColumnChunkMetaData, memory: u64) -> Result<(), String> {
        let is_dictionary = matches!(page, Page::DictionaryPage { .. });
        let Parts { rest: mut walk, count: values, .. } = Parts::of(page, chunk)?;
        let mut longest = 0;
        let mut total: u64 = 0;
        let mut each = |length: u64| {
            longest = longest.max(length);
            total = total.saturating_add(length);
        };
        match page.encoding() {
            _ if is_dictionary => plain(&mut walk, &mut each),
            Encoding::PLAIN => plain(&mut walk, &mut each),
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                Lengths::read(&mut walk, values, memory)?.decode(&mut walk, each)?;
            }
            Encoding::DELTA_BYTE_ARRAY => {
                let mut prefixes = Vec::new();
                Lengths::read(&mut walk, values, memory)?.decode(&mut walk, |length| prefixes.push(length))?;
                let mut prefixes = prefixes.into_iter();
                Lengths::read(&mut walk, values, memory)?
                    .decode(&mut walk, |length| each(length.saturating_add(prefixes.next().unwrap_or(0))))?;
            }
            _ => total = self.shared.saturating_mul(values),
        }
        if is_dictionary {
            self.shared = longest;
        } else {
            self.total = self.total.saturating_add(total);
        }
        self.longest = self.longest.max(longest);
        Ok(())
    }
}

/// Texts behind their lengths. Where they break off is for the decoder to say.
fn plain(walk: &mut Walk<'_>, each: &mut impl FnMut(u64)) {
    while let Ok(length) = walk.take(4).map(length_of)
        && walk.take(length).is_ok()
    {
        each(length);
    }
}

fn length_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |length, byte| length << 8 | u64::from(*byte))
}

/// How many values the rows of a column of lists have.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Values of the longest row.
    pub(super) longest: u64,
    /// Of the last one so far, which may go on in the next page.
    last: u64,
}

impl Records {
    /// Takes a page into account.
    ///
    /// # Errors
    /// If its levels break off.
    pub(super) fn add(&mut self, page: &Page, chunk: &ColumnChunkMetaData) -> Result<(), String> {
        if matches!(page, Page::DictionaryPage { .. }) {
            return Ok(());
        }
        let parts = Parts::of(page, chunk)?;
        let bits = bits(chunk.column_descr().max_rep_level());
        let mut left = parts.count;
        let Some(levels) = parts.repetition else {
            // An encoding that nobody writes any more: as if all were one row.
            self.values(false, left);
            return Ok(());
        };
        let mut walk = Walk::new(levels, "a page");
        while left > 0 && walk.left() > 0 {
            let header = walk.varint()?;
            let count = header >> 1;
            if header & 1 == 0 {
                let count = count.min(left);
                let level = length_of(walk.take(u64::from(bits.div_ceil(8)))?);
                self.values(level == 0, count);
                left -= count;
            } else {
                let bytes = count.saturating_mul(u64::from(bits)).min(walk.left() as u64);
                let packed = Packed::new(walk.take(bytes)?, bits);
                for level in packed.take(usize::try_from(left.min(count.saturating_mul(8))).unwrap_or(usize::MAX))
                {
                    self.values(level == 0, 1);
                    left -= 1;
                }
            }
        }
        Ok(())
    }

    /// So many values, each the first of a row, or of the row before.
    fn values(&mut self, are_first: bool, count: u64) {
        self.last = if are_first && count > 0 { 1 } else { self.last.saturating_add(count) };
        self.longest = self.longest.max(self.last);
    }
}

/// Bits that levels take.
fn bits(most: i16) -> u32 {
    16 - most.leading_zeros()
}

/// What a page consists of.
struct Parts<'p> {
    rest: Walk<'p>,
    /// Values, and places where there is none.
    count: u64,
    /// Levels that say where rows begin, unless they are in an encoding without runs.
    repetition: Option<&'p [u8]>,
}

impl<'p> Parts<'p> {
    fn of(page: &'p Page, chunk: &ColumnChunkMetaData) -> Result<Self, String> {
        let mut rest = Walk::new(page.buffer(), "a page");
        let (count, mut repetition) = (u64::from(page.num_values()), Some(&[][..]));
        match page {
            Page::DictionaryPage { .. } => {}
            Page::DataPage { def_level_encoding, rep_level_encoding, .. } => {
                let column = chunk.column_descr();
                repetition = levels(&mut rest, column.max_rep_level(), *rep_level_encoding, count)?;
                levels(&mut rest, column.max_def_level(), *def_level_encoding, count)?;
            }
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                repetition = Some(rest.take(u64::from(*rep_levels_byte_len))?);
                rest.take(u64::from(*def_levels_byte_len))?;
            }
        }
        Ok(Self { rest, count, repetition })
    }
}

/// Levels of the first version of pages, if there are any: those in runs say how long they are.
fn levels<'p>(walk: &mut Walk<'p>, most: i16, by: Encoding, count: u64) -> Result<Option<&'p [u8]>, String> {
    if most == 0 {
        return Ok(Some(&[]));
    }
    if by == Encoding::RLE {
        let length = length_of(walk.take(4)?);
        return walk.take(length).map(Some);
    }
    walk.take((count * u64::from(bits(most))).div_ceil(8)).map(|_| None)
}

/// Numbers of so many bits, one behind the other.
struct Packed<'p> {
    bytes: &'p [u8],
    bits: u32,
    at: u64,
}

impl<'p> Packed<'p> {
    fn new(bytes: &'p [u8], bits: u32) -> Self {
        Self { bytes, bits, at: 0 }
    }
}

impl Iterator for Packed<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        for bit in 0..self.bits {
            let at = self.at + u64::from(bit);
            let byte = *self.bytes.get(usize::try_from(at / 8).ok()?)?;
            number |= u64::from(byte >> (at % 8) & 1) << bit;
        }
        self.at += u64::from(self.bits);
        Some(number)
    }
}

/// Numbers in the encoding DELTA_BINARY_PACKED: the first of them, and blocks of differences.
struct Lengths {
    count: u64,
    first: i32,
    parts_of_a_block: u64,
    values_of_a_part: u64,
}

impl Lengths {
    /// Of a page with so many texts, or places where there is none.
    fn read(walk: &mut Walk<'_>, texts: u64, memory: u64) -> Result<Self, String> {
        let (values_of_a_block, parts_of_a_block, count) = (walk.varint()?, walk.varint()?, walk.varint()?);
        let first = number(walk)?;
        if count > texts {
            return Err(format!("a page of {texts} texts claims {count} lengths"));
        }
        check_memory("a page of texts", count.saturating_mul(BYTES_A_TEXT), memory)?;
        match values_of_a_block.checked_div(parts_of_a_block).unwrap_or(0) {
            0 => Err("the lengths of a page are in blocks of nothing".to_owned()),
            values_of_a_part => Ok(Self { count, first, parts_of_a_block, values_of_a_part }),
        }
    }

    /// Hands on every length; one below 0 is none, and for the decoder to say. Every block takes a byte at least.
    fn decode(&self, walk: &mut Walk<'_>, mut each: impl FnMut(u64)) -> Result<(), String> {
        let mut length = self.first;
        let mut hand_on = |length: i32| each(u64::try_from(length).unwrap_or(0));
        if self.count > 0 {
            hand_on(length);
        }
        let mut left = self.count.saturating_sub(1);
        while left > 0 {
            let least = number(walk)?;
            for bits in walk.take(self.parts_of_a_block)?.iter().map(|bits| u32::from(*bits)) {
                let count = left.min(self.values_of_a_part);
                if count == 0 {
                    break;
                }
                if bits > i32::BITS {
                    return Err(format!("a length of a page has {bits} bits"));
                }
                let bytes = walk.take(self.values_of_a_part.saturating_mul(u64::from(bits)).div_ceil(8))?;
                let differences = Packed::new(bytes, bits).map(|difference| difference as i32);
                for difference in differences.take(usize::try_from(count).unwrap_or(usize::MAX)) {
                    length = length.wrapping_add(least).wrapping_add(difference);
                    hand_on(length);
                }
                left -= count;
            }
        }
        Ok(())
    }
}

/// Lengths are numbers of 32 bits, and so are their differences.
fn number(walk: &mut Walk<'_>) -> Result<i32, String> {
    let number = walk.zigzag()?;
    i32::try_from(number).map_err(|_| format!("a length of a page is {number}"))
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int32Builder, ListBuilder};
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use proptest::prelude::*;

    use super::*;

    /// Calls something with every page of a column that was written so.
    fn each_page(
        column: ArrayRef,
        properties: WriterPropertiesBuilder,
        mut call: impl FnMut(&Page, &ColumnChunkMetaData) -> Result<(), String>,
    ) {
        let batch = RecordBatch::try_from_iter_with_nullable([("column", column, true)]).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        // Many pages, of which some begin inside a row.
        let properties = properties.set_data_page_size_limit(256).set_write_batch_size(16).build();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let reader = SerializedFileReader::new(file.try_clone().unwrap()).unwrap();
        let chunk = reader.metadata().row_group(0).column(0);
        for page in pages(&file, chunk, batch.num_rows()).unwrap() {
            call(&page.unwrap(), chunk).unwrap();
        }
    }

    const VERSIONS: [WriterVersion; 2] = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn texts_are_as_long_as_they_are(texts in prop::collection::vec(prop::option::of("[ab]{0,40}"), 1..400)) {
            let longest = texts.iter().flatten().map(String::len).max().unwrap_or(0) as u64;
            let total = texts.iter().flatten().map(String::len).sum::<usize>() as u64;
            for encoding in [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
                for version in VERSIONS {
                    let properties = WriterProperties::builder().set_writer_version(version);
                    let properties = properties.set_dictionary_enabled(false).set_encoding(encoding);
                    let mut found = Texts::default();
                    each_page(Arc::new(StringArray::from(texts.clone())), properties, |page, chunk| {
                        found.add(page, chunk, 1 << 20)
                    });
                    prop_assert_eq!((found.longest, found.total), (longest, total), "{} {:?}", encoding, version);
                }
            }
            let mut found = Texts::default();
            each_page(Arc::new(StringArray::from(texts.clone())), WriterProperties::builder(), |page, chunk| {
                found.add(page, chunk, 1 << 20)
            });
            // Any of a dictionary may be the longest of it.
            prop_assert_eq!(found.longest, longest);
            prop_assert!(found.total >= total);
        }

        #[test]
        fn rows_have_as_many_values_as_they_have(
            rows in prop::collection::vec(prop::collection::vec(prop::option::of(0..9_usize), 0..60), 1..60)
        ) {
            // Lists of lists, of which some are null; each takes a place at least.
            let mut lists = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
            for row in &rows {
                for values in row {
                    (0..values.unwrap_or(0)).for_each(|value| lists.values().values().append_value(value as i32));
                    lists.values().append(values.is_some());
                }
                lists.append(true);
            }
            let places = |row: &Vec<Option<usize>>| row.iter().map(|values| values.unwrap_or(0).max(1)).sum::<usize>().max(1);
            let longest = rows.iter().map(places).max().unwrap_or(0) as u64;
            let lists: ArrayRef = Arc::new(lists.finish());
            for version in VERSIONS {
                let mut found = Records::default();
                let properties = WriterProperties::builder().set_writer_version(version);
                each_page(lists.clone(), properties, |page, chunk| found.add(page, chunk));
                prop_assert_eq!(found.longest, longest, "{:?}", version);
            }
        }
    }
}
