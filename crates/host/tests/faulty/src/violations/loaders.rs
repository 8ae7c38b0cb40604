//! Loaders that break rules.

use arrow_schema::{DataType, Field, Schema};
use compflow_api::{
    Column, Component, Description, Error, Flags, LoadRequest, Loader, NoParams, Result, Services, Stream,
    register,
};

use super::{calls, leak};

component!(loader Erratic, "erratic", "other data every time, in other columns, and memory is lost");

impl Loader for Erratic {
    fn load(&self, _request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        leak();
        Stream::of(vec![("surplus".to_owned(), Column::Vectors { width: 1, values: vec![calls() as f32] })])
    }
}

component!(loader Brittle, "brittle", "panics whatever the file", Flags::NEEDS_PATH);

impl Loader for Brittle {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        panic!("not {:?}", request.path)
    }
}

component!(loader Boastful, "boastful", "says that there is more than it loads");

impl Loader for Boastful {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        let column = |&(name, source): &(&str, &str)| match source {
            "embedding" => Ok((name.to_owned(), Column::Vectors { width: 2, values: vec![0.0, 1.0] })),
            _ => Err(Error::data("there is no such thing")),
        };
        Stream::of(request.columns.iter().map(column).collect::<Result<_>>()?)
    }

    fn describe(&self, _request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Option<Description>> {
        let columns = Schema::new(vec![Field::new("embedding", DataType::Float32, false)]);
        Description::from_schema(&columns, Some(9), Some(2)).map(Some)
    }
}

component!(loader Nameless, "nameless", "does not say where the embeddings are");

impl Loader for Nameless {
    fn load(&self, _request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        Err(Error::data("there is nothing to load"))
    }

    fn describe(&self, _request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Option<Description>> {
        let columns = Schema::new(vec![Field::new("vec", DataType::Float32, false)]);
        Description::from_schema(&columns, None, None).map(Some)
    }
}
