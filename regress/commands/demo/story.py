"""The history that the demo tells: what each commit edits, and what it does to which benchmark.

The library's code is the same text on the real and on the scripted device (only `tinynn/tensor.py` differs), so each edit
stands here once.
"""

from __future__ import annotations

from dataclasses import dataclass

from regress.model import Verdict


@dataclass(frozen=True)
class Planted:
    """What a commit does to one metric of one benchmark, in all of its cases, beyond the default thresholds."""

    benchmark: str
    metric: str
    verdict: Verdict


@dataclass(frozen=True)
class Edit:
    """One place in one file: `old`, which occurs there exactly once, becomes `new`. With an empty `old`, a new file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class StoryStep:
    """One commit after the first. `effect` says in words for the demo's README what is planted; empty: nothing is."""

    subject: str
    body: str = ""
    edits: tuple[Edit, ...] = ()
    planted: tuple[Planted, ...] = ()
    effect: str = ""
    reverts: str = ""
    """Subject of the earlier commit that this one undoes."""


FIRST = StoryStep("Add tinynn with its benchmarks", "Eight operations, a suite with a benchmark for each, a few tests.")

_HOW_TO_RUN = StoryStep(
    "README: say how the benchmarks are run",
    edits=(
        Edit(
            "README.md",
            "## Where things are\n",
            "## Running the benchmarks\n\n"
            "`regress check HEAD~1` measures the last commit against the one before it, `regress list` shows the benchmarks,\n"
            "and `regress check A B -b Attention` compares any two commits on some of them.\n\n"
            "## Where things are\n",
        ),
    ),
)

_LAYER_NORM = StoryStep(
    "layer_norm: subtract the mean before squaring",
    "The difference of two large numbers lost all digits in float16\nwhere the mean is far from zero.",
    edits=(
        Edit(
            "tinynn/ops.py",
            "    variance = (x * x).mean(dim=-1, keepdim=True) - mean * mean\n",
            "    variance = ((x - mean) * (x - mean)).mean(dim=-1, keepdim=True)\n",
        ),
    ),
    planted=(Planted("ops.LayerNorm.cudatime_forward", "gpu_time", Verdict.REGRESSED),),
    effect="device time: half as many passes again over the input",
)

_RENAME = StoryStep(
    "mlp: name the hidden layer",
    edits=(
        Edit(
            "tinynn/blocks.py",
            "    h = gelu(x @ w_in)\n    return h @ w_out\n",
            "    hidden = gelu(x @ w_in)\n    return hidden @ w_out\n",
        ),
    ),
)

_LAYER_NORM_BACK = StoryStep(
    f'Revert "{_LAYER_NORM.subject}"',
    edits=tuple(Edit(edit.path, edit.new, edit.old) for edit in reversed(_LAYER_NORM.edits)),
    planted=(Planted("ops.LayerNorm.cudatime_forward", "gpu_time", Verdict.IMPROVED),),
    effect="device time as before: the regression has recovered",
    reverts=_LAYER_NORM.subject,
)

_RESIDUAL = StoryStep(
    "residual: scale and add in one pass",
    edits=(Edit("tinynn/blocks.py", "    return x + scale * branch\n", "    return x.add(branch, alpha=scale)\n"),),
    planted=(
        Planted("blocks.Residual.cudatime_add", "gpu_time", Verdict.IMPROVED),
        Planted("blocks.Residual.cudatime_add", "host_time", Verdict.IMPROVED),
        Planted("blocks.Residual.cudatime_add", "peak_memory", Verdict.IMPROVED),
    ),
    effect="an improvement: one kernel in place of two, and no tensor between them",
)

_RAW_SCORES = StoryStep(
    "attention: tell raw from biased scores by name",
    "One name for both made the shapes hard to follow in a debugger.",
    edits=(
        Edit(
            "tinynn/blocks.py",
            "    scores = (q * scale) @ k.transpose(-2, -1)\n    scores = scores + bias\n",
            "    raw = (q * scale) @ k.transpose(-2, -1)\n    scores = raw + bias\n",
        ),
    ),
    planted=(Planted("blocks.Attention.cudatime_forward", "peak_memory", Verdict.REGRESSED),),
    effect="peak memory, time as before: the second name keeps the raw scores alive",
)

_TEST = StoryStep(
    "Test the shapes of attention and mlp",
    edits=(
        Edit(
            "tests/test_ops.py",
            "def test_clip_grads_gives_back_every_gradient():\n",
            "def test_attention_has_a_row_for_each_query():\n"
            "    q, k, v = (tinynn.randn(2, 3, length, 4) for length in (5, 7, 7))\n"
            "    assert tuple(tinynn.attention(q, k, v, tinynn.randn(5, 7)).shape) == (2, 3, 5, 4)\n\n\n"
            "def test_mlp_keeps_the_width():\n"
            "    x, w_in, w_out = tinynn.randn(4, 8), tinynn.randn(8, 32), tinynn.randn(32, 8)\n"
            "    assert tuple(tinynn.mlp(x, w_in, w_out).shape) == (4, 8)\n\n\n"
            "def test_clip_grads_gives_back_every_gradient():\n",
        ),
    ),
)

