//! The pages of texts of a Parquet column, looked at before a decoder sees them: it makes room for as many lengths as a page says
//! that it has.

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;

use super::check_size;
use super::walk::Walk;

/// Bytes that decoders need for a text: two lengths.
const BYTES_A_TEXT: u64 = 8;

/// Hands on pages that can hold what they claim.
pub(super) struct Pages<P> {
    pages: P,
    column: ColumnDescPtr,
    /// Bytes that what is decoded may take.
    memory: u64,
}

impl<P: PageReader> Pages<P> {
    pub(super) fn new(pages: P, column: ColumnDescPtr, memory: u64) -> Self {
        Self { pages, column, memory }
    }

    fn check(&self, page: &Page) -> Result<(), String> {
        match page {
            Page::DictionaryPage { .. } => Ok(()),
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
                let mut walk = Walk::new(buf, "a page");
                for (level, by) in [
                    (self.column.max_rep_level(), rep_level_encoding),
                    (self.column.max_def_level(), def_level_encoding),
                ] {
                    if self.has_lengths(*encoding) && level > 0 {
                        skip_levels(&mut walk, level, *by, u64::from(*num_values))?;
                    }
                }
                self.check_values(&mut walk, *encoding, u64::from(*num_values))
            }
            Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let mut walk = Walk::new(buf, "a page");
                walk.take(u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len))?;
                self.check_values(&mut walk, *encoding, u64::from(*num_values))
            }
        }
    }

    fn has_lengths(&self, encoding: Encoding) -> bool {
        matches!(self.column.physical_type(), Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY)
            && matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY)
    }

    /// Of a page whose levels have been gone through.
    fn check_values(&self, walk: &mut Walk<'_>, encoding: Encoding, values: u64) -> Result<(), String> {
        if !self.has_lengths(encoding) {
            return Ok(());
        }
        // Of what a text has in common with the one before, and of what is its own.
        let lists = if encoding == Encoding::DELTA_BYTE_ARRAY { 2 } else { 1 };
        for list in 1..=lists {
            let from = walk.left();
            let lengths = Lengths::read(walk)?;
            if lengths.count > values {
                return Err(format!("a page of {values} texts claims {} lengths", lengths.count));
            }
            check_size("a page of texts", lengths.count.saturating_mul(BYTES_A_TEXT), from as u64, self.memory)?;
            if list < lists {
                lengths.skip(walk)?;
            }
        }
        Ok(())
    }
}

impl<P: PageReader> Iterator for Pages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for Pages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)
                .map_err(|text| ParquetError::General(format!("column `{}`: {text}", self.column.path())))?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// Levels of the first version of pages: those in runs say how long they are.
fn skip_levels(walk: &mut Walk<'_>, most: i16, by: Encoding, values: u64) -> Result<(), String> {
    let bytes = if by == Encoding::RLE {
        let mut length = [0; 4];
        length.copy_from_slice(walk.take(4)?);
        u64::from(u32::from_le_bytes(length))
    } else {
        (values * u64::from(16 - most.leading_zeros())).div_ceil(8)
    };
    walk.take(bytes).map(|_| ())
}

/// Numbers in the encoding DELTA_BINARY_PACKED: the first of them, and blocks of differences.
struct Lengths {
    count: u64,
    parts_of_a_block: u64,
    values_of_a_part: u64,
}

impl Lengths {
    fn read(walk: &mut Walk<'_>) -> Result<Self, String> {
        let (values_of_a_block, parts_of_a_block, count) = (walk.varint()?, walk.varint()?, walk.varint()?);
        walk.zigzag()?;
        let values_of_a_part = values_of_a_block.checked_div(parts_of_a_block).unwrap_or(0);
        match values_of_a_part {
            0 => Err("the lengths of a page are in blocks of nothing".to_owned()),
            _ => Ok(Self { count, parts_of_a_block, values_of_a_part }),
        }
    }

    /// Every block takes a byte at least.
    fn skip(&self, walk: &mut Walk<'_>) -> Result<(), String> {
        let mut left = self.count.saturating_sub(1);
        while left > 0 {
            walk.zigzag()?;
            for bits in walk.take(self.parts_of_a_block)? {
                if left > 0 {
                    walk.take(self.values_of_a_part.saturating_mul(u64::from(*bits)) / 8)?;
                }
                left = left.saturating_sub(self.values_of_a_part);
            }
        }
        Ok(())
    }
}
