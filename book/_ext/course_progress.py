"""`{progress}`: every exercise and question of the course, for the reader's own record (book/widgets/progress.js)."""

from collections import Counter

from course_html import tag
from course_site import add_module
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Course(nodes.General, nodes.Element):
    """Stands for the table until every page has been read."""


class Progress(SphinxDirective):
    """The table of exercises and questions, with what the reader has solved."""

    def run(self):
        add_module(self.env, "progress")
        return [Course()]


def note(env, kind, name, title, anchor):
    """Remember an exercise or a question of the page that is being read; `name` is what its record is kept under."""
    entry = {"kind": kind, "name": name, "title": title, "anchor": anchor}
    env.metadata[env.docname].setdefault("record", []).append(entry)


def _pages(env):
    """The pages in the order of the table of contents."""
    found, waiting = [], [env.config.root_doc]
    while waiting:
        page = waiting.pop(0)
        found.append(page)
        waiting = env.toctree_includes.get(page, []) + waiting
    return found


def fill(app, doctree, docname):
    for place in list(doctree.findall(Course)):
        rows, numbers = [], Counter()
        for page in _pages(app.env):
            record = app.env.metadata[page].get("record", [])
            if record:
                uri = app.builder.get_relative_uri(docname, page)
                title = app.env.titles[page].astext()
                numbers.update(one["kind"] for one in record)
                cells = [_cell(uri, [one for one in record if one["kind"] == kind]) for kind in ("exercise", "quiz")]
                head = tag("th", tag("a", nodes.Text(title), href=uri), scope="row")
                rows.append(tag("tr", head, *cells))
        heads = (tag("th", nodes.Text(text), scope="col") for text in ("Chapter", "Exercises", "Questions"))
        table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), classes=["progress"])
        place.replace_self([_tools(numbers), tag("div", table, classes=["table-box"])])


def _tools(numbers):
    """What widgets/progress.js brings to life, on the page from the start: nothing moves when the script comes."""
    said = [_done("exercise"), nodes.Text(f" of {numbers['exercise']} exercises solved, "), _done("quiz")]
    said.append(nodes.Text(f" of {numbers['quiz']} questions answered correctly."))
    buttons = (
        tag("button", nodes.Text(text), type="button", classes=["solve-button"])
        for text in ("Export", "Import", "Forget all")
    )
    return tag(
        "div",
        tag("p", *said, classes=["progress-total"]),
        tag("div", *buttons, classes=["solve-buttons"]),
        tag("p", classes=["progress-said"], role="status"),
        classes=["progress-tools"],
    )


def _cell(uri, entries):
    items = [
        tag("li", tag("a", nodes.Text(one["title"]), href=f"{uri}#{one['anchor']}"), data_record=one["name"])
        for one in entries
    ]
    if not items:
        return tag("td", nodes.Text("–"))
    count = tag("span", _done(entries[0]["kind"]), nodes.Text(f" of {len(items)}"), classes=["count"])
    return tag("td", count, tag("ul", *items))


def _done(kind):
    """How many are done, of a cell of the table or of all: the script counts."""
    return tag("span", nodes.Text("0"), data_done=kind)


def setup(app):
    app.add_node(Course)
    app.add_directive("progress", Progress)
    app.connect("doctree-resolved", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
