"""What the commands print as JSON, and verdict.json, against the schemas that say what they hold."""

import json
from pathlib import Path

import jsonschema
import pytest
from build import EXPECTED, STUDENTS, notebook

import autograder
import autograder.grading.grade as grading

SCHEMAS = Path(autograder.__file__).parent / "grading" / "schemas"
VERDICT, INSPECT = (json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8")) for name in ("verdict", "inspect"))
CRASH = "import os\ndef patchify(img, P):\n    os._exit(1)"


def is_valid(value, schema):
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)


def test_the_schemas_are_schemas():
    for schema in (VERDICT, INSPECT):
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("content", [notebook(STUDENTS["emil"]), notebook(), notebook(CRASH), {"cells": []}, [], ""])
def test_what_the_commands_print(course, tmp_path, content):
    path = tmp_path / "homework.ipynb"
    path.write_text(json.dumps(content) if content != "" else "")
    verdict = json.loads(course.run("grade-file", "--json", path).stdout)
    is_valid(verdict, VERDICT)
    assert list(verdict) == VERDICT["required"]
    is_valid(json.loads(course.run("inspect", "--json", path).stdout), INSPECT)


@pytest.mark.parametrize("student", EXPECTED)
def test_verdicts_of_a_class(graded, student):
    is_valid(graded.verdict(student), VERDICT)


def test_partly_graded(monkeypatch):
    """One exercise that could not be judged, and a sandbox that failed."""
    data = json.dumps(notebook(STUDENTS["ada"])).encode()

    class Failing(grading.Trial):
        def run(self, *, hidden):
            if self.exercise.name == "unpatchify":
                raise ZeroDivisionError("ours")
            super().run(hidden=hidden)

    monkeypatch.setattr(grading, "Trial", Failing)
    verdict, _ = grading.grade(data, limits=grading.Limits())
    grading.close_sandbox()
    assert verdict["status"] == "partly graded"
    is_valid(verdict, VERDICT)
    nothing = grading.not_graded("the sandbox failed", assignment="patchify", seed=0, limits=grading.Limits())
    is_valid(nothing, VERDICT)
    is_valid(grading.documented(nothing), VERDICT)


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "fine"},
        {"score": None},
        {"reason": "none"},
        {"exercises": []},
        {"status": "not readable", "reason": "it is empty"},
        {"status": "partly graded"},
        {"version": "1.0"},
        {"seed": -1},
        {"extra": 1},
    ],
)
def test_a_verdict_that_is_none(graded, wrong):
    """The schema forbids what a verdict cannot be; else the tests above would say little."""
    with pytest.raises(jsonschema.ValidationError):
        is_valid(graded.verdict("ada") | wrong, VERDICT)
