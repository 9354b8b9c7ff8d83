"""What the pages load, and what every page must have."""

import base64
import hashlib
import os
import platform
import re
import shutil
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from course_html import tag
from docutils import nodes
from docutils.parsers.rst import directives
from myst_nb.core import render
from myst_nb.core.execute import create_client
from myst_nb.core.execute.cache import get_cache
from myst_nb.core.read import create_nb_reader
from myst_nb.sphinx_ import HideCodeCellNode
from pygments.formatters import HtmlFormatter
from pygments.token import STANDARD_TYPES, Token
from sphinx.highlighting import PygmentsBridge
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_proof.nodes import proof_node

logger = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]
WIDGETS = ROOT / "book" / "widgets"
STYLE = ROOT / "book" / "_theme" / "course" / "static" / "course.css"
ROOMS = WIDGETS / "rooms.css"
# What the cells of the pages call and read; tests/site/test_site.py looks whether they read more
CALLED = ("solutions/**/*", "autograder/**/*", "book/*.py", "book/gpu/*.py", "book/gpu/results/**/*",
          "book/widgets/*.webp", "benchmarks/results/*.json", "tests/golden/*.json")  # fmt: skip
# What cells find outside the course: variables of the environment, and where data sets lie if these do not say
DATA = {"FASHION_MNIST": "/usr/share/datasets/fashion-mnist", "CIFAR10": "cifar10"}
SETTINGS = ("COURSE_SIZE", "COURSE_CHECKPOINTS", "OMP_NUM_THREADS", *DATA)
KEPT = 4  # states of the course whose cells' outputs are kept
BREAKS = re.compile(r"(?<=[a-z0-9)]_)|(?<=\w\w[.=(/])")  # in the middle of a long name
VECTOR = re.compile(r"[\d\s.,()\[\]+−=·×-]{1,60}")  # or a sum: it is read in one piece
PICTURE = re.compile(r"data:image/(\w+);base64,([\w+/=]{2000,})")
# The page *A course of your own* shows files of the second course
SOURCES = ("_config.yml", "_toc.yml", "book/**/*", "exercises/*/*.ipynb", "tests/second_course/**/*", *CALLED)


class Widget(SphinxDirective):
    """An interactive figure: a custom element whose module is loaded on this page only.

    The body is what readers without scripts get, and what stands there until the module has loaded.
    """

    required_arguments = 1
    has_content = True
    option_spec = {"label": directives.unchanged_required, "attributes": directives.unchanged}  # noqa: RUF012

    def run(self):
        name = self.arguments[0]
        if not (WIDGETS / f"{name}.js").exists():
            raise self.error(f"there is no book/widgets/{name}.js")
        if "label" not in self.options or not self.content:
            raise self.error("a widget needs a :label:, and a text for readers without scripts")
        add_module(self.env, name)
        attributes = dict(pair.partition("=")[::2] for pair in self.options.get("attributes", "").split())
        element = tag(name, **attributes)
        self.state.nested_parse(self.content, self.content_offset, element)
        return [tag("div", element, classes=["widget"], role="group", aria_label=self.options["label"])]


class Moved(SphinxDirective):
    """Addresses on this page whose sections have moved to another: `{moved} page`, and an id on each line.

    Whoever comes by one of them is led on, by the theme's script or else by a link; nobody else sees anything.
    """

    required_arguments = 1
    has_content = True

    def run(self):
        page, words = self.arguments[0], "What stood here is in another chapter now."
        return [
            tag("p", tag("a", nodes.Text(words), href=f"{page}.html#{name}"), ids=[name], classes=["moved"])
            for name in self.content
        ]


def add_module(env, name):
    """Load book/widgets/<name>.js on the page that is being read."""
    modules = env.metadata[env.docname].setdefault("modules", [])
    if name not in modules:
        modules.append(name)


def styles():
    """The theme's style sheet, and that of the course's own figures where it has some."""
    return [path for path in (STYLE, ROOMS) if path.exists()]


def give_page(app, pagename, templatename, context, doctree):
    """What the layout needs beside the text: the style sheet, and the modules of the page's directives."""
    style = "".join(path.read_text(encoding="utf-8") for path in styles())
    context["style"] = style.replace("url(", f"url({'../' * pagename.count('/')}_static/")
    context["modules"] = app.env.metadata[pagename].get("modules", []) if pagename in app.env.metadata else []


def keep_pictures_apart(app, pagename, templatename, context, doctree):
    """Make a file of each large picture that a figure carries, so that a page's text is there before its pictures."""

    def file(match):
        content = base64.b64decode(match[2])
        name = f"{hashlib.sha256(content).hexdigest()[:16]}.{match[1]}"
        folder = Path(app.outdir) / "_images"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        return f"{'../' * pagename.count('/')}_images/{name}"

    if "body" in context:
        context["body"] = PICTURE.sub(file, context["body"])


