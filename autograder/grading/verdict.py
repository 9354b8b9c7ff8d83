"""What a verdict on a submission is, as `verdict.json` holds it: its kinds of value, for those who write and read it.

The schemas beside this module say the same to other programs, and what each value means.
"""

from typing import Literal, NotRequired, TypedDict


class Failure(TypedDict):
    """A sub-test that did not pass."""

    subtest: str
    message: str
    misconception: str | None
    hidden: bool


class Subtest(TypedDict):
    """A part of an exercise's judgement."""

    name: str
    title: str
    weight: float
    hidden: bool
    passed: bool


class Row(TypedDict):
    """An exercise; one that was not judged has no status and no score."""

    name: str
    status: str | None
    score: float | None
    max_score: float
    failures: list[Failure]
    subtests: NotRequired[list[Subtest]]
    section: NotRequired[str]
    anchor: NotRequired[str]
    seconds: NotRequired[float]


class File(TypedDict):
    """The notebook that was graded."""

    name: str | None
    sha256: str
    problem: str


class Recorded(TypedDict):
    """The limits under which it ran."""

    time_limit: float
    memory_limit: int
    system_calls: NotRequired[list[str] | Literal["all"]]


class Verdict(TypedDict):
    """What `grade-file --json` prints, and what `verdict.json` holds besides."""

    assignment: str | None
    status: str
    reason: str | None
    repairs: list[str]
    score: float | None
    max_score: float | None
    seed: int
    version: str | None
    isolation: str
    warning: str | None
    exercises: list[Row]
    student: NotRequired[str]
    file: NotRequired[File]
    submitted_at: NotRequired[str | None]
    graded_at: NotRequired[str]
    seconds: NotRequired[float]
    retired: NotRequired[list[Row]]
    limits: NotRequired[Recorded]
    cell_errors: NotRequired[list[str]]
