//! Texts of plugins and data, made harmless.

use std::borrow::Cow;

/// A text without characters that a terminal obeys: names, log lines and errors come from libraries and files of other
/// people, and an escape sequence in one could move the cursor, rename the window or hide what was printed before. Line
/// breaks and tabs stay; what is replaced shows as the picture of itself where there is one.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || turns_direction(c);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match c {
        _ if !harmful(c) => c,
        '\u{7f}' => '\u{2421}',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        _ => char::REPLACEMENT_CHARACTER,
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Whether it makes what follows read in another order than it is.
fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_instead() {
        assert_eq!(clean("\u{1b}[31mred\u{7}\r\u{9b}2J"), "␛[31mred␇␍\u{fffd}2J");
        assert_eq!(clean("a\u{202e}b"), "a\u{fffd}b");
        assert!(matches!(clean("plain: ü, 中\n\ttext"), Cow::Borrowed(_)));
    }
}
