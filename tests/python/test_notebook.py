# SPDX-License-Identifier: Apache-2.0
"""A notebook in a real kernel: its cells show what ranks print."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranks import environment

pytest.importorskip("ipykernel", reason="missing tool: ipykernel")
nbclient = pytest.importorskip("nbclient", reason="missing tool: nbclient")
nbformat = pytest.importorskip("nbformat", reason="missing tool: nbformat")

LIMIT_S = 120

CELL = """
import sys
import rueda

def work(word):
    print(word, "on stdout", flush=True)
    print(word, "on stderr", file=sys.stderr, flush=True)
    return word * 2

rueda.run(work, args=("said",), np=2)
"""


def test_a_cell_shows_what_ranks_print_and_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # a kernel behaves differently where it is set
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    client = nbclient.NotebookClient(
        notebook, timeout=LIMIT_S, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute(env=environment())
    outputs = notebook.cells[0].outputs
    shown = {
        name: "".join(one.text for one in outputs if one.get("name") == name)
        for name in ("stdout", "stderr")
    }
    for rank in range(2):
        assert f"[{rank}]<stdout>:said on stdout\n" in shown["stdout"]
        assert f"[{rank}]<stderr>:said on stderr\n" in shown["stderr"]
    results = [one.data["text/plain"] for one in outputs if one.output_type == "execute_result"]
    assert results == ["['saidsaid', 'saidsaid']"]
