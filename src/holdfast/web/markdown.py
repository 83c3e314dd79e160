"""Text of people and models as HTML that does nothing: no script, no picture, no link out of the page.

Markdown is turned into HTML by one library and everything but plain structure is taken away by another. A
picture would be a request, so it becomes its words; a link leads nowhere by itself and shows its address.
"""

from __future__ import annotations

from functools import cache

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

from holdfast.model.text import clean

LONGEST = 200_000  # characters; more is shown as it is
_TAGS = {
    *(
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "br",
        "hr",
        "blockquote",
        "pre",
        "code",
        "em",
        "strong",
    ),
    *("ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "del", "s"),
}


@cache
def _parser() -> MarkdownIt:
    found = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table")
    return found.disable(["image", "link", "autolink", "reference"])


def rendered(text: str) -> Markup:
    """Markdown as HTML of ours: links and pictures stay the text that they were."""
    return Markup(nh3.clean(_parser().render(clean(text)), tags=_TAGS, attributes={}))  # noqa: S704


def is_markdown(path: str, text: str, *, by_model: bool) -> bool:
    """Whether a content is meant as Markdown: by its name, or because a model wrote it as prose."""
    if len(text) > LONGEST:
        return False
    if path.endswith((".md", ".markdown")):
        return True
    return by_model and not path and text[:1] not in "{[<"
