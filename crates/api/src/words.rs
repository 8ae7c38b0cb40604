//! Words for messages.

/// A number of things: `1 row`, `2 rows`.
pub fn plural(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([0, 1, 2].map(|count| plural(count, "row")), ["0 rows", "1 row", "2 rows"]);
    }
}
