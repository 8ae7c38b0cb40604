//! What columns hold, in words for people.

use arrow_schema::DataType;

/// What a column of this type holds: `text`, `whole numbers`, `lists of numbers`. Names of Arrow's types say nothing to those
/// who never chose them.
pub fn in_words(kind: &DataType) -> String {
    match kind {
        DataType::Null => "nothing".to_owned(),
        DataType::Boolean => "true and false".to_owned(),
        kind if kind.is_integer() => "whole numbers".to_owned(),
        kind if kind.is_numeric() => "numbers".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Dictionary(_, values) => in_words(values),
        DataType::RunEndEncoded(_, values) => in_words(values.data_type()),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => format!("lists of {}", in_words(item.data_type())),
        kind if kind.is_temporal() => "dates or times".to_owned(),
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => "records".to_owned(),
        _ => "bytes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Field;

    use super::*;

    #[test]
    fn no_word_is_one_of_arrow() {
        let list = |kind| DataType::List(Arc::new(Field::new("item", kind, true)));
        assert_eq!(in_words(&list(list(DataType::Float16))), "lists of lists of numbers");
        assert_eq!(in_words(&list(DataType::UInt8)), "lists of whole numbers");
        assert_eq!(
            in_words(&DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8View))),
            "text"
        );
        assert_eq!(in_words(&DataType::Date32), "dates or times");
        assert_eq!(in_words(&DataType::Decimal128(5, 2)), "numbers");
        assert_eq!(in_words(&DataType::LargeBinary), "bytes");
    }
}
