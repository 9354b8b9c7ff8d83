"""The commands: `python -m autograder COMMAND`.

Each imports what it needs when it runs: a learner who looks at a file needs neither Dask nor nbgrader.
"""

import argparse
import contextlib
import errno
import json
import os
import signal
import stat
import sys
from pathlib import Path

from traitlets.config import Config

from autograder import clean
from autograder.course import PACKAGE
from autograder.grading.classroom import CONFIG, Classroom, CommandError, is_open
from autograder.judging.exercise import CHAPTERS


def main(arguments=None):
    """Run a command; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = _parser()
    for argument in arguments:
        if argument.startswith("-") and len(argument) > 1 and os.path.lexists(argument):
            parser.error(f"{argument} is the name of a file here, and would be an option: write ./* and not *")
    options = parser.parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows fewer characters than a student's name
    try:
        classroom = options.classroom()
        with classroom.private():
            return options.run(options, classroom) or 0
    except CommandError as error:
        clean.say(f"autograder {options.command}: {clean.line(error)}", error=True)
        return 1
    except ModuleNotFoundError as error:  # what a learner's installation lacks
        needs = f"this needs {error.name}, which the extra `grade` of {PACKAGE} installs"
        clean.say(f"autograder {options.command}: {needs}", error=True)
        return 1
    except BrokenPipeError:  # `| head` has read enough
        sys.stderr.close()
        return 0
    except OSError as error:  # a full disk, a folder that is someone else's
        where = f"{error.filename}: " if error.filename else ""
        clean.say(f"autograder {options.command}: {clean.line(f'{where}{error.strerror or error}')}", error=True)
        return 1
    except KeyboardInterrupt:
        clean.say(f"autograder {options.command}: stopped", error=True)
        return 1


class _Parser(argparse.ArgumentParser):
    """One whose complaints, which quote what was typed or what a `*` became, leave a terminal as it is."""

    def error(self, message):
        self.exit(2, f"{self.format_usage()}{self.prog}: error: {clean.line(message)}\n")


def _parser():
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--gradebook", metavar="URL", type=_url, help="default: the course's (nbgrader_config.py)")
    common.add_argument("--assignment", metavar="NAME", choices=CHAPTERS, help=f"one of {', '.join(CHAPTERS)}")
    common.add_argument("--isolation", choices=("bubblewrap", "none"), default="bubblewrap",
                        help="none: the code of a submission can read and write your files")  # fmt: skip
    common.add_argument("--seed", metavar="N", type=_number(int, 0), help="what hidden cases are drawn from")
    limits = argparse.ArgumentParser(add_help=False)
    limits.add_argument("--time-limit", metavar="S", type=_number(float, 0.1, 3600), default=5.0,
                        help="seconds for one call (default 5)")  # fmt: skip
    limits.add_argument("--memory-limit", metavar="MB", type=_number(int, 64, 1 << 20), default=1024,
                        help="for one submission (default 1024)")  # fmt: skip

    called = "autograder" if Path(sys.argv[0]).name == "autograder" else "python -m autograder"
    parser = _Parser(prog=called, description="Grade the course's exercises.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, run, help, *parents):
        made = commands.add_parser(name, help=help, description=help, parents=[common, *parents])
        made.set_defaults(run=run, classroom=Classroom.here)
        return made

    grade = command("grade", _grade, "Grade what is new in submitted/ and record it.", limits)
    grade.add_argument("--submitted", metavar="DIR", type=_path, help="default: the course's submitted/")
    grade.add_argument("--student", metavar="ID", type=_text, help="only this one")
    grade.add_argument("--workers", metavar="N", type=_number(int, 1, 1024), help="processes (default: the cores)")
    grade.add_argument("--scheduler", metavar="ADDRESS", type=_text, help="of a running Dask scheduler")
    grade.add_argument("--force", action="store_true", help="grade what has not changed, too")
    grade.add_argument("--dry-run", action="store_true", help="write nothing; show whose grade would change")

    single = command("grade-file", _grade_file, "Grade one notebook; nothing is recorded.", limits)
    single.add_argument("notebook", metavar="NOTEBOOK", type=_path)
    single.add_argument("--json", action="store_true", help="one object on stdout and nothing else")
    single.set_defaults(classroom=_no_class)

    look = command("inspect", _inspect, "Show what a grader would find in a notebook; nothing in it is run.")
    look.add_argument("notebook", metavar="NOTEBOOK", type=_path)
    look.add_argument("--json", action="store_true", help="one object on stdout and nothing else")
    look.set_defaults(classroom=_no_class)

    export = command("export", _export, "Write the scores as CSV.")
    export.add_argument("--format", choices=("nbgrader", "canvas", "moodle"), default="nbgrader")
    export.add_argument("--output", metavar="PATH", type=_path, help="default: stdout")

    shown = command("list", _list, "Show who was graded when, with which seed and version of the tests.")
    shown.add_argument("--student", metavar="ID", type=_text, help="only this one")

    gone = command("forget", _forget, "Remove all data of a student: files, gradebook, log.")
    gone.add_argument("student", metavar="STUDENT", type=_text)
    gone.add_argument("--yes", action="store_true", help="do it; without, only what would be removed is shown")

    report = command("report", _report, "Show how the class did.")
    report.add_argument("--output", metavar="PATH", type=_path, help="default: report.html (with --json: stdout)")
    report.add_argument("--json", action="store_true", help="JSON instead of a page")

    begin = command("new-class", _new_class, "Make the folder of a class, with a seed of its own.")
    begin.add_argument("folder", metavar="FOLDER", type=_path)
    begin.set_defaults(classroom=_no_class)

    alike = command("similar", _similar, "Show pairs of submissions that are nearly the same: a place to look.")
    alike.add_argument(
        "--threshold", metavar="SHARE", type=_number(float, 0, 1), default=0.5, help="0 to 1 (default 0.5)"
    )
    alike.add_argument("--output", metavar="PATH", type=_path, help="default: similar.html")

    command("doctor", _doctor, "Show what works on this machine.").set_defaults(classroom=Classroom.known)
    return parser


def _no_class():
    """For a command that needs no class: nothing in the folder is run, its configuration neither."""
    return Classroom(Path.cwd(), Config())


def _number(kind, least, most=None):
    def number(text):
        value = kind(text)
        if not value >= least or (most is not None and value > most):
            raise ValueError
        return value

    # What argparse calls it.
    number.__name__ = f"number, {least:g} or more," if most is None else f"number from {least:g} to {most},"
    return number


def _text(text):
    if not text:  # of a variable that is not set, it would mean all students, or the current folder
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _path(text):
    return Path(_text(text))


def _url(text):
    if "://" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no URL; write sqlite:///gradebook.db or postgresql://…")
    if text.startswith("sqlite:") and text.partition("://")[2] in ("", "/", "/:memory:"):
        raise argparse.ArgumentTypeError(f"{text!r} names no file; write sqlite:///gradebook.db")
    return text


# ------------------------------------------------------------------------------------------ grade


def _grade(options, classroom):
    from autograder.course import version
    from autograder.grading.run import grade_class, rehearse

    if classroom.course_version not in ("", version()):
        raise CommandError(
            f"this class keeps to version {classroom.course_version} of the course (nbgrader_config.py), and this is "
            f"{version()}: CHANGELOG.md says what changes a grade"
        )
    if _seed(options, classroom) and is_open(classroom.root / CONFIG):
        clean.say(
            f"warning: every account of this machine can read the seed in {CONFIG}: chmod 600 {CONFIG}", error=True
        )
    # Not by raising SIGINT: a job in the background ignores that, as it should, and must still be stopped by `kill`
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _warn(options)
    what = {
        "limits": _limits(options, classroom),
        "seed": _seed(options, classroom),
        "assignment": options.assignment,
        "student": options.student,
        "submitted": options.submitted,
        "workers": options.workers,
        "scheduler": options.scheduler,
        "force": options.force,
    }
    url, changes = options.gradebook or classroom.gradebook, None
    if options.dry_run:
        verdicts, changes = rehearse(classroom, url, **what)
    else:
        from autograder.reports.feedback import feedback

        verdicts = grade_class(classroom, url, feedback=feedback, **what)
    clean.say(_summary(verdicts))
    if changes is not None:
        clean.say(f"\n{_told(changes)}")
    partly = sum(verdict["status"] == "partly graded" for verdict in verdicts)
    if partly:
        raise CommandError(f"{partly} only partly graded: the reasons stand above; the same command tries them again")


def _told(changes):
    """The table of what a dry run would change."""
    if not changes:
        return "Dry run: nothing is recorded, and nothing would change."
    rows = [("student", "assignment", "exercise", "recorded", "would be", "")]
    for change in changes:
        scores = ["–" if change[key] is None else f"{change[key]:.2f}" for key in ("before", "after")]
        note = "" if change["manual"] is None else f"a person gave {change['manual']:.2f}: that stays"
        rows.append((change["student"], change["assignment"], change["exercise"], *scores, note))
    whose = len({change["student"] for change in changes})
    return f"Dry run: nothing is recorded. Of {whose} student{'s' * (whose != 1)} would change:\n{_table(rows)}"


def _summary(verdicts):
    """The table of every submission with its status, and the counts."""
    rows = [("student", "assignment", "status", "score", "")]
    for verdict in verdicts:
        notes = [] if verdict["fresh"] else ["unchanged"]
        notes += [verdict["reason"]] if verdict["reason"] else []
        notes += [f"mended: {len(verdict['repairs'])}"] if verdict["repairs"] else []
        rows.append(
            (verdict["student"], verdict["assignment"] or "–", verdict["status"], _score(verdict), "; ".join(notes))
        )
    counts = {}
    for verdict in verdicts:
        counts[verdict["status"]] = counts.get(verdict["status"], 0) + 1
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    fresh = sum(verdict["fresh"] for verdict in verdicts)
    return f"{_table(rows)}\n\n{len(verdicts)} submission{'s' * (len(verdicts) != 1)}: {told}; {fresh} in this run"


def _table(rows):
    """Rows of text in columns."""
    rows = [[*map(clean.line, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _score(verdict):
    return "–" if verdict["score"] is None else f"{verdict['score']:.2f} / {verdict['max_score']:g}"


def _with_points(row, status):
    """A status, with the points where there are any."""
    return status if row["score"] is None else f"{status}, {_score(row)} points"


def _limits(options, classroom):
    from autograder.grading.grade import Limits

    return Limits(options.isolation, options.time_limit, options.memory_limit, classroom.allowed_system_calls)


def _seed(options, classroom):
    return classroom.seed if options.seed is None else options.seed


def _warn(options):
    if options.isolation == "none":
        clean.say("warning: without isolation the code of a submission can read and write your files", error=True)


# ------------------------------------------------------------------------------------------ one file


def _bytes(path):
    from autograder.notebooks.read import bounded

    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a pipe would wait for ever
            if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                raise CommandError(f"{path} is no file")
            return bounded(file)
    except OSError as error:
        reason = f"{path} is no file" if error.errno == errno.ENXIO else f"{path} cannot be read: {error.strerror}"
        raise CommandError(reason) from error


def _grade_file(options, classroom):
    from autograder.grading.grade import close_sandbox, documented, grade, told_once
    from autograder.sandbox.host import SandboxUnavailable

    data = _bytes(options.notebook)
    classroom = Classroom.known()  # after that: who named no notebook need not hear of the seed
    _warn(options)
    try:
        verdict, _ = grade(
            data,
            assignment=options.assignment,
            filename=clean.name(options.notebook),
            seed=_seed(options, classroom),
            limits=_limits(options, classroom),
        )
    except SandboxUnavailable as error:
        raise CommandError(str(error)) from error
    finally:
        close_sandbox()
    if options.json:
        clean.say(json.dumps(documented(verdict), indent=1))
        return
    clean.say(f"{verdict['assignment'] or clean.name(options.notebook)}: {_with_points(verdict, verdict['status'])}")
    for line in (*filter(None, [verdict["reason"]]), *verdict["repairs"], *verdict["cell_errors"]):
        clean.say(f"  {line}")
    for row in verdict["exercises"]:
        clean.say(f"\n{row['name']}: {_with_points(row, row['status'] or 'not graded')}")
        for failure in told_once(row["failures"]):
            clean.say("  " + failure["message"].replace("\n", "\n  "))


def _inspect(options, classroom):
    from autograder.notebooks.read import inspect

    found = inspect(_bytes(options.notebook), options.assignment, clean.name(options.notebook))
    if options.json:
        clean.say(json.dumps(found, indent=1))
        return
    clean.say(
        f"{clean.name(options.notebook)}: {found['status']}" + (f", {found['reason']}" if found["reason"] else "")
    )
    if found["repairs"]:
        clean.say("A grader would mend:", *(f"  {repair}" for repair in found["repairs"]))
    for row in found["exercises"]:
        state = "written" if row["written"] else "not written yet" if row["found"] else f"not found: {row['note']}"
        clean.say(f"{row['name']}: {state}")


# ------------------------------------------------------------------------------------------ the class


def _list(options, classroom):
    from autograder.grading.kept import verdicts

    rows = [("student", "assignment", "status", "score", "seed", "version", "graded", "")]
    for verdict in verdicts(classroom, options.assignment, options.student):
        notes = [] if verdict["current"] else ["the tests have changed since"]
        notes += filter(None, [verdict["reason"], verdict["warning"]])
        about = (
            verdict["student"],
            verdict["assignment"],
            verdict["status"],
            _score(verdict),
            verdict["seed"],
            verdict["version"] or "–",
        )
        rows.append((*about, verdict["graded_at"], "; ".join(notes)))
    clean.say(_table(rows))


def _forget(options, classroom):
    from autograder.grading.forget import forget

    found = forget(classroom, options.gradebook or classroom.gradebook, options.student, really=options.yes)
    clean.say("Removed:" if options.yes else "Would be removed:", *(f"  {line}" for line in found))
    clean.say("Reports and CSV files that were written before, nbgrader's exchange and your backups are not looked at.")
    if not options.yes:
        raise CommandError("nothing has been removed: add --yes to do it")


def _export(options, classroom):
    from autograder.lms.export import export

    _output(
        export(classroom, options.gradebook or classroom.gradebook, options.format, options.assignment),
        options.output,
        classroom,
    )


def _report(options, classroom):
    from autograder.reports.report import as_page, collect

    report = collect(classroom, options.gradebook or classroom.gradebook, options.assignment)
    if options.json:
        _output(json.dumps(report, indent=1) + "\n", options.output, classroom)
    else:
        path = options.output or Path("report.html")
        _output(as_page(report), path, classroom)
        clean.say(path)


def _similar(options, classroom):
    from autograder.reports.similar import as_page, similar

    pairs, left_out = similar(classroom, options.threshold, options.assignment)
    path = options.output or Path("similar.html")
    _output(as_page(pairs, left_out), path, classroom)
    for pair in pairs:
        clean.say(f"{pair['assignment']}: {' and '.join(pair['students'])}, {pair['similarity']:.0%}")
    if left_out:
        clean.say(f"… and {left_out} more pairs that are less similar")
    clean.say(f"{len(pairs)} pair{'s' * (len(pairs) != 1)} to look at, which is no verdict: {path}")


def _output(text, path, classroom):
    if path is None:
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError as error:  # two ids would become one
            known = f"standard output knows {error.encoding} alone and not {error.object[error.start]!a}"
            raise CommandError(f"{known}: name a file with --output") from error
        sys.stdout.write(text)
        return
    try:
        with _opened(path, classroom) as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error


def _opened(path, classroom):
    """A file to be written, closed to other accounts; a pipe or a terminal stays as it is.

    Nothing is written into what another account has put there, nor through a link of theirs.
    """

    def refuse_others(about):
        harmless = stat.S_ISCHR(about.st_mode) or (stat.S_ISLNK(about.st_mode) and about.st_uid == 0)  # as in /dev
        shared = classroom.group is not None and about.st_gid == classroom.group
        if not (harmless or shared or about.st_uid == os.geteuid()):
            raise CommandError(f"{path} belongs to another account, which could read what is written: remove it first")

    link = False
    with contextlib.suppress(FileNotFoundError):
        about = path.lstat()
        refuse_others(about)
        link = stat.S_ISLNK(about.st_mode)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | (0 if link else os.O_NOFOLLOW), 0o600)
    file = open(handle, "w", encoding="utf-8", newline="")  # noqa: SIM115, whoever calls closes it
    try:
        refuse_others(os.fstat(handle))  # it may have been put there meanwhile
        if stat.S_ISREG(os.fstat(handle).st_mode):  # open to all, perhaps, from an earlier version
            os.ftruncate(handle, 0)
            classroom.close(path)
    except BaseException:
        file.close()
        raise
    return file


def _new_class(options, classroom):
    from autograder.grading.new_class import new_class

    new_class(options.folder)
    clean.say(
        f"{options.folder} is ready: notebooks to hand out in exercises/, what comes back goes to "
        "submitted/<student>/<chapter>/.\nRun the commands from there. Its seed stands in nbgrader_config.py: "
        "keep it to yourself."
    )


def _doctor(options, classroom):
    from autograder.grading.doctor import doctor

    return doctor(options, classroom)


if __name__ == "__main__":
    sys.exit(main())
