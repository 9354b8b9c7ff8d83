"""The workflows, the devcontainer and what runs before a commit: what they promise of safety, and that they fit."""

import functools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from test_make import NEEDED, USEFUL
from test_requirements import PROMISED
from test_versions import PYTHONS

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / ".github" / "actions" / "course" / "action.yml"
READ = {"contents": "read"}
PUBLISH = {"pages": "write", "id-token": "write"}


@functools.cache
def parsed(path):
    return yaml.safe_load(path.read_text())


def triggers(path):
    return parsed(path)[True]  # YAML 1.1 takes `on` for a truth value


def steps(job):
    return job.get("steps", [])


def jobs():
    return [
        pytest.param(path, job, id=f"{path.stem}-{name}")
        for path in FILES
        for name, job in parsed(path)["jobs"].items()
    ]


def commands():
    """Every command that a workflow runs on the machine of the course."""
    return {step["with"]["run"] for case in jobs() for step in steps(case.values[1]) if step.get("with", {}).get("run")}


@pytest.mark.parametrize("path", [*FILES, ACTION], ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_and_say_their_version(path):
    used = re.findall(r"^ *(?:- )?uses: (.*)$", path.read_text(), re.MULTILINE)
    assert used
    for action in used:
        assert action.startswith("./.github/") or re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_an_action_has_one_version():
    used = {line.partition("@")[0]: set() for line in everywhere()}
    for line in everywhere():
        used[line.partition("@")[0]].add(line)
    assert {name: lines for name, lines in used.items() if len(lines) > 1} == {}


def everywhere():
    return [match for path in [*FILES, ACTION] for match in re.findall(r"uses: ([\w-]+/[\w/-]+@.*)", path.read_text())]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_workflow_may_read_and_its_superseded_runs_are_cancelled(path):
    assert parsed(path)["permissions"] == READ
    assert parsed(path)["concurrency"]["cancel-in-progress"] is True


@pytest.mark.parametrize(("path", "job"), jobs())
def test_a_job_that_may_write_runs_no_code_of_the_course(path, job):
    """Packages and cells run in the others, which have nothing to write with: no permission, no token on the disk."""
    if job.get("permissions", READ) == READ:
        for step in steps(job):
            if step["uses"].startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
    else:
        assert job["permissions"] == PUBLISH
        assert [step["uses"].partition("@")[0] for step in steps(job)] == ["actions/deploy-pages"]
        assert not any("run" in step for step in steps(job))


@pytest.mark.parametrize(("path", "job"), jobs())
def test_a_job_ends(path, job):
    assert "timeout-minutes" in job or job["uses"] == "./.github/workflows/test.yml"


def test_the_site_is_published_after_the_tests_alone():
    site = next(path for path in FILES if path.stem == "site")
    found = parsed(site)["jobs"]
    assert triggers(site) == {"push": {"branches": ["main"]}}
    assert found["test"]["uses"] == "./.github/workflows/test.yml"
    assert (found["build"]["needs"], found["deploy"]["needs"]) == ("test", "build")
    assert {"pull_request", "workflow_call"} == set(triggers(site.with_name("test.yml")))


def test_lint_and_the_slow_tests_run_somewhere():
    assert {"make lint", ".ci/run", "make book", "make test-all"} <= commands()
    assert "schedule" in triggers(next(path for path in FILES if path.stem == "nightly"))


def test_the_commands_are_those_that_readme_and_make_have():
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    made = {command.split()[1] for command in commands() if command.startswith("make ")}
    assert made <= {*targets}
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "make test"
    assert "make test    # set up everything, run the tests" in (ROOT / "README.md").read_text()


def test_every_promised_python_is_tried():
    matrix = next(parsed(path) for path in FILES if path.stem == "versions")["jobs"]["versions"]["strategy"]["matrix"]
    promised = list(dict.fromkeys(version.rpartition(".")[0] for version in PROMISED))
    assert matrix["python"] == promised == list(PYTHONS)


def test_the_cache_is_that_of_the_constraints():
    cache = next(step for step in parsed(ACTION)["runs"]["steps"] if step.get("uses", "").startswith("actions/cache@"))
    assert cache["with"]["key"] == "pip-${{ inputs.python }}-${{ hashFiles('constraints.txt') }}"


def container():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


def test_the_container_has_what_make_asks_for_and_a_torch_for_the_cpu():
    """Its account is an ordinary one, for whom `make system` installs nothing."""
    installed = (ROOT / ".devcontainer" / "Dockerfile").read_text()
    assert {*NEEDED, *USEFUL} <= set(re.search(r"apt-get install (.*?)&&", installed, re.DOTALL)[1].split())
    assert f"USER {container()['remoteUser']}\n" in installed
    assert container()["containerEnv"]["TORCH_INDEX"].endswith("/cpu")


def test_the_container_and_the_jobs_begin_with_one_python():
    default = parsed(ACTION)["inputs"]["python"]["default"]
    assert container()["build"]["args"]["PYTHON"] == f"${{localEnv:COURSE_PYTHON:{default}}}"
    assert f"ARG PYTHON={default}\n" in (ROOT / ".devcontainer" / "Dockerfile").read_text()


def test_dependabot_looks_wherever_there_is_something_to_renew():
    updates = {entry["package-ecosystem"]: entry for entry in parsed(ROOT / ".github" / "dependabot.yml")["updates"]}
    assert updates.keys() == {"github-actions", "pip"}
    assert updates["github-actions"]["directories"] == ["/", f"/{ACTION.parent.relative_to(ROOT)}"]


def test_what_runs_before_a_commit_is_ours_and_does_what_lint_does():
    """Local hooks alone: nothing is fetched. Each is a program of the environment, or a target of make."""
    repositories = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [entry["repo"] for entry in repositories] == ["local"]
    entries = [hook["entry"] for hook in repositories[0]["hooks"]]
    makefile = (ROOT / "Makefile").read_text()
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1].replace("$(BIN)", ".venv/bin")
    for line in lint.splitlines():
        assert any(entry.startswith(line.strip().removesuffix(" .")) for entry in entries), line
    assert "make exercises" in entries


@pytest.mark.skipif(not shutil.which("actionlint"), reason="no actionlint here")
def test_actionlint_finds_nothing():
    done = subprocess.run(["actionlint"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
