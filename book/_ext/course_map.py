"""`{chapters}`: the map of the course, each chapter with the question that its page opens with."""

from course_html import tag
from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective


class Map(nodes.General, nodes.Element):
    """Stands for the map until every page has been read."""


class Chapters(SphinxDirective):
    """A part of the table of contents, by its caption: the titles of its pages and their first paragraphs."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        return [Map(caption=self.arguments[0])]


def note_opening(app, doctree):
    """Keep a page's first paragraph."""
    first = next((one for one in doctree.findall(nodes.paragraph) if one.parent.tagname == "section"), None)
    if first is not None:
        app.env.metadata[app.env.docname]["opening"] = first.deepcopy()


def fill(app, doctree, docname):
    for place in list(doctree.findall(Map)):
        parts = app.env.tocs[app.config.root_doc].findall(addnodes.toctree)
        pages = next((part["includefiles"] for part in parts if part.get("caption") == place["caption"]), None)
        if pages is None:
            raise ValueError(f"there is no part {place['caption']!r} in _toc.yml")
        items = [_entry(app, docname, page) for page in pages]
        place.replace_self(tag("ol", *items, classes=["chapter-map"]))


def _entry(app, docname, page):
    title = tag("a", *_plain(app, app.env.titles[page]), href=app.builder.get_relative_uri(docname, page))
    number = ".".join(map(str, app.env.toc_secnumbers.get(page, {}).get("", ())))
    opening = app.env.metadata[page].get("opening", nodes.paragraph())
    return tag(
        "li",
        tag("span", nodes.Text(number), classes=["chapter-number"]),
        tag("p", title, classes=["chapter-title"]),
        tag("p", *_plain(app, opening)),
    )


def _plain(app, element):
    """The element's text and formulas; a reference to a page becomes its title."""
    found = []
    for child in element.children:
        if isinstance(child, addnodes.pending_xref):
            labels = app.env.get_domain("std").labels
            found.append(nodes.Text(labels.get(child["reftarget"], ("", "", child.astext()))[2]))
        else:
            found.append(child.deepcopy())
    return found


def setup(app):
    app.add_node(Map)
    app.add_directive("chapters", Chapters)
    app.connect("doctree-read", note_opening)
    app.connect("doctree-resolved", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
