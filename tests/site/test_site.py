"""The built pages: nothing from elsewhere, no dead link, nothing hidden shown."""

import re

import pytest
from addresses import dead_links, outside_addresses
from bs4 import BeautifulSoup


def test_nothing_is_loaded_from_elsewhere(site):
    assert outside_addresses(site) == []


def test_no_link_inside_the_site_is_dead(site):
    assert dead_links(site) == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("page.html", '<img src="https://example.org/a.png" alt="">'),
        ("page.html", '<img srcset="//example.org/a.png 2x" alt="">'),
        ("page.html", '<link rel="stylesheet" href="https://example.org/a.css">'),
        ("page.html", '<script src="//example.org/a.js"></script>'),
        ("page.html", '<script type="module">import "https://example.org/a.js"</script>'),
        ("page.html", '<p style="background: url(https://example.org/a.png)">'),
        ("page.html", "<style>@import 'https://example.org/a.css'</style>"),
        ("page.html", '<svg><use xlink:href="https://example.org/a.svg#b"/></svg>'),
        ("style.css", "p { background: url('//example.org/a.png') }"),
        ("style.css", '@import "https://example.org/a.css";'),
        ("script.js", 'import { a } from "https://example.org/a.js";'),
        ("script.js", "await import('https://example.org/a.js')"),
        ("script.js", "fetch(`https://example.org/a.json`)"),
        ("script.js", 'picture.src = "https://example.org/a.png"'),
    ],
)
def test_an_outside_address_is_seen(tmp_path, file, content):
    (tmp_path / "page.html").write_text('<link rel="stylesheet" href="style.css"><script src="script.js"></script>')
    (tmp_path / file).write_text((tmp_path / file).read_text() + content if file == "page.html" else content)
    assert len(outside_addresses(tmp_path)) == 1


def test_a_plain_link_elsewhere_is_no_outside_address(tmp_path):
    (tmp_path / "page.html").write_text('<a href="https://example.org">there</a>')
    assert outside_addresses(tmp_path) == []


@pytest.mark.parametrize(
    "link", ['<a href="nowhere.html">', '<a href="other.html#nowhere">', '<a href="#nowhere">', '<img src="no.png">']
)
def test_a_dead_link_is_seen(tmp_path, link):
    (tmp_path / "other.html").write_text('<p id="here">')
    living = '<p id="top"><a href="other.html#here"></a><a href="#top"></a><a href="https://example.org/nowhere"></a>'
    (tmp_path / "page.html").write_text(living)
    assert dead_links(tmp_path) == []
    (tmp_path / "page.html").write_text(living + link)
    assert len(dead_links(tmp_path)) == 1


def test_a_site_without_solutions_is_another_site(monkeypatch):
    """So that the tests do not take what `make book SOLUTIONS=hidden` left behind for the site."""
    from course_site import sources_digest

    monkeypatch.delenv("SOLUTIONS", raising=False)
    shown = sources_digest()
    monkeypatch.setenv("SOLUTIONS", "shown")
    assert sources_digest() == shown
    monkeypatch.setenv("SOLUTIONS", "hidden")
    assert sources_digest() != shown


def test_ids_are_unique(site):
    for path in site.glob("book/*.html"):
        ids = [tag["id"] for tag in BeautifulSoup(path.read_text(), "html.parser").find_all(id=True)]
        assert len(ids) == len(set(ids)), (path.name, sorted(i for i in set(ids) if ids.count(i) > 1))


def test_no_solution_marks_and_no_sources_on_the_site(site):
    assert not (site / "_sources").exists()
    for path in site.glob("book/*.html"):
        assert not re.search(r"### (BEGIN|END)", path.read_text()), path
