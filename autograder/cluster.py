"""Spreading submissions over Dask workers."""

import contextlib
import logging
from concurrent.futures import CancelledError

import dask
from distributed import Client, LocalCluster, as_completed
from distributed.scheduler import KilledWorker

from autograder.classroom import grade_handed
from autograder.course import CommandError
from autograder.grade import not_graded

AHEAD = 3  # submissions that wait at the scheduler for each worker, so that none is idle
PATIENCE = 30  # seconds for a scheduler to answer
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
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
    )
    return Client(stack.enter_context(cluster), set_as_default=False)


def _run(client, todo, task, limits):
    left = iter(todo)
    doing, tries = {}, {}
    finished = as_completed(loop=client.loop)

    def submit(one):
        tries[one] = tries.get(one, 0) + 1
        future = client.submit(grade_handed, *task(one), limits, pure=False)
        doing[future] = one
        finished.add(future)

    for one, _ in zip(left, range(AHEAD * max(1, sum(client.nthreads().values()))), strict=False):
        submit(one)
    while doing:
        future = next(finished)
        one = doing.pop(future)
        try:
            yield one, *future.result()
        except (CancelledError, KilledWorker) as error:
            if tries[one] < TRIES and not isinstance(error, KilledWorker):
                submit(one)  # the scheduler forgot it: it was started again
                continue
            reason = "its workers were lost each time it was graded: it may need more memory than they have"
            yield one, not_graded(reason, assignment=one.assignment, seed=one.seed, limits=limits), None, 0.0
        for following in left:
            submit(following)
            break
