//! Markdown.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use super::Grid;
use super::table::arrange;

/// The grid, its title above it in bold.
pub(super) fn render(grid: &Grid) -> String {
    let escape = |row: &Vec<String>| row.iter().map(|text| text.replace('|', "\\|")).collect::<Vec<_>>();
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(escape(&grid.header)).add_rows(grid.rows.iter().map(escape));
    // A row is one line, however long.
    if grid.numbers {
        arrange(&mut table, true);
    }
    let title = if grid.title.is_empty() { String::new() } else { format!("**{}**\n\n", grid.title) };
    format!("{title}{}\n", table.trim_fmt())
}
