# SPDX-License-Identifier: Apache-2.0
"""What the bindings of all frameworks share, as far as one process shows it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Callable

import pytest
from rueda.common import excepthook, util
from rueda.common.basics import Average, Sum, basics
from rueda.common.exceptions import (
    HorovodInternalError,
    HorovodVersionMismatchError,
    HostsUpdatedInterrupt,
)
from rueda.common.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60


@pytest.mark.parametrize(
    ("values", "count", "pieces"),
    [
        ([1, 2, 3, 4], 2, [[1, 2], [3, 4]]),
        ([1, 2, 3, 4, 5], 3, [[1, 2], [3, 4], [5]]),
        ([1], 2, [[1], []]),
        ("abc", 1, ["abc"]),
    ],
)
def test_split_list(values: Any, count: int, pieces: Any) -> None:
    assert util.split_list(values, count) == pieces


@pytest.mark.parametrize(
    ("version", "target", "is_so"),
    [
        ("2.13.0", "2.9.0", True),
        ("2.13.0+cpu", "2.13.0", True),
        ("1.13.1", "2.0.0", False),
        ("2.1", "2.1.0", True),
    ],
)
def test_versions(version: str, target: str, is_so: bool) -> None:
    assert util.is_version_greater_equal_than(version, target) is is_so


def test_a_version_that_is_none() -> None:
    with pytest.raises(ValueError, match="look like"):
        util.is_version_greater_equal_than("new", "1.0.0")


def test_env_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUEDA_TEST_A", "1")
    monkeypatch.delenv("RUEDA_TEST_B", raising=False)
    with util.env(RUEDA_TEST_A=None, RUEDA_TEST_B="2"):
        assert "RUEDA_TEST_A" not in os.environ
        assert os.environ["RUEDA_TEST_B"] == "2"
    assert os.environ["RUEDA_TEST_A"] == "1"
    assert "RUEDA_TEST_B" not in os.environ


@pytest.mark.parametrize(("number", "is_so"), [(0, False), (1, True), (2, True), (6, False)])
def test_powers_of_two(number: int, is_so: bool) -> None:
    assert util.num_rank_is_power_2(number) is is_so


def test_what_is_available() -> None:
    assert not util.extension_available("no_such_framework")
    assert util.mpi_built() and util.gloo_built()
    # Not what is there: docs/from-horovod.md says why.
    assert util.nccl_built() == 0
    assert util.get_extension_full_path(__file__, "x", "y").endswith(
        os.path.join("x", "y" + util.get_ext_suffix())
    )
    assert util.is_iterable("x") and not util.is_iterable(1)


def test_cuda_is_there_where_its_driver_can_be_loaded(
    need_tool: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = tmp_path / "libcuda_stand_in.so.1"
    monkeypatch.setenv("RUEDA_CUDA_LIB", str(driver))
    assert not basics.cuda_built()
    assert not util.gpu_available("torch")
    subprocess.run(
        [need_tool("cc"), "-shared", "-fPIC", "-pthread", f"-I{ROOT / 'src'}", "-o", str(driver),
         str(ROOT / "tests/support/fake/cuda.c")],
        check=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert basics.cuda_built()
    # The other bindings copy tensors to the host.
    assert not util.gpu_available("tensorflow")


def test_torch_says_whether_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="missing tool: torch")
    monkeypatch.setattr(basics, "cuda_built", lambda: True)
    for has_gpu in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda answer=has_gpu: answer)
        assert util.gpu_available("torch") is has_gpu


def test_average_is_an_old_way_to_say_op() -> None:
    assert util.handle_average_backwards_compatibility(None, None) == Average
    assert util.handle_average_backwards_compatibility(Sum, None) == Sum
    with pytest.warns(DeprecationWarning):
        assert util.handle_average_backwards_compatibility(None, False) == Sum
    with pytest.raises(ValueError):
        util.handle_average_backwards_compatibility(Sum, True)


def test_exceptions_have_the_fields_that_scripts_read() -> None:
    assert issubclass(HorovodInternalError, RuntimeError)
    assert HostsUpdatedInterrupt(True).skip_sync is True
    error = HorovodVersionMismatchError("torch", "1.0", "2.0")
    assert isinstance(error, ImportError)
    assert (error.name, error.version, error.installed_version) == ("torch", "1.0", "2.0")


def test_a_long_traceback_keeps_its_end() -> None:
    def fall(depth: int) -> None:
        if depth == 0:
            raise KeyError("at the end")
        fall(depth - 1) if depth % 2 else fall(depth - 1)

    with pytest.raises(KeyError) as caught:
        fall(50)
    text = excepthook.describe(KeyError, caught.value, caught.value.__traceback__)
    assert len(text.encode()) <= 512  # what the library passes on
    head, dots, *rest = text.splitlines()
    assert (head, dots) == ("Traceback (most recent call last):", "  ...")
    assert all(line.startswith("  ") for line in rest[:-1])  # whole lines
    assert text.endswith("KeyError: 'at the end'\n")  # what follows begins a line
    # The others show its last line alone.
    words = f"rank 1 (pid 5 on host a) failed: {text} while rank 0 was in barrier number 0"
    assert excepthook.shorten(words) == (
        "rank 1 (pid 5 on host a) failed: KeyError: 'at the end'\n"
        " while rank 0 was in barrier number 0"
    )
    with pytest.raises(KeyError) as caught:
        raise KeyError("x" * 600)
    text = excepthook.describe(KeyError, caught.value, caught.value.__traceback__)
    assert len(text.encode()) <= 512 and text.endswith("xxx'\n")


def test_a_traceback_begins_with_the_users_first_frame() -> None:
    with pytest.raises(TypeError) as caught:
        util.split_list(None, 2)
    trace = caught.value.__traceback__
    assert trace is not None and excepthook.from_user(trace) is trace
    package = trace.tb_next
    assert package is not None and excepthook.from_user(package) is package
    called = TracebackType(trace, package.tb_frame, package.tb_lasti, package.tb_lineno)
    assert excepthook.from_user(called) is trace


@pytest.mark.parametrize("wrong", [1, None, ["a"], [[1]], "01", [0, 1.5]])
def test_a_process_set_is_made_of_ranks(wrong: Any) -> None:
    with pytest.raises(ValueError, match="list of ranks"):
        ProcessSet(wrong)


def test_a_process_set_before_it_is_registered() -> None:
    one = ProcessSet([2, 0])
    assert one.ranks == [0, 2]
    assert (one.process_set_id, one.size(), one.rank()) == (None, None, None)
    assert str(one) == "ProcessSet(process_set_id=None, ranks=[0, 2], mpi_comm=None)"
    assert global_process_set.process_set_id == 0


@pytest.mark.parametrize("wrong", [1, "01", ["a"], [0.5]])
def test_a_job_is_made_of_ranks(wrong: Any) -> None:
    with pytest.raises(ValueError, match="list of ranks"):
        basics.init(comm=wrong)


def test_nothing_is_known_before_init() -> None:
    assert not basics.is_initialized()
    assert not remove_process_set(global_process_set)
    for function in (basics.rank, basics.size, basics.stop_timeline, global_process_set.size,
                     lambda: add_process_set([0])):  # fmt: skip
        with pytest.raises(ValueError, match=r"init\(\)"):
            function()
    basics.shutdown()
