"""Spreading submissions over the workers of a Dask scheduler, for more than one machine."""

import asyncio
import logging
import time
from collections import Counter

import dask
from distributed import Client, Security, as_completed
from distributed.core import rpc

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
            asyncio.run(_identity(scheduler))
            client = Client(scheduler, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, MemoryError) as error:  # what is no scheduler may seem to promise exabytes
            raise CommandError(f"no Dask scheduler answers at {scheduler}") from error
        with client:
            yield from _Run(client, todo, task, limits).results()


async def _identity(scheduler):
    """Ask a scheduler who it is: a `Client` waits for ever for what takes the connection and says nothing."""
    async with rpc(scheduler, connection_args=Security().get_connection_args("client")) as asked:
        await asyncio.wait_for(asked.identity(), PATIENCE)


class _Run:
    """The submissions of a run on their way over a cluster, in batches.

    Attributes
    ----------
    left : list
        Those that no worker has been given, the next one last.
    doing : dict
        Future -> the submissions of its batch.
    tries : Counter
        Submission -> how often it was given to a worker.
    ended : list
        Results of those that no worker will grade: (submission, verdict, None, 0.0).
    proved : bool
        Whether some worker has graded: then what the sandbox lacks is one worker's matter.
    """

    def __init__(self, client, todo, task, limits):
        self.client, self.task, self.limits = client, task, limits
        self.left, self.doing, self.tries, self.ended, self.proved = [*reversed(todo)], {}, Counter(), [], False
        self.workers = max(1, sum(client.nthreads().values()))
        self.size = max(1, min(BATCH, len(todo) // (4 * self.workers)))
        self.finished = as_completed(loop=client.loop, with_results=True, raise_errors=False)

    def results(self):
        """Each submission with its verdict, as soon as there is one."""
        for _ in range(AHEAD * self.workers):
            self._submit(self._following())
        while self.doing or self.ended:
            while self.ended:
                yield self.ended.pop()
            self._wait()
            if not self.doing:
                continue
            future, result = next(self.finished)
            batch = self.doing.pop(future, ())
            self._submit(self._following())
            if future.status == "finished":
                self.proved = True
                for handed, graded in zip(batch, result, strict=False):
                    yield handed, *graded
            else:
                self._retry(batch, result[1] if future.status == "error" else None)

    def _following(self):
        """The next batch: not many, and not many bytes."""
        batch, weight = [], 0
        while self.left and len(batch) < self.size and weight < HEAVY:
            batch.append(self.left.pop())
            weight += batch[-1].size
        return batch

    def _submit(self, batch):
        tasks = {}
        for handed in batch:
            try:
                tasks[handed] = self.task(handed)
            except Exception as error:
                self._end(handed, fault("reading it", error))
        if tasks:
            self.tries.update(tasks.keys())
            future = self.client.submit(_grade_batch, [*tasks.values()], self.limits, pure=False)
            self.doing[future] = [*tasks]
            self.finished.add(future)

    def _wait(self):
        """Until a batch is through."""
        while self.doing and not self.finished.has_ready():
            time.sleep(POLL)
            if self.client.status == "closed":
                raise CommandError("the Dask scheduler has gone: start it, and the same command goes on from there")
            # A scheduler that was started again knows nothing of what the one before it was given.
            for future in [future for future in self.doing if future.status == "lost"]:
                self._submit(self.doing.pop(future))

    def _retry(self, batch, error):
        """Give the submissions of a batch that failed to workers again, each on its own, or end them."""
        if isinstance(error, SandboxUnavailable) and not self.proved:
            raise error
        for handed in batch:  # on its own, so that none suffers for its neighbour
            if isinstance(error, SandboxUnavailable):
                self._end(handed, f"the sandbox could not be had: {error}")
            elif len(batch) > 1 or (error is None and self.tries[handed] < TRIES):
                self._submit([handed])
            else:
                self._end(handed, f"its worker was lost each time it was graded ({error!r}): has it enough memory?")

    def _end(self, handed, reason):
        verdict = not_graded(reason, assignment=handed.assignment, seed=handed.seed, limits=self.limits)
        self.ended.append((handed, verdict, None, 0.0))


def _grade_batch(tasks, limits):
    prove_sandbox(limits)
    return [grade_task(task, limits) for task in tasks]
