"""What a published site needs besides its pages: addresses, descriptions, sitemap, 404 page, offline copy."""

import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from docutils import nodes

from autograder.course import PACKAGE, ROOT
from autograder.notebooks.site import address

OFFLINE = f"{PACKAGE}.zip"
HOW_TO_OPEN = (
    "Open index.html in a browser. For exercises, questions and interactive figures, run "
    "`python3 -m http.server --bind 127.0.0.1` in this folder and open http://localhost:8000\n"
)


def set_address(app, config):
    """GitHub Pages serves owner/name there, unless `html_baseurl` says otherwise."""
    if not config.html_baseurl and "/" in config.repository:
        config.html_baseurl = address(config.repository)


def describe(app, pagename, templatename, context, doctree):
    """Give the page's first paragraph as its description, and its address and that of its picture to those who link."""
    base = app.config.html_baseurl
    context["repository"], context["card"] = app.config.repository, app.config.card
    context["package"], context["offline"] = PACKAGE, OFFLINE
    context["site_path"] = urlsplit(base).path
    if doctree is None:
        return
    paragraph = next((one for one in doctree.findall(nodes.paragraph) if one.parent.tagname == "section"), None)
    if paragraph is not None:
        text = " ".join(paragraph.astext().split())
        context["page_description"] = text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " …"
    context["page_address"] = f"{base}{pagename}.html"


def write_sitemap(app, exception):
    if exception or app.builder.format != "html":
        return
    addresses = sorted(f"{app.config.html_baseurl}{page}.html" for page in app.env.found_docs)
    entries = "".join(f"<url><loc>{escape(address)}</loc></url>\n" for address in addresses)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'
    (Path(app.outdir) / "sitemap.xml").write_text(text)


def copy_card(app, exception):
    """The picture beside a link to the course, where the course has one."""
    if app.config.card and not exception and app.builder.format == "html":
        shutil.copy(ROOT / "book" / "card.jpg", app.outdir)


def pack(app, exception):
    """Make the copy for reading offline: the site with one line on how to open it."""
    if exception or app.builder.format != "html":
        return
    html = Path(app.outdir)
    (html / OFFLINE).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / PACKAGE
        shutil.copytree(html, copy, ignore=shutil.ignore_patterns("reports", ".sources", ".buildinfo", "objects.inv"))
        (copy / "README.txt").write_text(HOW_TO_OPEN)
        archive = shutil.make_archive(f"{scratch}/site", "zip", scratch, copy.name)
        shutil.move(archive, html / OFFLINE)


def setup(app):
    app.add_config_value("card", "", "html", str)  # what book/card.jpg shows
    app.connect("config-inited", set_address)
    app.connect("html-page-context", describe)
    app.connect("build-finished", write_sitemap)
    app.connect("build-finished", copy_card)
    app.connect("build-finished", pack, priority=900)  # when everything else is there
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