_CHECKS = StoryStep(
    "embedding: check the arguments",
    "A wrong index ended in a device assert far away from the mistake.",
    edits=(
        Edit(
            "tinynn/checks.py",
            "",
            '"""Checks of arguments."""\n\n'
            "from __future__ import annotations\n\n"
            "from tinynn.tensor import Tensor, describe\n\n\n"
            "def given(*tensors: Tensor) -> str:\n"
            '    """The tensors in words."""\n'
            '    return "got " + " and ".join(describe(each) for each in tensors)\n\n\n'
            "def expect(condition: bool, message: str) -> None:\n"
            '    """Raise ValueError with that message unless the condition holds."""\n'
            "    if not condition:\n"
            "        raise ValueError(message)\n",
        ),
        Edit(
            "tinynn/ops.py",
            "from tinynn.tensor import Tensor, describe\n",
            "from tinynn.checks import expect, given\nfrom tinynn.tensor import INDEX, Tensor, describe\n",
        ),
        Edit(
            "tinynn/ops.py",
            "    return weight.index_select(0, index)",
            '    expect(weight.ndim == 2, f"weight has no rows; {given(weight, index)}")\n'
            '    expect(len(weight.shape) == 2, f"weight has rows of one width; {given(weight, index)}")\n'
            '    expect(index.ndim == 1, f"index is one row; {given(weight, index)}")\n'
            '    expect(index.dtype == INDEX, f"index is of type {INDEX}; {given(weight, index)}")\n'
            '    expect(index.device == weight.device, f"index is elsewhere; {given(weight, index)}")\n'
            '    expect(index.shape[0] > 0, f"index is empty; {given(weight, index)}")\n'
            "    return weight.index_select(0, index)",
        ),
    ),
    planted=(Planted("ops.Embedding.cudatime_lookup", "host_time", Verdict.REGRESSED),),
    effect="host time, device time as before: messages are put together whether needed or not",
)

_LOG_NORMS = StoryStep(
    "clip_grads: log the norm of each gradient",
    edits=(
        Edit(
            "tinynn/optim.py",
            "from typing import Sequence\n\nfrom tinynn.tensor import Tensor\n",
            "import logging\nfrom typing import Sequence\n\nfrom tinynn.tensor import Tensor\n\n"
            "log = logging.getLogger(__name__)\n",
        ),
        Edit(
            "tinynn/optim.py",
            "    squares = [(grad * grad).sum() for grad in grads]\n",
            "    squares = []\n"
            "    for number, grad in enumerate(grads):\n"
            "        square = (grad * grad).sum()\n"
            '        log.debug("gradient %d has norm %.3g", number, square.sqrt().item())\n'
            "        squares.append(square)\n",
        ),
    ),
    planted=(Planted("optim.ClipGrads.cudatime_clip", "wall_time", Verdict.REGRESSED),),
    effect="wall time: `.item()` waits for the device eight times a call, logged or not, so there is no device time any more",
)

_COMMENT = StoryStep(
    "gelu: say where the constants come from",
    edits=(
        Edit(
            "tinynn/ops.py",
            "_INNER = 0.7978845608028654\n",
            "# Hendrycks and Gimpel, Gaussian error linear units: the root of 2 / pi, and a cubic term that was fitted.\n"
            "_INNER = 0.7978845608028654\n",
        ),
    ),
)

_SCALE_SCORES = StoryStep(
    "attention: scale the scores, not the queries",
    "Small queries went to zero in float16 before they were multiplied.",
    edits=(
        Edit(
            "tinynn/blocks.py",
            "    raw = (q * scale) @ k.transpose(-2, -1)\n",
            "    raw = (q @ k.transpose(-2, -1)) * scale\n",
        ),
    ),
    planted=(Planted("blocks.Attention.cudatime_forward", "gpu_time", Verdict.REGRESSED),),
    effect="device time: the scores are much larger than the queries",
)

STORY = (
    _HOW_TO_RUN,
    _LAYER_NORM,
    _RENAME,
    _LAYER_NORM_BACK,
    _RESIDUAL,
    _RAW_SCORES,
    _TEST,
    _CHECKS,
    _LOG_NORMS,
    _COMMENT,
    _SCALE_SCORES,
)
"""The commits after `FIRST`, oldest first. The last one is HEAD: planted, with an unchanged one before it."""

PLANTED = {step.subject: step.planted for step in STORY if step.planted}
"""From the subject of a commit to what it does; every other commit changes nothing that can be measured."""
