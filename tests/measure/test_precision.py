from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from regress.measure.precision import MIXED, flags, restored_flags


@pytest.fixture
def torch() -> Iterator[Any]:
    """torch, left as it was found."""
    module = pytest.importorskip("torch")
    with restored_flags():
        yield module


def test_what_is_read_can_go_into_a_message(torch: Any) -> None:
    read = flags()
    assert json.loads(json.dumps(read)) == read
    assert read["default_dtype"] == "float32"
    assert {"tf32_matmul", "tf32_cudnn", "float32_matmul", "bf16_reduction", "grad", "threads"} <= set(read)


CHANGES = {
    "backends.cuda.matmul.allow_tf32 = True": "tf32_matmul",
    "backends.cudnn.allow_tf32 = False": "tf32_cudnn",
    "set_float32_matmul_precision('high')": "float32_matmul",
    "set_float32_matmul_precision('medium')": "float32_matmul",
    "backends.cuda.matmul.fp32_precision = 'tf32'": "fp32_precision_matmul",
    "backends.cudnn.conv.fp32_precision = 'ieee'": "fp32_precision_conv",
    "backends.fp32_precision = 'ieee'": "fp32_precision",
    "backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False": "bf16_reduction",
    "backends.cuda.matmul.allow_fp16_accumulation = True": "fp16_accumulation",
    "backends.cudnn.benchmark = True": "cudnn_benchmark",
    "use_deterministic_algorithms(True)": "deterministic",
    "use_deterministic_algorithms(True, warn_only=True)": "deterministic",
    "set_default_dtype(torch.float64)": "default_dtype",
    "set_grad_enabled(False)": "grad",
    "set_num_threads(torch.get_num_threads() + 1)": "threads",
}


def change(torch: Any, statement: str) -> None:
    exec(f"torch.{statement}", {"torch": torch})


@pytest.mark.parametrize("statement", CHANGES)
def test_what_a_case_changes_is_named_and_put_back(torch: Any, statement: str) -> None:
    name = CHANGES[statement]
    before = flags()
    if name not in before:
        pytest.skip("this torch has no such setting")
    with restored_flags() as changed:
        change(torch, statement)
        assert changed == []
    assert name in changed
    assert flags() == before


@pytest.mark.parametrize("first", [statement for statement in CHANGES if "32" in statement])
@pytest.mark.parametrize("second", [statement for statement in CHANGES if "32" in statement])
def test_torchs_older_and_newer_interface_in_any_order(torch: Any, first: str, second: str) -> None:
    change(torch, first)
    before = flags()
    with restored_flags():
        change(torch, second)
    named = {name: value for name, value in before.items() if value != MIXED}  # what was torn may be whole now
    assert named.items() <= flags().items()


def test_a_setting_that_torch_refuses_to_name_is_mixed(torch: Any) -> None:
    if "fp32_precision_matmul" not in flags():
        pytest.skip("this torch has one interface only")
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    assert flags()["tf32_matmul"] == MIXED


def test_a_case_that_changes_nothing_names_nothing(torch: Any) -> None:
    with restored_flags() as changed:
        torch.ones(2) + 1
    assert changed == []


def test_an_error_puts_everything_back_too(torch: Any) -> None:
    def fails() -> None:
        torch.set_grad_enabled(False)
        raise ValueError

    with pytest.raises(ValueError), restored_flags() as changed:
        fails()
    assert changed == ["grad"]
    assert torch.is_grad_enabled()


def test_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(jax_default_matmul_precision=None, jax_enable_x64=False)
    config.update = lambda key, value: setattr(config, key, value)
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(config=config))
    assert flags()["jax_matmul_precision"] is None
    with restored_flags() as changed:
        config.update("jax_enable_x64", True)
        config.update("jax_default_matmul_precision", "float32")
    assert changed == ["jax_matmul_precision", "jax_x64"]
    assert (config.jax_enable_x64, config.jax_default_matmul_precision) == (False, None)


def test_a_half_imported_framework_has_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("jax", "torch", "numpy"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    assert flags() == {}


def test_reading_imports_nothing() -> None:
    code = (
        "import sys; from regress.measure.precision import flags, restored_flags\n"
        "with restored_flags() as changed: print(flags())\n"
        "print([name for name in ('torch', 'jax', 'numpy') if name in sys.modules], changed)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["{}", "[] []"]
