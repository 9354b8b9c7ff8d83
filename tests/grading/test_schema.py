"""What the commands print as JSON, and verdict.json, against the schemas that say what they hold."""

import json
import types
import typing
from pathlib import Path

import jsonschema
import pytest
from build import EXPECTED, STUDENTS, notebook

import autograder
import autograder.grading.grade as grading
from autograder.grading import verdict

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


KINDS = {str: "string", float: "number", int: "integer", bool: "boolean", type(None): "null", list: "array"}


def kinds(annotation):
    """The JSON types that an annotation allows."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return set().union(*map(kinds, typing.get_args(annotation)))
    if typing.get_origin(annotation) is typing.Literal:
        return {KINDS[type(value)] for value in typing.get_args(annotation)}
    if typing.is_typeddict(annotation):
        return {"object"}
    return {KINDS[typing.get_origin(annotation) or annotation]}


def kinds_in(schema):
    """The JSON types that a schema allows."""
    if "$ref" in schema:
        return {"object"}
    if "anyOf" in schema:
        return set().union(*map(kinds_in, schema["anyOf"]))
    if "const" in schema or "enum" in schema:
        return {KINDS[type(value)] for value in schema.get("enum", [schema.get("const")])}
    found = schema["type"]
    return {found} if isinstance(found, str) else set(found)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (verdict.Verdict, VERDICT),
        (verdict.Row, VERDICT["$defs"]["exercise"]),
        (verdict.Failure, VERDICT["$defs"]["failure"]),
        (verdict.Subtest, VERDICT["$defs"]["subtest"]),
        (verdict.File, VERDICT["properties"]["file"]),
        (verdict.Recorded, VERDICT["properties"]["limits"]),
    ],
)
def test_types_and_schema_say_the_same(kind, schema):
    assert kind.__required_keys__ == set(schema["required"])
    assert {name: kinds(annotation) for name, annotation in typing.get_type_hints(kind).items()} == {
        name: kinds_in(about) for name, about in schema["properties"].items()
    }
