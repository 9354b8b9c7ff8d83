"""Nothing from a submission becomes markup in a page that is given back."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from build import notebook, submit

from autograder.grading.grade import close_sandbox, grade, told_once
from autograder.judging.exercise import CHAPTERS, exercises
from autograder.reports.feedback import feedback

NASTY = "<script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}</p></body><a href='javascript:alert(1)'>x</a>"
ALLOWED = {"html", "meta", "title", "style", "body", "h1", "h2", "p", "ul", "li", "div", "span", "strong", "code", "a"}
ALLOWED |= {"details", "summary"}


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text, self.links = set(), set(), "", []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in ("meta", "html"):
            self.attributes |= {name for name, _ in attributes}
            self.links += [value for name, value in attributes if name == "href"]

    def handle_data(self, data):
        self.text += data


def is_plain(page):
    found = Tags(page)
    assert found.tags <= ALLOWED
    assert found.attributes <= {"class", "href"}
    assert "49" not in found.text
    return found


@pytest.fixture
def verdict():
    row = {
        "name": NASTY,
        "status": "partly passed",
        "score": 1.0,
        "max_score": 3.0,
        "failures": [{"subtest": "a", "message": NASTY, "misconception": NASTY, "hidden": False}],
        "subtests": [{"name": "a", "title": NASTY, "weight": 1.0, "hidden": False, "passed": False}],
        "section": NASTY,
        "anchor": "x",
    }
    return {
        "assignment": "patchify",
        "status": "partly graded",
        "reason": NASTY,
        "repairs": [NASTY],
        "cell_errors": [NASTY],
        "score": 1.0,
        "max_score": 3.0,
        "exercises": [row],
    }


def test_markup_is_shown_as_text(verdict):
    found = is_plain(feedback(verdict, NASTY, book="https://example.org/book"))
    assert found.text.count("<script>alert(1)</script>") >= 8


def test_what_is_to_be_done_comes_first_and_what_is_right_is_folded(verdict):
    to_do = verdict["exercises"][0] | {"name": "to_do"}
    check = to_do["subtests"][0] | {"passed": True}
    right = to_do | {"name": "right", "status": "passed", "score": 3.0, "failures": [], "subtests": [check]}
    waiting = to_do | {"name": "waiting", "status": None, "score": None, "failures": [], "subtests": []}
    page = feedback(verdict | {"exercises": [right, to_do, waiting]}, "ada")
    is_plain(page)
    places = [page.index(f"<code>{name}</code>") for name in ("to_do", "waiting", "right")]
    assert places == sorted(places)
    assert places[1] < page.index("<details>") < places[2]


def test_an_explanation_is_given_once(verdict):
    def failure(subtest, misconception, message):
        return {"subtest": subtest, "misconception": misconception, "hidden": False, "message": message}

    failures = [
        failure("a", "mixed", "f(1): should be 2.\nYou mixed them.\nSo.\nSee: Part"),
        failure("b", "mixed", "f(2): should be 3.\nYou mixed them.\nSo.\nSee: Part"),
        failure("c", None, "f(3): should be 4.\nThis case is new.\nSee: Part"),
        failure("d", "other", "f(4): should be 5.\nYou forgot.\nSee: Part"),
        failure("e", None, "f(1): should be 2.\nYou mixed them."),
    ]
    told = [(one["misconception"], one["message"]) for one in told_once(failures)]
    assert told == [
        ("mixed", "f(1): should be 2.\nYou mixed them.\nSo.\nSee: Part"),
        (None, "f(2): should be 3."),
        (None, "f(3): should be 4.\nThis case is new."),
        ("other", "f(4): should be 5.\nYou forgot."),
        (None, "f(1): should be 2."),
    ]
    row = verdict["exercises"][0]
    row["failures"] = failures
    row["subtests"] = [row["subtests"][0] | {"name": name} for name in "abcde"]
    page = feedback(verdict, "ada")
    assert [page.count(words) for words in ("You mixed them.", "Mixed.", "should be 3", "See: Part")] == [1, 1, 1, 1]


def test_links_go_to_the_book(verdict):
    verdict["exercises"][0]["section"] = "Cut and put back"
    page = feedback(verdict, "ada", book="https://example.org/book/")
    assert 'href="https://example.org/book/patchify.html#x"' in page
    assert "href" not in Tags(feedback(verdict, "ada")).attributes


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_link_goes_to_a_section_of_a_page_of_the_book(verdict, chapter):
    """A page of the book lies where its text does, and a section's address is the label above its heading."""
    for exercise in exercises(chapter):
        row = verdict["exercises"][0] | {"section": exercise.section, "anchor": exercise.anchor}
        page = feedback(verdict | {"assignment": chapter, "exercises": [row]}, "ada", book="book")
        (address,) = Tags(page).links
        path, _, anchor = address.partition("#")
        text = (Path(__file__).parents[2] / path).with_suffix(".md").read_text(encoding="utf-8")
        assert f"({anchor})=\n## {exercise.section}\n" in text


def test_markup_in_an_exception_and_in_a_cell(verdict):
    made = notebook()
    for cell in made["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "patchify":
            cell["source"] = f"def patchify(img, P):\n    raise ValueError({NASTY!r})"
    made["cells"].append({"cell_type": "code", "metadata": {}, "source": f"raise ValueError({NASTY!r})", "outputs": []})
    found, _ = grade(json.dumps(made).encode(), filename=f"{NASTY.replace('/', '')}.ipynb")
    close_sandbox()
    assert found["cell_errors"]
    is_plain(feedback(found, "ada"))


def test_markup_in_names_of_folders(course):
    student = "&lt;b&gt;x' onload=alert(1)"
    submit(course.folder, student, "no notebook")
    course.run("grade")
    is_plain(course.page(student))
    course.run("report")
    report = (course.folder / "report.html").read_text()
    assert "&amp;lt;b&amp;gt;x" in report and "<b>" not in report
