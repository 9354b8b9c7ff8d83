"""One node for an HTML element, which the course's directives build their markup from."""

from docutils import nodes
from docutils.statemachine import StringList


class Tag(nodes.General, nodes.Element):
    """An HTML element: `Tag(tag=..., html={...})`, and `ids`, `classes` as any node has."""


def tag(name, /, *children, ids=(), classes=(), **attributes):
    """Make an element. An attribute's underscores become hyphens; True is one without a value."""
    html = {key.replace("_", "-"): "" if value is True else value for key, value in attributes.items()}
    return Tag("", *children, tag=name, html=html, ids=list(ids), classes=list(classes))


def parse(directive, text):
    """Parse MyST text, as the body of `directive` would be; returns nodes."""
    parent = nodes.Element()
    source, line = directive.get_source_info()
    directive.state.nested_parse(StringList(text.splitlines(), source), line, parent)
    return parent.children


def parse_inline(directive, text):
    """Parse one line of MyST text into inline nodes (what stands in a label or a title)."""
    parsed = parse(directive, text)
    if len(parsed) != 1 or not isinstance(parsed[0], nodes.paragraph):
        raise directive.error(f"one paragraph of text expected here, not: {text!r}")
    return parsed[0].children


def details(summary, *children, **attributes):
    """Make a dropdown that needs no script."""
    return tag("details", tag("summary", nodes.Text(summary)), *children, **attributes)


def _visit(self, node):
    self.body.append(self.starttag(node, node["tag"], "", **node["html"]))


def _depart(self, node):
    if node["tag"] != "input":
        self.body.append(f"</{node['tag']}>")


def setup(app):
    app.add_node(Tag, html=(_visit, _depart))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
