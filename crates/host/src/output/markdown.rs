//! Markdown.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use super::Grid;
use super::table::arrange;

/// The grid, its title above it in bold.
pub(super) fn render(grid: &Grid) -> String {
    let grid = grid.shown(escape);
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(&grid.header).add_rows(&grid.rows);
    // A row is one line, however long.
    if grid.numbers {
        arrange(&mut table, true);
    }
    let title = if grid.title.is_empty() { String::new() } else { format!("**{}**\n\n", grid.title) };
    format!("{title}{}\n", table.trim_fmt())
}

/// A text as Markdown shows it: nothing in it is markup, and it stays on its line.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '<' => escaped += "&lt;",
            '&' => escaped += "&amp;",
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' | '$' => escaped.extend(['\\', character]),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escape("a|b*c\n<d>"), "a\\|b\\*c &lt;d>");
        assert_eq!(escape("[x](y) `z` ~~u~~ $v$"), "\\[x\\](y) \\`z\\` \\~\\~u\\~\\~ \\$v\\$");
        let header = ["<b>", "k"].map(str::to_owned).to_vec();
        let rows = vec![["a|b\nc", "1 *"].map(str::to_owned).to_vec()];
        let text = render(&Grid { title: "**x".to_owned(), header, rows, numbers: true });
        assert!(text.starts_with("**\\*\\*x**\n\n| &lt;b>") && text.contains("| a\\|b␊c | 1 \\* |"), "{text}");
    }
}
