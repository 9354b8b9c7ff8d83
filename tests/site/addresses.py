"""Addresses in a built site: what its pages would load, and where their links lead."""

import functools
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

OUTSIDE = re.compile(r"^\s*(?:https?:)?//")
IN_CSS = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)""")
IN_JS = re.compile(
    r"""(?:\bimport|\bfrom|\bimport\(|\bfetch\(|\bimportScripts\(|\bWorker\(|\bsrc\s*=)\s*["'`]([^"'`]+)"""
)


@functools.cache
def _parsed(path, changed, size):
    return BeautifulSoup(Path(path).read_text(encoding="utf-8"), "html.parser")


def page(path):
    """A page of a site, parsed; a second time only if it has changed."""
    state = Path(path).stat()
    return _parsed(path, state.st_mtime_ns, state.st_size)


def loaded_by_page(soup):
    """Addresses that a browser fetches on its own when it shows the page."""
    for tag in soup.find_all(True):
        for name in ("src", "data", "poster", "href", "xlink:href", "action"):
            if tag.has_attr(name) and not (tag.name == "a" and name == "href"):
                yield tag[name]
        for part in tag.get("srcset", "").split(","):
            yield part.strip().split(" ")[0]
        yield from IN_CSS.findall(tag.get("style", ""))
        if tag.name == "style":
            yield from IN_CSS.findall(tag.text)
        if tag.name == "script":
            yield from IN_JS.findall(tag.text)


def outside_addresses(site):
    """Every (file, address) that a page of the site, or what it loads, would fetch from another host."""
    found, seen = [], set()
    queue = sorted(Path(site).rglob("*.html"))
    while queue:
        path = queue.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        if path.suffix == ".html":
            addresses = loaded_by_page(page(path))
        elif path.suffix in (".css", ".js"):
            addresses = (IN_CSS if path.suffix == ".css" else IN_JS).findall(path.read_text(encoding="utf-8"))
        else:
            continue
        for address in addresses:
            if OUTSIDE.match(address):
                found.append((str(path.relative_to(site)), address))
            elif not urlsplit(address).scheme and (target := urlsplit(address).path):
                queue.append((path.parent / unquote(target)).resolve())
    return found


def dead_links(site):
    """Every (page, address) inside the site that leads to no file or to no id."""
    soups = {path.resolve(): page(path) for path in Path(site).rglob("*.html")}
    ids = {path: {tag["id"] for tag in soup.find_all(id=True)} for path, soup in soups.items()}
    dead = []
    for path, soup in soups.items():
        linked = {tag["href"] for tag in soup.find_all(href=True) if tag.name != "base"}
        for address in linked | {tag["src"] for tag in soup.find_all(src=True)}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            missing = not target.exists()
            if not missing and fragment and target in soups:
                missing = fragment not in ids[target]
            if missing:
                dead.append((path.name, address))
    return dead