def require_alt_text(app, doctree):
    """A picture without alternative text is a warning, hence a failed build."""
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            logger.warning(
                "picture without alternative text (figures: show(fig, alt=...))",
                location=image,
                type="course",
                subtype="alt",
            )


def box_tables(app, doctree):
    """Give each table a box to scroll in on a phone, its code places to break at, and its vectors none."""
    for table in list(doctree.findall(nodes.table)):
        for code in table.findall(nodes.literal):
            pieces = [nodes.Text(piece) for piece in BREAKS.split(code.astext()) if piece]
            code[:] = [node for piece in pieces for node in (piece, nodes.raw("", "<wbr>", format="html"))][:-1]
        for entry in table.findall(nodes.entry):
            if VECTOR.fullmatch(entry.astext()):
                entry["classes"].append("whole")
        for head in list(table.findall(nodes.thead)):
            _mark_headers(head, head.parent.next_node(nodes.tbody))
        table.replace_self(tag("div", table.deepcopy(), classes=["table-box"]))


def _mark_headers(head, body):
    """A header names its column; a column without one names its rows; a row of headers without words is left out."""
    if not head.astext().strip():
        head.parent.remove(head)
        return
    for column, entry in enumerate(list(head.findall(nodes.entry))):
        if entry.astext().strip():
            _retag(entry, "th", scope="col")
            continue
        _retag(entry, "td")
        for row in body:
            _retag(row[column], "th", scope="row")


def _retag(entry, name, **attributes):
    entry.replace_self(tag(name, *entry.children, classes=entry["classes"], **attributes))


class ColouredAlone(HtmlFormatter):
    """An element for each token that the style sheet colours, and for no other: half of a page's elements were names,
    operators and brackets, which look like the text around them."""

    coloured = frozenset(
        name
        for group in re.findall(r"\.highlight :is\((.*?)\)", STYLE.read_text())
        for name in re.findall(r"\w+", group)
    )

    def format_unencoded(self, tokensource, outfile):
        tokens = ((kind if STANDARD_TYPES.get(kind) in self.coloured else Token, value) for kind, value in tokensource)
        super().format_unencoded(tokens, outfile)


