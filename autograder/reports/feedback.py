"""The page that a learner gets back. Whatever in it comes from a submission is text, never markup."""

import functools
from pathlib import Path

import jinja2
import nh3

from autograder import clean
from autograder.grading.grade import told_once
from autograder.judging.exercise import CHAPTERS, moved_from

TEMPLATES = Path(__file__).parent / "templates"
TAGS = {"h1", "h2", "h3", "p", "ul", "li", "div", "span", "strong", "code", "a", "meter"}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
ATTRIBUTES = {tag: {"class"} for tag in TAGS} | {"a": {"href"}, "meter": {"value", "max", "aria-label"}}
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
<body>
{body}
</body>
</html>
"""


def feedback(verdict, student, *, graded_at="", penalty=0.0, book=""):
    """The feedback on a verdict, as an HTML page of its own.

    Parameters
    ----------
    verdict : dict
    student : str
    graded_at : str
        Date and time, in words.
    penalty : float
        Points taken off for lateness.
    book : str
        Where the book lies on the web, for links to its sections.
    """
    assignment = verdict["assignment"]
    moved = moved_from(assignment)
    return page(
        f"{assignment} · {student}",
        "feedback.html",
        verdict=verdict,
        student=student,
        graded_at=graded_at,
        penalty=penalty,
        pages=book
        and {
            row["name"]: f"{book.rstrip('/')}/{CHAPTERS.get(chapter, chapter)}.html"
            for row in verdict["exercises"]
            for chapter in [moved.get(row["name"], assignment)]
        },
    )


def page(title, template, **values):
    """Fill a template, which escapes every value, and clean the result of all but plain markup."""
    body = _templates().get_template(template).render(values)
    body = nh3.clean(body, tags=TAGS, attributes=ATTRIBUTES, url_schemes={"http", "https"}, link_rel=None)
    return PAGE.format(title=jinja2.filters.escape(clean.line(title)), style=_style(), body=body)


@functools.cache
def _templates():
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean.text(value) if type(value) is str else value,  # not what a macro has made
    )
    templates.filters["told_once"] = told_once
    templates.filters["points"] = lambda number: f"{number:.2f}".rstrip("0").rstrip(".")
    return templates


@functools.cache
def _style():
    return (TEMPLATES / "page.css").read_text("utf-8")
