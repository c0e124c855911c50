"""HTML and SVG as text that is safe by construction: what is not `Markup` is escaped."""

from __future__ import annotations

from html import escape

_EMPTY = frozenset({"br", "circle", "input", "line", "link", "meta", "path", "rect", "use"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Node = str | int | None
Attribute = str | int | float | bool | None


def tag(name: str, /, *children: Node, **attributes: Attribute) -> Markup:
    """Return an element.

    Parameters
    ----------
    name
        Of the element.
    children
        Text, which is escaped, or `Markup`; None is left out.
    attributes
        ``aria_label`` stands for ``aria-label``, ``class_`` for ``class``.  None and False are
        left out, True stands without a value.
    """
    opening = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY and not children:
        return Markup(f"<{name}{opening}/>")
    return Markup(f"<{name}{opening}>{join(*children)}</{name}>")


def join(*children: Node) -> Markup:
    """Return nodes one after another."""
    return Markup("".join(map(text, children)))


def text(node: Node) -> str:
    """Return a node as HTML: markup as it is, all else escaped."""
    if node is None:
        return ""
    return node if isinstance(node, Markup) else escape(visible(str(node)))


def visible(value: str) -> str:
    """Show what a page cannot hold, such as control characters, as its escape."""
    if value.isprintable():
        return value
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in value)


def breakable(value: str, after: str) -> Markup:
    """Return text in which a line may end after certain characters."""
    return join(*(join(c, Markup("<wbr>")) if c in after else c for c in value))


def number(value: float) -> str:
    """Return a coordinate to a tenth, as short as it can be said."""
    found = f"{value:.1f}".removesuffix(".0")
    return "0" if found == "-0" else found


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{number(value) if isinstance(value, float) else text(str(value))}"'
