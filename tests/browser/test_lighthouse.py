"""What Lighthouse says of every page, on a server that compresses. It measures time: run it on a quiet machine."""

import pytest
from lighthouse import LIGHTHOUSE, scores
from test_pages import PAGES


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_lighthouse(npm, address, path):
    found = scores(npm(LIGHTHOUSE), address + path)
    assert found["accessibility"] == 1
    assert found["performance"] >= 0.95, found
