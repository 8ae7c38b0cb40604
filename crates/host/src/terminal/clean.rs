//! Texts of plugins and data, made harmless.

use std::borrow::Cow;

/// A text without characters that a terminal obeys: names, log lines and errors come from libraries and files of other
/// people, and an escape sequence in one could move the cursor, rename the window or hide what was printed before. Line
/// breaks and tabs stay; what is replaced shows as the picture of itself where there is one.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if harmful(c) { picture(c) } else { c }).collect())
}

/// Likewise, on one line: a name with a line break in it would take two rows of a table.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if harmful(c) || c.is_control() { picture(c) } else { c }).collect()
}

/// Likewise, as a message: its further lines are indented, so that none of them passes for a message of its own.
pub(crate) fn message(text: &str) -> Cow<'_, str> {
    let text = clean(text);
    if !text.contains('\n') {
        return text;
    }
    let mut lines = text.split('\n');
    let mut message = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let is_plain = !line.is_empty() && !line.starts_with([' ', '\t']);
        message += if is_plain { "\n  " } else { "\n" };
        message += line;
    }
    Cow::Owned(message)
}

/// JSON without such characters: inside its strings, where alone they can be, they have numbers.
pub(crate) fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(harmful) {
        return Cow::Borrowed(json);
    }
    let shown = |c: char| if harmful(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(json.chars().map(shown).collect())
}

fn harmful(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || misleads(c) || is_invisible(c)
}

/// Whether two names can differ by it and look the same. Joiners (U+200C, U+200D) stay: words and pictures are written with them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}' | '\u{2060}'
            ..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'
            ..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// Whether it makes what follows read in another order than it is, or on another line.
fn misleads(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn picture(c: char) -> char {
    match c {
        '\u{7f}' => '\u{2421}',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        _ => char::REPLACEMENT_CHARACTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_instead() {
        assert_eq!(clean("\u{1b}[31mred\u{7}\r\u{9b}2J"), "␛[31mred␇␍\u{fffd}2J");
        assert_eq!(clean("a\u{202e}b"), "a\u{fffd}b");
        assert_eq!(clean("a\u{200b}b\u{feff}c\u{ad}d\u{2060}"), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}");
        assert!(matches!(clean("می\u{200c}خواهم 👩\u{200d}🔬"), Cow::Borrowed(_)));
        assert!(matches!(clean("plain: ü, 中\n\ttext"), Cow::Borrowed(_)));
        assert_eq!(message("x\nerror: forged\n  = help: y\n"), "x\n  error: forged\n  = help: y\n");
        assert!(matches!(message("plain"), Cow::Borrowed(_)));
        assert_eq!(one_line("a\nb\tc\u{2028}d"), "a␊b␉c\u{fffd}d");
    }

    #[test]
    fn json_keeps_its_values() {
        let value = serde_json::json!({ "a\u{202e}\u{7f}": "\u{9b}\u{1b}\n" });
        let shown = escaped(&value.to_string()).into_owned();
        assert_eq!(shown, r#"{"a\u202e\u007f":"\u009b\u001b\n"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
