//! Tables for people.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::Grid;
use crate::terminal::stdout;

/// Lines above, below and under the header, none between rows.
const LINES: TableStyle = NOTHING.top_border(LINE).header_separator(LINE).bottom_border(LINE);
const LINE: LineStyle = LineStyle::none().fill('─').junction('─');

/// Width of tables with words in them where there is no terminal to ask.
const WIDTH: u16 = 115;

/// The grid, its title above it.
pub(crate) fn render(grid: &Grid) -> String {
    let grid = grid.shown(str::to_owned);
    let mut table = Table::new();
    table.load_style(LINES).set_header(&grid.header).add_rows(&grid.rows);
    arrange(&mut table, grid.numbers);
    let title = if grid.title.is_empty() { String::new() } else { format!("{}\n", grid.title) };
    format!("{title}{}\n", table.trim_fmt())
}

/// Numbers stand to the right, nearer to one another where a line is short; words break where the line ends.
pub(super) fn arrange(table: &mut Table, numbers: bool) {
    if !stdout::is_terminal() {
        table.force_no_tty();
    }
    if numbers {
        table.column_iter_mut().skip(1).for_each(|column| {
            column.set_cell_alignment(CellAlignment::Right);
        });
        let width = table.width().map_or(usize::MAX, usize::from);
        if table.lines().any(|line| line.chars().count() > width) {
            table.column_iter_mut().for_each(|column| {
                column.set_padding((0, 1));
            });
        }
    } else {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if !table.is_tty() {
            table.set_width(WIDTH);
        }
    }
}
