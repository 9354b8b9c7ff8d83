"""One browser for the whole run, cut off from every host but the site's own server."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from course_run import NotBrought, runtime_files, write_run
from playwright.sync_api import sync_playwright
from serving import CHROMIUM, FLAGS, served

ROOT = Path(__file__).parents[2]
PACKAGES = "numpy, scipy and openblas of the release 0.27.7"


@pytest.fixture(scope="session")
def address(site):
    with served(site) as address:
        yield address


@pytest.fixture(scope="session")
def runtime():
    """A folder with Pyodide's packages, as `make book PYODIDE=<folder>` takes one."""
    packages = os.environ.get("PYODIDE_PACKAGES")
    if not packages:
        pytest.skip(f"PYODIDE_PACKAGES names no folder with Pyodide's packages ({PACKAGES})")
    try:
        runtime_files(packages)
    except NotBrought as error:
        pytest.skip(str(error))
    return Path(packages)


@pytest.fixture(scope="session")
def solving(site, runtime, tmp_path_factory):
    """The address of the site with Pyodide in it."""
    html = tmp_path_factory.mktemp("site") / "html"
    shutil.copytree(site, html)
    write_run(html, "", runtime)
    with served(html) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    assert CHROMIUM, "the browser tests need Chromium: apt-get install chromium, or name one in CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def put_together(page):
    """What is far away gets its fields and figures too, as before printing."""
    page.evaluate("dispatchEvent(new Event('beforeprint'))")


@contextlib.contextmanager
def visits(browser, address):
    """A function that opens pages of a site: `visit("book/intro.html", width=390, color_scheme="dark")`.

    At the end every page must have a clean console and have asked no other host for anything.
    """
    complaints, contexts = [], []

    def visit(path, width=1280, until="load", far_later=False, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)

        def decide(route):
            if route.request.url.startswith((address, "data:", "blob:")):
                route.continue_()
            else:
                complaints.append(f"{path} asked for {route.request.url}")
                route.abort()

        def note_failure(request):
            if request.failure != "net::ERR_ABORTED":  # the page was left while it was loading
                complaints.append(f"{path}: {request.url}: {request.failure}")

        context.route("**/*", decide)
        page = context.new_page()
        page.on("console", lambda m: m.type in ("error", "warning") and complaints.append(f"{path}: {m.text}"))
        page.on("pageerror", lambda error: complaints.append(f"{path}: {error}"))
        page.on("requestfailed", note_failure)
        page.goto(address + path, wait_until=until)
        if not far_later and options.get("java_script_enabled", True):
            put_together(page)
        return page

    visit.complaints = complaints
    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def visit(browser, address):
    """Open pages of the site as it is published: see `visits`."""
    with visits(browser, address) as visit:
        yield visit


@pytest.fixture
def visit_bundled(browser, solving):
    """Open pages of the site with Pyodide in it."""
    with visits(browser, solving) as visit:
        yield visit
