"""What other accounts of the machine get: nothing to read, nothing that is run."""

import datetime
import grp
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from build import STUDENTS, notebook, submit

from autograder.grading import classroom as settings
from autograder.grading.classroom import Classroom, is_open

root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to somebody else")
ROOT = Path(__file__).parents[2]
PLANT = "open({mark!r}, 'a').write(__file__)\n"


@pytest.fixture
def usual():
    """Files are readable by all unless somebody takes care, as on most machines."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder):
    return {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o7777 for path in folder.rglob("*")}


def test_what_is_graded_is_closed_to_other_accounts(course, usual):
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    (course.folder / "autograded").mkdir()  # as nbgrader makes it
    for name in ("gradebook.db", "report.html", "similar.html", "scores.csv"):
        (course.folder / name).touch()  # open to all, of an earlier version
    course.run("grade")
    for command in ("report", "similar", "export --output scores.csv"):
        course.run(*command.split())
    found = modes(course.folder)
    for name in ("gradebook.db", "report.html", "similar.html", "scores.csv", "autograded/grading.log"):
        assert found[name] == 0o600, name
    assert found["autograded"] == found["feedback"] == 0o700
    assert found["autograded/ada/patchify/verdict.json"] == 0o600
    assert found["feedback/ada/patchify/patchify.html"] == 0o644  # behind a closed folder: it is copied to the exchange
    assert os.umask(0o022) == 0o022  # as it was


@root
def test_a_group_that_the_class_names_may_read_and_write(course, usual):
    group = next(one for one in grp.getgrall() if one.gr_gid not in (0, os.getegid()))
    with open(course.folder / "nbgrader_config.py", "a") as config:
        config.write(f"c.Autograder.group = {group.gr_name!r}\n")
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    course.run("grade")
    for path in (course.folder / "gradebook.db", course.folder / "autograded", course.folder / "feedback",
                 course.folder / "autograded/ada/patchify/verdict.json"):  # fmt: skip
        assert path.stat().st_gid == group.gr_gid, path
        assert path.stat().st_mode & 0o077 == 0o070 if path.is_dir() else 0o060, path


def test_a_group_that_is_none_is_refused(course):
    with open(course.folder / "nbgrader_config.py", "a") as config:
        config.write("c.Autograder.group = 'nobody knows'\n")
    assert "which must be a group of this machine" in course.run("list", status=1).stderr


@root
def test_another_account_reads_nothing(course, usual):
    """Tried by another account, through a folder that everybody may enter."""
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    course.run("grade")
    for parent in [course.folder, *course.folder.parents]:
        if parent.stat().st_uid == 0 and "pytest" in str(parent):
            parent.chmod(0o755)
    assert is_open(course.folder / "nbgrader_config.py")
    look = (
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "find",
        course.folder,
        "-readable",
        "-type",
        "f",
    )
    read = subprocess.run(look, capture_output=True, text=True).stdout
    for name in ("verdict.json", "gradebook.db", "patchify.html", "grading.log"):
        assert name not in read
    told = course.run("doctor").stdout
    assert "every account can read nbgrader_config.py, submitted" in told and "mend it: chmod go-rwx ." in told


def test_a_new_class_has_128_bits_of_its_own(course, tmp_path):
    seeds = set()
    for name in ("one", "two"):
        course.run("new-class", tmp_path / name)
        text = (tmp_path / name / "nbgrader_config.py").read_text()
        seeds.add(int(text.split("c.Autograder.seed = ")[1].split()[0]))
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    assert len(seeds) == 2 and all(1 << 100 < seed < 1 << 128 for seed in seeds)


def test_seeds_of_students_are_as_large_as_the_classs(tmp_path):
    from traitlets.config import Config

    course = Classroom(tmp_path, Config({"Autograder": {"seed_per_student": True}}))
    assert course.seed_for("ada", 7) == 0xF87430CA  # as it always was: what sha256sum gives of "7 ada"
    large = course.seed_for("ada", 1 << 100)
    assert large != course.seed_for("bo", 1 << 100) and 1 << 90 < large < 1 << 128


def test_a_seed_of_128_bits_is_kept_in_the_verdict(course):
    path = submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    seed = (1 << 127) + 12345
    verdict = json.loads(course.run("grade-file", "--json", path, "--seed", seed).stdout)
    assert (verdict["seed"], verdict["score"]) == (seed, 12)


# ------------------------------------------------------------------------------------------ what is run


@pytest.fixture
def planted(tmp_path):
    """A folder of students' files, in which modules and a configuration lie that leave a mark when they are run."""
    folder, mark = tmp_path / "files", tmp_path / "mark"
    folder.mkdir()
    (folder / "patchify.ipynb").write_text(json.dumps(notebook(STUDENTS["ada"])))
    names = ("argparse", "json", "numpy", "nbgrader", "torch", "scipy", "dask", "traitlets", "ast", "signal", "tqdm",
             "sitecustomize", "usercustomize", "autograder_settings", "zlib", "random", "pathlib", "jinja2", "nh3",
             "sqlalchemy", "nbformat", "rfc3987_syntax", "contextlib", "subprocess", "socket", "bz2",
             # Not installed, and looked for by what is.
             "orjson", "colorama", "snappy", "lxml")  # fmt: skip
    for name in (*names, "nbgrader_config"):
        (folder / f"{name}.py").write_text(PLANT.format(mark=str(mark)))
    return folder, mark


