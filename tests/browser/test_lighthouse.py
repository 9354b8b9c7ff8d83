"""What Lighthouse says of the first page and of the heaviest chapter. It measures time: run it on a quiet machine."""

import pytest
from lighthouse import LIGHTHOUSE, scores


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["first", "heaviest"])
def test_lighthouse(npm, site, address, kind):
    folder = npm(LIGHTHOUSE)
    pages = {
        "first": site / "book/intro.html",
        "heaviest": max(site.glob("book/*.html"), key=lambda path: path.stat().st_size),
    }
    found = scores(folder, address + str(pages[kind].relative_to(site)))
    assert found["accessibility"] == 1
    assert found["performance"] >= 0.95, found
