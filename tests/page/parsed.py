"""A page as a browser would read it: parsed by the rules of HTML, every parse error raised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
from shop import session_of

from talkfold import LoggedAction
from talkfold.page import Limits, render

__all__ = ("classes", "page_of", "parsed", "text_of", "visible_text", "with_class")


def page_of(rows: Sequence[LoggedAction], *, limits: Limits | None = None, **fields: Any) -> str:
    """The page of a session with that log."""
    session = session_of(rows, **fields)
    return "".join(render(session, rows, exported=1_764_600_000_000, limits=limits or Limits()))


def parsed(page: str) -> Element:
    """The page's root element. Raises when it is no faultless HTML, or cannot be written as UTF-8."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    return parser.parse(page.encode(), transport_encoding="utf-8")


def classes(element: Element) -> list[str]:
    return element.get("class", "").split()


def with_class(root: Element, name: str) -> Iterator[Element]:
    return (element for element in root.iter() if name in classes(element))


def text_of(elements: Element | Iterable[Element]) -> str:
    """All text in some elements."""
    each = [elements] if isinstance(elements, Element) else elements
    return "".join("".join(element.itertext()) for element in each)


def visible_text(element: Element, at: int) -> str:
    """The text in an element that is there after that action of the log."""
    if not is_there(element, at):
        return ""
    inner = (visible_text(child, at) + (child.tail or "") for child in element)
    return (element.text or "") + "".join(inner)


def is_there(element: Element, at: int) -> bool:
    """Whether an element is there after that action, by what it says of itself."""
    return int(element.get("data-s", 0)) <= at < int(element.get("data-u", 1 << 60))
