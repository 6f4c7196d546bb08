# SPDX-License-Identifier: Apache-2.0
"""Durable commits: the newest whole copy is found, whatever was cut off or damaged."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest
from ranks import environment, program
from rueda.common import durable
from rueda.common.elastic import ObjectState
from rueda.data import Ledger

LIMIT_S = 60


def manifests(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.manifest"))


def object_of(manifest: Path) -> Path:
    return next(file for file in manifest.parent.glob(f"{manifest.stem}.*") if file != manifest)


# ---- The files ------------------------------------------------------------------


@pytest.mark.parametrize("where", ["local", "file", "memory"])
def test_the_newest_copy_is_read_and_older_ones_go(where: str, tmp_path: Path) -> None:
    if where != "local":
        pytest.importorskip("fsspec")
    place = {
        "local": str(tmp_path / "a" / "b"),
        "file": f"file://{tmp_path}/a/b",
        "memory": f"memory://{tmp_path.name}/a",
    }[where]
    assert durable.read_newest(place) is None
    for number in range(5):
        durable.write(place, {"one": b"%d" % number, "two": b"x" * 1000})
    assert durable.read_newest(place) == {"one": b"4", "two": b"x" * 1000}
    assert len(durable._folder(place).names()) == 2 * 3


def test_a_copy_that_is_cut_off_anywhere_is_passed_over(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    durable.write(str(tmp_path), {"one": b"old"})
    durable.write(str(tmp_path), {"one": b"new"})
    newest = manifests(tmp_path)[-1]
    for file in (newest, object_of(newest)):
        whole = file.read_bytes()
        # Without its last byte, the end of the line, a manifest is whole too.
        for length in range(len(whole) - (file == newest)):
            file.write_bytes(whole[:length])
            assert durable.read_newest(str(tmp_path)) == {"one": b"old"}
        file.unlink()
        assert durable.read_newest(str(tmp_path)) == {"one": b"old"}
        file.write_bytes(whole)
    assert durable.read_newest(str(tmp_path)) == {"one": b"new"}
    assert f"the copy {newest.stem} in {tmp_path} is passed over" in capfd.readouterr().err


def test_a_copy_of_which_a_bit_has_changed_is_passed_over(tmp_path: Path) -> None:
    durable.write(str(tmp_path), {"one": b"old"})
    durable.write(str(tmp_path), {"one": b"new"})
    newest = manifests(tmp_path)[-1]
    for file in (newest, object_of(newest)):
        whole = file.read_bytes()
        for at in range(len(whole) - (file == newest)):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert durable.read_newest(str(tmp_path)) == {"one": b"old"}
        file.write_bytes(whole)


def test_what_no_manifest_covers_is_not_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple:
            return os.mkdir, (str(tmp_path / "sprung"),)

    state = alone(step=1)
    state.commit(to=tmp_path / "copies")
    object_of(manifests(tmp_path / "copies")[0]).write_bytes(pickle.dumps(Trap()))
    assert not alone(step=0).load(tmp_path / "copies")
    assert not (tmp_path / "sprung").exists()


# ---- States ---------------------------------------------------------------------


def alone(**values: Any) -> ObjectState:
    """The state of a job of one rank, without a job."""
    return ObjectState(lambda obj: obj, lambda: 0, **values)


def test_values_and_ledgers_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rueda.data.ledger.allgather_object", lambda mine, name: [mine])
    state = alone(step=0, ledger=Ledger(10))
    state.ledger._mine = [(2, 5)]
    state.step = 3
    state.commit(to=tmp_path)
    state.step = 4  # not committed
    other = alone(step=0, added_later="kept", ledger=Ledger(10))
    assert other.load(tmp_path)
    assert (other.step, other.added_later, other.ledger.left()) == (3, "kept", 7)
    other.restore()
    assert other.step == 3


def test_a_model_of_pytorch_comes_back(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from rueda.torch.elastic import TorchState

    def make() -> Any:
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        state = TorchState(model=model, optimizer=optimizer, epoch=0)
        state._bcast_object, state._rank = lambda obj: obj, lambda: 0
        return model, optimizer, state

    model, optimizer, state = make()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state.epoch = 7
    state.commit(to=tmp_path)
    again, its_optimizer, other = make()
    assert other.load(tmp_path)
    assert other.epoch == 7
    for one, two in zip(model.parameters(), again.parameters()):
        assert torch.equal(one, two)
        momentum = optimizer.state[one]["momentum_buffer"]
        assert torch.equal(momentum, its_optimizer.state[two]["momentum_buffer"])


# ---- A job that is lost as a whole ------------------------------------------------

def test_a_job_that_is_started_again_goes_on_from_its_copy(
    need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    words = [need_tool("ruedarun"), "-np", "2", "--restarts", "1", sys.executable]
    done = subprocess.run(
        [*words, program("elastic_copies.py"), str(tmp_path / "copies")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
        env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("begins at 0") == 2
    assert done.stdout.count("begins at 3") == 2
    assert done.stdout.count("ends with 12") == 2