@pytest.mark.parametrize("command", ["inspect patchify.ipynb", "grade-file patchify.ipynb", "--help"])
def test_nothing_is_run_that_lies_in_a_folder_of_students_files(planted, command):
    folder, mark = planted
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-m", "autograder", *command.split()], cwd=folder, env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert not mark.exists(), mark.read_text()
    assert done.returncode == 0, done.stderr
    if command.startswith("grade-file"):
        assert "12.00 / 12" in done.stdout
        assert "no class of yours was made or graded in this folder; its nbgrader_config.py is not read" in done.stderr


@pytest.mark.parametrize("command", ["grade-file", "doctor"])
@pytest.mark.parametrize("place", ["work/patchify.ipynb", "submitted/ada/patchify/patchify.ipynb"])
def test_a_folder_that_looks_like_a_class_is_none(planted, place, command):
    """As after an archive was unpacked: the folder is the teacher's, what lies in it is not."""
    folder, mark = planted
    (folder / place).parent.mkdir(parents=True)
    (folder / "patchify.ipynb").rename(folder / place)
    shutil.copytree(ROOT / "exercises", folder / "exercises")
    arguments = [place] if command == "grade-file" else []
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-m", "autograder", command, *arguments], cwd=folder, env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert not mark.exists(), mark.read_text()
    assert ("12.00 / 12" if command == "grade-file" else "grading     works") in done.stdout
    assert "its nbgrader_config.py is not read" in done.stderr


@pytest.mark.parametrize("made", ["new-class", "grade", "grade --dry-run"])
def test_a_class_is_known_once_it_was_made_or_graded(course, monkeypatch, tmp_path, made):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    if made == "new-class":
        course.run("new-class", tmp_path / "ours")
        course.folder = tmp_path / "ours"
    config = course.folder / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.Autograder.seed = 4321\n")
    if made != "new-class":
        unknown = course.run("grade-file", path, "--json")
        assert json.loads(unknown.stdout)["seed"] == 0 and "is not read" in unknown.stderr
        course.run(*made.split())
    known = course.run("grade-file", path, "--json")
    assert json.loads(known.stdout)["seed"] == 4321 and "is not read" not in known.stderr
    assert stat.S_IMODE((tmp_path / "state" / "autograder" / "classes").stat().st_mode) == 0o600


