//! Tables, and what a loader says of its source.

use std::path::Path;

use compflow_api::*;

use crate::component::{Params, make};

component!(TestLoader, "l", Flags::NEEDS_PATH);

impl Loader for TestLoader {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        self.0.act()?;
        assert_eq!(request.path, Some(Path::new("/there/x")));
        assert_eq!(request.columns, [("embedding", "e"), ("id", "i")]);
        let table = |value: i64| -> Table {
            let ids = Column::Integers(vec![value]);
            let vectors = Column::Vectors { width: 2, values: vec![value as f32; 2] };
            vec![("embedding".to_owned(), vectors), ("id".to_owned(), ids)]
        };
        let mode = self.0.mode.clone();
        Stream::from_tables((0..3).map(move |at| match (mode.as_str(), at) {
            ("fail late", 2) => Err(Error::new("the third is missing")),
            ("panic late", 2) => panic!("the third is rotten"),
            ("other columns", 2) => Ok(vec![("id".to_owned(), Column::Texts(vec!["x".to_owned()]))]),
            _ => Ok(table(at)),
        }))
    }

    fn describe(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Option<Description>> {
        if self.0.mode == "fine" {
            return Ok(None);
        }
        if self.0.mode == "described" {
            let columns = vec![("e".to_owned(), Column::Vectors { width: 2, values: Vec::new() })];
            return Description::of(&columns, Some(3), Some(2)).map(Some);
        }
        Err(Error::column("id", request.column("id").unwrap_or_default(), "/there/x", ["number", "vector"]))
    }
}

#[test]
fn tables_stream_until_the_end_or_an_error() {
    let request = LoadRequest { path: Some(Path::new("/there/x")), columns: &[("embedding", "e"), ("id", "i")] };
    let loader = |mode: &str| make::<ForeignLoader>(&Registration::loader::<TestLoader>(), mode).unwrap();
    let load = |mode: &str| loader(mode).load(&request, &Services::none());
    let tables: Vec<Table> = load("fine").unwrap().map(Result::unwrap).collect();
    assert_eq!(tables.len(), 3);
    assert_eq!(tables[2][0].1, Column::Vectors { width: 2, values: vec![2.0, 2.0] });
    assert_eq!(load("fail").err(), Some(Error::new("cannot")));
    let late = [
        ("fail late", "the third is missing"),
        ("panic late", "the third is rotten"),
        ("other columns", "a table has other columns than the first"),
    ];
    for (mode, text) in late {
        let results: Vec<_> = load(mode).unwrap().take(4).collect();
        assert!(results.len() == 3 && results[0].is_ok() && results[1].is_ok(), "{results:?}");
        let error = results[2].as_ref().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert!(loader("fine").describe(&request, &Services::none()).unwrap().is_none());
    let described = loader("described").describe(&request, &Services::none()).unwrap().unwrap();
    assert_eq!(
        (described.rows, described.dim, described.names().unwrap()),
        (Some(3), Some(2), vec!["e".to_owned()])
    );
    let missing = loader("describe").describe(&request, &Services::none()).unwrap_err();
    assert_eq!(
        (missing.problems()[0].code, missing.problems()[0].parameter.as_deref()),
        (Code::Column, Some("id"))
    );
    let text = "`id` names the column `i`, which is not in /there/x; there are `number`, `vector`";
    assert_eq!(missing.to_string(), text);
}
