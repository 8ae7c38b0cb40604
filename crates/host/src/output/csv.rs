//! CSV, as RFC 4180 has it, and so that a spreadsheet shows it and does not run it.

use super::{Records, Value};
use crate::terminal::clean::clean;

/// A line for every record, after a line of names.
pub(crate) fn render(records: &Records) -> String {
    let names: Vec<String> = records.columns.iter().map(|name| field(name)).collect();
    let mut text = names.join(",") + "\n";
    for row in &records.rows {
        let fields: Vec<String> = row.iter().map(value).collect();
        text += &(fields.join(",") + "\n");
    }
    text
}

fn value(value: &Value) -> String {
    match value {
        Value::Text(text) => field(text),
        Value::Count(count) => count.to_string(),
        Value::Number(number) => number.map_or_else(String::new, |number| number.to_string()),
        Value::Flag(flag) => flag.to_string(),
        Value::Json(value) => field(&value.to_string()),
    }
}

/// A field, quoted if it has to be, also where lists are separated by semicolons. Names come from files and libraries of
/// other people, and spreadsheets take what begins like a formula for one, unless there is an apostrophe before it.
fn field(text: &str) -> String {
    let formula = text.starts_with(FORMULA) && text.parse::<f64>().is_err();
    let text = clean(text);
    let text = if formula { format!("'{text}") } else { text.into_owned() };
    if text.contains([',', ';', '\t', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// What formulas begin with, in the widths of East Asian keyboards, too.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_text_and_numbers_stay_numbers() {
        let texts =
            ["=1+1", "+cmd", "-cmd", "@SUM(A1)", "\tx", "-1.5", "+2e3", "a=b", "k-means", "=a,\"b\"", "a;=b"];
        let fields = ["'=1+1", "'+cmd", "'-cmd", "'@SUM(A1)", "\"'\tx\"", "-1.5", "+2e3", "a=b", "k-means"];
        assert_eq!(texts.map(field)[..9], fields);
        assert_eq!(texts.map(field)[9..], ["\"'=a,\"\"b\"\"\"", "\"a;=b\""]);
        assert_eq!(value(&Value::from(-0.5)), "-0.5");
    }

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        assert_eq!(field("\u{1b}[31m"), "␛[31m");
        assert_eq!(field("\r=1"), "'␍=1");
    }
}
