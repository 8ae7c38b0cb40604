//! Problems with what the user wrote, shown with the place underlined.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A text in which problems can be found: the pipeline file, or an option of the command line.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// What it is called in messages.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A place in a [`Source`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Index of the source; the pipeline file is the first.
    pub(crate) source: usize,
    /// Bytes of its text.
    pub(crate) span: Range<usize>,
}

/// Something that must be changed before a pipeline can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) text: String,
    pub(crate) origin: Option<Origin>,
    /// What would do.
    pub(crate) help: Option<String>,
}

impl Problem {
    pub(crate) fn new(origin: &Origin, text: impl Into<String>) -> Self {
        Self { text: text.into(), origin: Some(origin.clone()), help: None }
    }

    pub(crate) fn without_place(text: impl Into<String>) -> Self {
        Self { text: text.into(), origin: None, help: None }
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds which of the known names was probably meant, or which there are.
    #[must_use]
    pub(crate) fn suggest<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        if let Some(near) = compflow_api::nearest(name, known.clone()) {
            return self.help(format!("did you mean `{near}`?"));
        }
        let known: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
        if known.is_empty() { self } else { self.help(format!("there are {}", known.join(", "))) }
    }
}

/// Renders all problems in the order of their places, those without a place last.
pub(crate) fn render(mut problems: Vec<Problem>, sources: &[Source], styled: bool) -> String {
    let place = |problem: &Problem| {
        problem.origin.as_ref().map_or((usize::MAX, 0), |origin| (origin.source, origin.span.start))
    };
    problems.sort_by_key(place);
    problems.dedup();
    let renderer = if styled {
        Renderer::styled().decor_style(DecorStyle::Unicode)
    } else {
        Renderer::plain().decor_style(DecorStyle::Ascii)
    };
    let mut rendered = Vec::new();
    for problem in &problems {
        let title = Level::ERROR.primary_title(&problem.text);
        let mut group = match &problem.origin {
            None => title.elements(Vec::<annotate_snippets::Message<'_>>::new()),
            Some(origin) => {
                let source = &sources[origin.source];
                let place = AnnotationKind::Primary.span(first_line(&source.text, &origin.span));
                title.element(Snippet::source(&source.text).path(&source.name).annotation(place))
            }
        };
        if let Some(help) = &problem.help {
            group = group.element(Level::HELP.message(help));
        }
        rendered.push(renderer.render(&[group]));
    }
    rendered.join("\n\n")
}

/// A table's span can be pages long; its first line says enough.
fn first_line(text: &str, span: &Range<usize>) -> Range<usize> {
    let end = text[span.clone()].find('\n').map_or(span.end, |at| span.start + at);
    span.start..end.max(span.start)
}
