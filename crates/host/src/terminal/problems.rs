//! Problems with what the user wrote, shown with the place underlined.

use std::io::IsTerminal;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use compflow_engine::pipeline::{Problem, Source};

use super::clean::{message, one_line};

/// Renders all problems in their order, with colours if stderr is a terminal.
pub(crate) fn render(problems: &[Problem], sources: &[Source]) -> String {
    let renderer = if std::io::stderr().is_terminal() {
        Renderer::styled().decor_style(DecorStyle::Unicode)
    } else {
        Renderer::plain().decor_style(DecorStyle::Ascii)
    };
    let mut rendered = Vec::new();
    for problem in problems {
        let (text, help) = (message(&problem.text), problem.help.as_deref().map(message));
        let title = Level::ERROR.primary_title(&*text).id(problem.cause.code());
        let mut group = match &problem.origin {
            None => title.elements(Vec::<annotate_snippets::Message<'_>>::new()),
            Some(origin) => {
                let source = &sources[origin.source];
                let place = AnnotationKind::Primary.span(first_line(&source.text, &origin.span));
                title.element(Snippet::source(&source.text).path(one_line(&source.name)).annotation(place))
            }
        };
        if let Some(help) = &help {
            group = group.element(Level::HELP.message(&**help));
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
