"""Spreading submissions over Dask workers."""

import contextlib
import itertools
import logging
import time

import dask
from distributed import Client, LocalCluster, as_completed

from autograder.classroom import grade_handed
from autograder.course import CommandError
from autograder.grade import not_graded
from autograder.sandbox import SandboxUnavailable

AHEAD = 3  # submissions that wait at the scheduler for each worker, so that none is idle
PATIENCE = 30  # seconds for a scheduler to answer
POLL = 0.005  # seconds between two looks
TRIES = 5  # for a submission whose scheduler or worker goes away


def spread(todo, task, limits, workers, scheduler=None):
    """Grade submissions on Dask workers.

    Parameters
    ----------
    todo : list of Handed
    task : function
        `task(handed)` gives the arguments of `grade_handed` but for the limits.
    limits : Limits
    workers : int
        Of a local cluster.
    scheduler : str, optional
        Address of a running one instead.

    Yields
    ------
    handed, verdict, submission, seconds
        In the order in which they are done.
    """
    logging.getLogger("distributed").setLevel(logging.ERROR)
    settings = {"distributed.scheduler.allowed-failures": 2, "distributed.comm.timeouts.connect": PATIENCE}
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        client = stack.enter_context(_client(stack, workers, scheduler))
        yield from _run(client, todo, task, limits)


def _client(stack, workers, scheduler):
    if scheduler:
        try:
            return Client(scheduler, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise CommandError(f"no Dask scheduler answers at {scheduler}") from error
    try:
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        )
    except (RuntimeError, OSError) as error:
        raise CommandError(f"no local Dask cluster could be started ({error}); --workers 1 does without") from error
    return Client(stack.enter_context(cluster), set_as_default=False)


def _run(client, todo, task, limits):
    left = iter(todo)
    doing, tries = {}, {}
    finished = as_completed(loop=client.loop, with_results=True, raise_errors=False)

    def submit(several):
        for one in several:
            tries[one] = tries.get(one, 0) + 1
            future = client.submit(grade_handed, *task(one), limits, pure=False)
            doing[future] = one
            finished.add(future)

    submit(itertools.islice(left, AHEAD * max(1, sum(client.nthreads().values()))))
    while doing:
        while not finished.has_ready():
            time.sleep(POLL)
            if client.status == "closed":
                raise CommandError("the Dask scheduler has gone: start it, and the same command goes on from there")
            # A scheduler that was started again knows nothing of what the one before it was given.
            submit([doing.pop(future) for future in list(doing) if future.status == "lost"])
        future, result = next(finished)
        one = doing.pop(future, None)
        if one is None:
            continue
        submit(itertools.islice(left, 1))
        if future.status == "finished":
            yield one, *result
        elif future.status == "error" and isinstance(result[1], SandboxUnavailable):
            raise result[1]
        elif future.status != "error" and tries[one] < TRIES:
            submit([one])
        else:
            lost = "its worker was lost each time it was graded: has it enough memory?"
            reason = f"{lost} ({type(result[1]).__name__})" if future.status == "error" else lost
            yield one, not_graded(reason, assignment=one.assignment, seed=one.seed, limits=limits), None, 0.0
