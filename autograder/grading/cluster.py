"""Spreading submissions over the workers of a Dask scheduler, for more than one machine."""

import logging
import time
from collections import Counter

import dask
from distributed import Client, as_completed

from autograder.grading.classroom import CommandError
from autograder.grading.grade import fault, grade_task, not_graded, prove_sandbox
from autograder.sandbox.host import SandboxUnavailable

BATCH = 8  # submissions that travel together at most
HEAVY = 4 << 20  # bytes of notebooks with which a batch is full: pictures make a notebook large
AHEAD = 3  # batches at the scheduler for each worker, so that none is idle
PATIENCE = 30  # seconds for a scheduler to answer
SETTINGS = {
    "distributed.scheduler.allowed-failures": 2,
    "distributed.comm.timeouts.connect": PATIENCE,
    "distributed.admin.large-graph-warning-threshold": "1 GB",  # not for the learner's pictures
    # What Dask does for long computations, hundreds of times a second, costs more here than it tells.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.worker.memory.monitor-interval": "1s",
}
POLL = 0.005  # seconds between two looks
TRIES = 5  # for a submission whose scheduler or worker goes away


def spread(todo, task, limits, scheduler):
    """Grade submissions on Dask workers.

    Parameters
    ----------
    todo : list of Handed
    task : function
        `task(handed)` gives the `Task`.
    limits : Limits
    scheduler : str
        Its address.

    Yields
    ------
    handed, verdict, submission, seconds
        In the order in which they are done.
    """
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with dask.config.set(SETTINGS):
        try:
            client = Client(scheduler, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise CommandError(f"no Dask scheduler answers at {scheduler}") from error
        with client:
            yield from _run(client, todo, task, limits)


def _run(client, todo, task, limits):
    left, ended, proved = list(reversed(todo)), [], False
    workers = max(1, sum(client.nthreads().values()))
    size = max(1, min(BATCH, len(todo) // (4 * workers)))
    doing, tries = {}, Counter()
    finished = as_completed(loop=client.loop, with_results=True, raise_errors=False)

    def submit(batch):
        tasks = {}
        for one in batch:
            try:
                tasks[one] = task(one)
            except Exception as error:
                end(one, fault("reading it", error))
        if tasks:
            tries.update(tasks.keys())
            future = client.submit(_grade_batch, [*tasks.values()], limits, pure=False)
            doing[future] = [*tasks]
            finished.add(future)

    def end(one, reason):
        verdict = not_graded(reason, assignment=one.assignment, seed=one.seed, limits=limits)
        ended.append((one, verdict, None, 0.0))

    def following():
        batch, weight = [], 0
        while left and len(batch) < size and weight < HEAVY:
            batch.append(left.pop())
            weight += batch[-1].size
        return batch

    for _ in range(AHEAD * workers):
        submit(following())
    while doing or ended:
        while ended:
            yield ended.pop()
        while doing and not finished.has_ready():
            time.sleep(POLL)
            if client.status == "closed":
                raise CommandError("the Dask scheduler has gone: start it, and the same command goes on from there")
            # A scheduler that was started again knows nothing of what the one before it was given.
            for future in [future for future in doing if future.status == "lost"]:
                submit(doing.pop(future))
        if not doing:
            continue
        future, result = next(finished)
        batch = doing.pop(future, ())
        submit(following())
        if future.status == "finished":
            proved = True
            for one, graded in zip(batch, result, strict=False):
                yield one, *graded
            continue
        error = result[1] if future.status == "error" else None
        if isinstance(error, SandboxUnavailable) and not proved:
            raise error
        for one in batch:  # on its own, so that none suffers for its neighbour
            if isinstance(error, SandboxUnavailable):
                end(one, f"the sandbox could not be had: {error}")
            elif len(batch) > 1 or (error is None and tries[one] < TRIES):
                submit([one])
            else:
                end(one, f"its worker was lost each time it was graded ({error!r}): has it enough memory?")


def _grade_batch(tasks, limits):
    prove_sandbox(limits)
    return [grade_task(task, limits) for task in tasks]
