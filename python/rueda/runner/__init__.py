# SPDX-License-Identifier: Apache-2.0
"""Run a function on several ranks from a script or a notebook: :func:`run`."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Callable

__all__ = ["RankError", "run"]


class RankError(RuntimeError):
    """A rank ended without a result, and without an exception that could be brought here."""

    def __init__(self, words: str, rank: int | None = None, code: int | None = None) -> None:
        super().__init__(words)
        self.rank = rank  #: which one, where that is known
        self.code = code  #: the exit code of ruedarun, where that is known

    def __reduce__(self) -> tuple:
        return RankError, (self.args[0], self.rank, self.code)


class RankTraceback(Exception):  # noqa: N818 -- it is no error, it says where one was
    """The traceback of another process, as the cause of what is raised here."""

    __module__ = "rueda"  # the name that Python prints before "on rank 1"

    def __init__(self, rank: int, text: str) -> None:
        super().__init__(rank, text)
        self.rank, self.text = rank, text

    def __str__(self) -> str:
        return f"on rank {self.rank}\n\n{self.text.rstrip()}"


def run(
    func: Callable[..., Any],
    args: tuple = (),
    kwargs: Mapping[str, Any] | None = None,
    np: int = 2,
    hosts: str | Iterable[str] | None = None,
    *,
    hostfile: str | None = None,
    executable: str | None = None,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> list[Any]:
    """Call ``func(*args, **kwargs)`` on ``np`` ranks, and return what they return.

    The list is in the order of the ranks. ``hosts`` and ``hostfile`` are those of
    ``ruedarun``, which starts the ranks, and so is every other keyword:
    ``start_timeout=60`` is ``--start-timeout 60``, ``verbose=True`` is
    ``--verbose``. ``executable`` is the Python of the ranks, ours unless it is
    given; ``env`` are variables that they have in addition.

    The first exception of a rank ends the job, and is raised here; its cause
    shows the traceback of the rank. A rank that ends otherwise (killed, out of
    memory) raises :class:`RankError`, options that cannot be :class:`ValueError`.
    Ctrl-C ends all ranks.

    With ``min_np``, ``max_np``, ``host_discovery_script`` or ``listen`` the job is an elastic
    one (docs/elastic.md): ``func`` is called in each process that joins it, processes that
    fail are done without, and the list is that of ranks 0 to ``min_np - 1`` at the end.

    Functions of a script, a notebook or another function are sent by
    cloudpickle. Ranks of other hosts connect to this process, so it must be
    reachable from there; only ranks that know the key of the run are
    accepted. What they send is signed, not encrypted.
    """
    words = words_of({"num_proc": np, "hosts": hosts, "hostfile": hostfile, **options})
    return run_words(func, tuple(args), dict(kwargs or {}), np, words, executable, env)


# What False means; for all other options it is as if they were not there.
_NEGATIONS = {
    "autotune": ["--no-autotune"],
    "hierarchical_allgather": ["--no-hierarchical-allgather"],
    "hierarchical_allreduce": ["--no-hierarchical-allreduce"],
    "log_with_timestamp": ["--log-without-timestamp"],
    "mpi_threads_disable": ["--no-mpi-threads-disable"],
    "stall_check": ["--no-stall-check"],
    "timeline_mark_cycles": ["--no-timeline-mark-cycles"],
    "torus_allreduce": ["--no-torus-allreduce"],
}


# With any of these the job may be an elastic one.
_LEAST = ("--min-np", "--min-num-proc")
_ELASTIC = (*_LEAST, "--max-np", "--max-num-proc", "--host-discovery-script", "--listen")
# For how many processes at a time there is room where nothing says how many may come.
_MANY = 1024


def words_of(options: Mapping[str, Any]) -> list[str]:
    """Options of ruedarun as it reads them; None leaves one out."""
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None:
            continue
        if value is True:
            words.append(option)
        elif value is False:
            words += _NEGATIONS.get(name, ())
        elif name == "blacklist_cooldown_range":
            words += [option, *(str(one) for one in value)]
        elif isinstance(value, str) or not isinstance(value, Iterable):
            words += [option, str(value)]
        else:
            words += [option, ",".join(str(one) for one in value)]
    return words


def run_words(
    func: Callable[..., Any], args: tuple, kwargs: dict[str, Any], size: int, words: list[str],
    executable: str | None = None, env: Mapping[str, str] | None = None,
) -> list[Any]:  # fmt: skip
    """As :func:`run`, with options as ruedarun reads them."""
    # Imported late: programs that import rueda for training do not need them.
    from . import carry, job

    if not hasattr(size, "__index__") or isinstance(size, bool):
        raise ValueError(f"the number of ranks is a whole number, not {size!r}")
    given = dict(zip(words, words[1:]))
    is_elastic = any(word in given for word in _ELASTIC)
    wanted = next((int(given[word]) for word in _LEAST if given.get(word, "").isdecimal()), size)
    task = carry.pack_task(func, args, kwargs)
    command = [executable or sys.executable, "-m", "rueda.runner.task"]
    room = max(size, _MANY) if is_elastic else size
    counter = job.Counter(task, room, job.is_local(words), is_elastic)
    with ExitStack() as stack:
        stack.callback(counter.close)
        environment = job.environment_for_ranks(env)
        offer = counter.offer()
        # The key must not be in an environment that others send in the clear.
        if job.is_taken_over(words):
            offer = stack.enter_context(job.offer_in_file(offer, job.is_local(words)))
        environment[carry.VARIABLE] = offer
        ended = job.launch([*words, "--", *command], environment)
    # Processes that failed before the end of an elastic job are none of its result.
    if counter.first_failed is not None and not (is_elastic and ended.code == 0):
        rank = counter.first_failed
        raise _error_of(rank, counter.outcomes[rank])
    if ended.code == 2 and not counter.has_served():
        raise ValueError(f"the job was not started:\n{ended.words}")
    if ended.code != 0:
        raise RankError(
            f"the job ended with exit code {ended.code}:\n{ended.words}", code=ended.code
        )
    values = dict(_value_of(rank, one) for rank, one in counter.outcomes.items() if one.value)
    for rank in range(wanted):
        if rank not in values:
            raise RankError(f"rank {rank} ended without a result", rank, 0)
    return [values[rank] for rank in range(wanted)]


def rank_of_error(error: BaseException) -> int | None:
    """The rank on which something that :func:`run` raised was raised, if on any."""
    return error.__cause__.rank if isinstance(error.__cause__, RankTraceback) else None


def _error_of(rank: int, outcome: Any) -> BaseException:
    error: BaseException | None = None
    if outcome.error is not None:
        try:
            error = pickle.loads(outcome.error)
        except Exception:
            error = None
    # An exit of a rank, or its interrupt, is not to end this process.
    if not isinstance(error, Exception):
        error = RankError(f"rank {rank} raised {outcome.kind}", rank)
    error.__cause__ = RankTraceback(rank, outcome.text)
    return error


def _value_of(rank: int, outcome: Any) -> tuple[int, Any]:
    """The rank at the end, and what it returned."""
    try:
        return pickle.loads(outcome.value)
    except Exception as error:
        raise RankError(
            f"what rank {rank} returned cannot be made here: {type(error).__name__}: {error}", rank
        ) from error
