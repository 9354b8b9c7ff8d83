"""Every page is HTML by the standard, as html-validate reads it."""

import json
import subprocess
from pathlib import Path

import pytest

HTML_VALIDATE = "html-validate@9.7.1"  # the last that runs on Node 20
RULES = {
    "attribute-boolean-style": "off",  # docutils writes hidden=""
    "no-inline-style": "off",  # a figure's own width
    "no-redundant-role": "off",  # Sphinx's search looks for role="main"
    "no-trailing-whitespace": "off",  # in the text of figures
    "void-style": "off",
    "form-dup-name": ["error", {"shared": ["radio", "checkbox"]}],
}


@pytest.fixture(scope="session")
def validate(npm):
    def validate(*paths):
        config = {"root": True, "extends": ["html-validate:recommended"], "rules": RULES}
        folder = npm(HTML_VALIDATE)
        (folder / "rules.json").write_text(json.dumps(config))
        found = folder / "found.json"  # a pipe loses the end of a long text
        command = [folder / "node_modules/.bin/html-validate", "--config", folder / "rules.json"]
        subprocess.run([*command, "--formatter", f"json={found}", *paths], capture_output=True)
        return [
            f"{Path(page['filePath']).name}:{fault['line']}: {fault['ruleId']}: {fault['message']}"
            for page in json.loads(found.read_text())
            for fault in page["messages"]
        ]

    return validate


def test_every_page_is_valid(validate, site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 10
    assert validate(*pages) == []


def test_a_fault_is_seen(validate, site, tmp_path):
    text = (site / "book/notation.html").read_text()
    (tmp_path / "page.html").write_text(text.replace("<h1>", "<h1><p>", 1))
    assert "element-permitted-content" in str(validate(tmp_path / "page.html"))
