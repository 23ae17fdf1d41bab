"""What a docstring says: the text before its sections, and what it says of each parameter.

The three common styles are read (Google, NumPy, Sphinx) as far as a model needs them; sections about results and
errors are left to people.
"""

from __future__ import annotations

import re
from inspect import cleandoc
from textwrap import dedent

__all__ = ("described",)

_PARAMETERS = r"(?:Args|Arguments|Parameters|Params|Other Parameters|Keyword Args)"
_OTHERS = r"(?:Returns?|Raises|Yields|Warns|Examples?|Notes?|See Also|References)"
_ANY_SECTION = re.compile(
    rf"^(?:(?:{_PARAMETERS}|{_OTHERS})(?::[ \t]*$|\n-{{3,}}[ \t]*$)|:(?:param|type|returns?|rtype|raises)\b[^:\n]*:)",
    re.MULTILINE,
)

_INDENTED = r"(?:[ \t]+\S.*(?:\n|\Z)|[ \t]*\n)"

_STYLES = (
    # Google: an indented section of `name (type): text`, whose later lines are indented further.
    (rf"^{_PARAMETERS}:[ \t]*\n({_INDENTED}+)", rf"^\*{{0,2}}(\w+)[^:\n]*:(.*(?:\n|\Z){_INDENTED}*)"),
    # NumPy: an underlined section of `name : type`, with the text indented below it.
    (
        rf"^{_PARAMETERS}\n-{{3,}}[ \t]*\n(?s:(.*?))(?=^\S.*\n-{{3,}}[ \t]*$|\Z)",
        rf"^\*{{0,2}}(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?::.*)?\n({_INDENTED}+)",
    ),
    # Sphinx: `:param type name: text`, with later lines indented.
    (r"(?s:(.+))", rf"^:param\b[^:\n]*?(\w+)[ \t]*:(.*(?:\n|\Z){_INDENTED}*)"),
)
_READERS = tuple((re.compile(where, re.MULTILINE), re.compile(item, re.MULTILINE)) for where, item in _STYLES)


def described(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The description, and for each parameter that the docstring speaks of, what it says, as one line."""
    text = cleandoc(docstring or "")
    first = _ANY_SECTION.search(text)
    parameters: dict[str, str] = {}
    for sections, items in _READERS:
        for section in sections.finditer(text):
            for names, said in items.findall(dedent(section[1])):
                parameters |= dict.fromkeys(re.split(r"[ \t]*,[ \t]*", names), " ".join(said.split()))
    description = text[: first.start()] if first else text
    return description.strip(), {name: said for name, said in parameters.items() if said}
