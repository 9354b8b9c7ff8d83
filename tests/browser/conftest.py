"""One browser for the whole run, cut off from every host but the site's own server."""

import functools
import http.server
import os
import shutil
import threading

import pytest
from playwright.sync_api import sync_playwright

FLAGS = [
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The server behind `make serve`, without its log."""

    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def address(site):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="session")
def browser():
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert chromium, "the browser tests need Chromium: apt-get install chromium, or name one in CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, address):
    """Open a page of the site: `visit("book/intro.html", width=390, color_scheme="dark")`.

    At the end of the test every page must have a clean console and have asked no other host for anything.
    """
    complaints, contexts = [], []

    def visit(path, width=1280, **options):
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
        page.goto(address + path, wait_until="networkidle")
        return page

    visit.complaints = complaints
    yield visit
    for context in contexts:
        context.close()
    assert complaints == []