def test_without_a_home_a_class_is_graded_and_stays_unknown(course, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    course.run("grade")
    assert "is not read" in course.run("doctor").stderr


@pytest.mark.parametrize("command", ["inspect", "grade-file"])
@pytest.mark.parametrize("name", ["--isolation=none", "--iso=none", "--time-limit=3600", "--json", "-h"])
def test_the_name_of_a_file_is_no_option(course, name, command):
    """A shell puts the names of all files for `*`, and among them are students' files."""
    (course.folder / "patchify.ipynb").write_text(json.dumps(notebook(STUDENTS["ada"])))
    (course.folder / name).touch()
    done = course.run(command, name, "patchify.ipynb", status=2)
    assert done.stdout == "" and f"{name} is the name of a file here" in done.stderr and "write ./*" in done.stderr


@pytest.mark.parametrize("command", ["grade", "export", "report", "similar", "list", "doctor"])
def test_modules_in_the_folder_of_a_class_stand_for_nothing_installed(course, planted, command):
    """The class's configuration is run, which is documented; what lies beside it is not."""
    folder, mark = planted
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    course.run("grade")
    for path in folder.glob("*.py"):
        if path.stem != "nbgrader_config":
            (course.folder / path.name).write_bytes(path.read_bytes())
    arguments = ["--force"] if command == "grade" else []
    course.command(command, *arguments)
    assert not mark.exists(), mark.read_text()


def test_a_plugin_in_the_folder_of_a_class_is_found(course):
    (course.folder / "our_lateness.py").write_text(
        "from nbgrader.plugins import BasePlugin\n"
        "class Half(BasePlugin):\n"
        "    def late_submission_penalty(self, student, score, seconds):\n"
        "        from our_rate import RATE\n"
        "        return score * RATE\n"
    )
    (course.folder / "our_rate.py").write_text("RATE = 0.5")
    with open(course.folder / "nbgrader_config.py", "a") as config:
        config.write("c.AssignLatePenalties.plugin_class = 'our_lateness.Half'\n")
    path = submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    path.with_name("timestamp.txt").write_text("2030-01-02 12:00:00 UTC")
    with course.gradebook() as book:
        book.add_assignment("patchify", duedate=datetime.datetime(2030, 1, 1))
    course.command("grade")
    with course.gradebook() as book:
        assert book.find_submission("patchify", "ada").late_submission_penalty == 6


@pytest.mark.parametrize(
    "folder", ["submitted/mal", "submitted/mal/patchify", "downloaded/patchify/extracted", "feedback"]
)
def test_a_configuration_within_a_class_is_not_run(course, folder):
    inside = course.folder / folder
    inside.mkdir(parents=True)
    (inside / "nbgrader_config.py").write_text("raise SystemExit('ran')")
    course.folder = inside
    for command in ("grade", "list", "export"):
        assert "is not run: go there" in course.run(command, status=1).stderr


@root
@pytest.mark.parametrize("whose", ["file", "link", "folder", "open file", "open folder"])
def test_a_configuration_that_another_account_can_write_is_not_run(course, whose, monkeypatch):
    config = course.folder / "nbgrader_config.py"
    if whose == "link":
        config.symlink_to(config.rename(course.folder.with_name("ours.py")))
    if whose in ("file", "link", "folder"):
        os.chown(course.folder if whose == "folder" else config, 65534, 65534, follow_symlinks=False)
    else:
        (config if whose == "open file" else course.folder).chmod(0o777)
    done = course.run("list", status=1).stderr
    assert "is a program" in done
    if whose in ("file", "link", "folder"):
        monkeypatch.setenv(settings.TRUST, "nobody")
        assert "nothing has been graded" in course.run("list", status=1).stderr


def test_no_table_is_written_into_a_file_of_another_account(course, monkeypatch):
    """It would lie there for its owner to read, whatever its rights."""
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    course.run("grade")
    (course.folder / "scores.csv").touch()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    done = course.run("export", "--output", "scores.csv", status=1)
    assert "scores.csv belongs to another account" in done.stderr
    assert (course.folder / "scores.csv").read_text() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("kind", ["pipe", "link", "link to a file that is not there", "file"])
@pytest.mark.parametrize("seen", [True, False])
def test_no_table_is_written_where_another_account_put_something(course, monkeypatch, kind, seen):
    """Into a pipe that is read, or through a link to the teacher's own file, be it put there at the last moment."""
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    course.run("grade")
    path, mine = course.folder / "scores.csv", course.folder / "mine.txt"
    mine.write_text("mine")
    if kind == "pipe":
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    elif kind == "file":
        path.touch()
    else:
        path.symlink_to(mine if kind == "link" else course.folder / "made.txt")
    os.chown(path, 65534, 65534, follow_symlinks=False)
    if not seen:
        lstat = Path.lstat

        def nothing_yet(self):
            if self.name == "scores.csv":
                raise FileNotFoundError
            return lstat(self)

        monkeypatch.setattr(Path, "lstat", nothing_yet)
    done = course.run("export", "--output", "scores.csv", status=1)
    assert "scores.csv belongs to another account" in done.stderr or "scores.csv cannot be written" in done.stderr
    assert mine.read_text() == "mine" and not (course.folder / "made.txt").exists()
    if kind == "pipe":
        assert os.read(reader, 10) == b""
        os.close(reader)


def test_a_table_goes_through_pipes_and_links_of_ones_own(course):
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    course.run("grade")
    (course.folder / "link.csv").symlink_to("there.csv")
    course.run("export", "--output", "link.csv")
    assert "ada" in (course.folder / "there.csv").read_text()
    course.run("export", "--output", "/dev/null")
    done = course.command("export", "--output", "/dev/stdout")
    assert "ada" in done.stdout


def test_a_list_of_classes_that_lies_in_the_folder_is_none(course, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", ".")
    monkeypatch.setenv("HOME", str(course.folder / "home"))
    (course.folder / "autograder").mkdir()
    (course.folder / "autograder" / "classes").write_text(json.dumps(str(course.folder.resolve())) + "\n")
    assert "is not read" in course.run("doctor").stderr


def test_reading_the_configuration_again_changes_nothing(course, monkeypatch):
    """A process that reads it a thousand times could start no other: the PATH grew each time."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    course.run("doctor")
    once = os.environ["PATH"]
    course.run("doctor")
    assert os.environ["PATH"] == once and once.endswith(":/usr/bin:/bin")