def copy_widgets(app, exception):
    if not exception and app.builder.format == "html":
        target = Path(app.outdir) / "widgets"
        shutil.copytree(WIDGETS, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.md", "*.css"))


def set_proofs_apart(app, doctree):
    """sphinx-proof begins a proof with a word like any other: set it in italics."""
    for proof in doctree.findall(proof_node):
        text = proof.next_node(nodes.Text)
        text.parent[:1] = [nodes.emphasis("", "Proof."), nodes.Text(text.removeprefix("Proof."))]


def tell_proofs_apart(app, doctree):
    """sphinx-proof gives the same two ids to every proof of a page: number them."""
    seen = Counter()
    for node in doctree.findall(nodes.Element):
        for position, name in enumerate(node.get("ids", [])):
            if name in ("proof", "proof-content"):
                seen[name] += 1
                node["ids"][position] = f"{name}-{seen[name]}"


def visit_citation(self, node):
    # docutils marks entries with a role that WAI-ARIA has withdrawn
    self.body.append(self.starttag(node, "div", CLASS="citation"))


def depart_citation(self, node):
    self.body.append("</div>\n")


def visit_hidden(self, node):
    # MyST-NB's own names the dropdown otherwise than it reads, and puts paragraphs where HTML allows none
    self.body.append(self.starttag(node, "details", CLASS="hide") + "<summary>")
    for state, text in (("collapsed", node["prompt_show"]), ("expanded", node["prompt_hide"])):
        self.body.append(f'<span class="{state}">{text}</span>')
    self.body.append("</summary>\n")


def depart_hidden(self, node):
    self.body.append("</details>\n")


def join_streams(outputs):
    """Make what a cell prints one block, exactly as printed, however many pieces the kernel sent it in."""
    joined, streams = [], {}
    for output in outputs:
        name = output["name"] if output["output_type"] == "stream" else None
        if name in streams:
            streams[name]["text"] += output["text"]
        else:
            joined.append(output)
            if name:
                streams[name] = output
    return joined


def watch_style(app):
    """A page carries the style sheet: `make page` writes all of them again when that changes, as with a template."""
    templates = app.builder.templates
    if templates:
        newest = templates.newest_template_mtime
        templates.newest_template_mtime = lambda: max(newest(), *(path.stat().st_mtime for path in styles()))


def digest(patterns, *more):
    """A number that changes with any file of these patterns, its name and its content, and with what else is given."""
    files = sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()})
    told = [repr(more)]
    for path in files:
        if "__pycache__" not in path.parts:
            told.append(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def sources_digest():
    """What the site is made of, in one number: the tests build it anew when this changes."""
    return digest(SOURCES) + ("-hidden" if os.environ.get("SOLUTIONS") == "hidden" else "")


def see_whether_whole(app, env, docnames):
    """`make page` reads what has changed, and cannot know what that changes elsewhere."""
    app.is_whole = set(docnames) == env.found_docs


def surroundings():
    """What the outputs of cells hang on besides code: Python, the machine, every package, settings and data sets."""
    packages = sorted(f"{one.name} {one.version}" for one in metadata.distributions())
    settings = {name: os.environ.get(name) for name in SETTINGS}
    places = [Path(settings[name] or place) for name, place in DATA.items()]
    data = [(str(path), path.stat().st_mtime) for place in places for path in [place, *sorted(place.glob("**/*"))]
            if path.exists()]  # fmt: skip
    return sys.version, platform.machine(), packages, settings, data


def cells_folder(kept):
    """The folder, in one that is kept, for the outputs of cells in the state in which the course is now."""
    return Path(kept) / digest(CALLED, *surroundings())[:16]


def keep_outputs(app, env, docnames):
    """`make book` runs every cell. `make page` runs those of a page whose code, or what it calls, has changed.

    So does a whole build where CELLS names a folder, as the tests' does: it takes what any build has left there.
    """
    elsewhere = os.environ.get("CELLS")
    cells = Path(elsewhere or Path(app.outdir).parent / "cells")
    if app.is_whole:
        if not elsewhere:
            shutil.rmtree(cells, ignore_errors=True)
        shutil.rmtree(Path(app.outdir) / "_images", ignore_errors=True)
    cells = cells_folder(cells)
    get_cache(cells).list_cache_records()  # its database is made before the pages are read side by side
    cache = {"execution_mode": "cache", "execution_cache_path": str(cells)}
    env.mystnb_config = env.mystnb_config.copy(**cache)
    old = sorted(cells.parent.iterdir(), key=lambda folder: folder.stat().st_mtime)[:-KEPT]
    for folder in old:
        shutil.rmtree(folder, ignore_errors=True)


class Mute:
    """A log that keeps nothing."""

    def info(self, *_, **__):
        pass

    debug = warning = error = info


def run_side_by_side(app, env, docnames):
    """Run the pages' cells on all cores before Sphinx reads one page after the other, which finds their outputs.

    What fails here is run once more there, and named there.
    """

    def run(docname):
        path = env.doc2path(docname)
        text = Path(path).read_text(encoding="utf-8")
        reader = create_nb_reader(path, env.myst_config, env.mystnb_config, text)
        if reader:
            with create_client(reader.read(text), path, env.mystnb_config, Mute(), reader.read_fmt):
                pass

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, docnames))


def sign(app, exception):
    """Leave the digest in the site, when every page was read and nothing was amiss."""
    signature = Path(app.outdir) / ".sources"
    signature.unlink(missing_ok=True)
    # Sphinx sets its own status only after this
    if not exception and not app._warncount and app.is_whole and Path(app.srcdir) == ROOT:
        signature.write_text(sources_digest())


def setup(app):
    # The pages train small models: threads that wait for one another cost more there than they bring, and on a busy
    # machine ten times as much. Kernels inherit this.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Cells of any folder import figures, and the code of this course, whichever is installed
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "book")))
    render.coalesce_streams = join_streams  # MyST-NB's own adds a line end between pieces, hence by timing
    PygmentsBridge.html_formatter = ColouredAlone
    app.add_directive("widget", Widget)
    app.add_directive("moved", Moved)
    app.connect("doctree-read", require_alt_text)
    app.add_node(nodes.citation, override=True, html=(visit_citation, depart_citation))
    app.add_node(HideCodeCellNode, override=True, html=(visit_hidden, depart_hidden))
    app.connect("doctree-read", box_tables)
    app.connect("doctree-read", set_proofs_apart)
    app.connect("doctree-read", tell_proofs_apart)
    app.connect("html-page-context", give_page)
    app.connect("html-page-context", keep_pictures_apart)
    app.connect("builder-inited", watch_style)
    app.connect("build-finished", copy_widgets)
    app.connect("env-before-read-docs", see_whether_whole)
    app.connect("env-before-read-docs", keep_outputs)
    app.connect("env-before-read-docs", run_side_by_side)
    app.connect("build-finished", sign)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
