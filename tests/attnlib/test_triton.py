"""The Triton kernel: run by Triton's interpreter on the CPU, compiled for a GPU, and run on a GPU if there is one."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import triton_cases
from mutants import TRITON

import attnlib
from attnlib.triton import scaled_dot_product_attention as sdpa

if find_spec("triton") is None:
    pytest.skip("Triton has no wheel for this system", allow_module_level=True)

HERE, KERNEL = Path(__file__).parent, Path(attnlib.__file__).parent / "_triton.py"


@pytest.fixture(scope="module")
def differs(tmp_path_factory):
    """Return the case in which the kernel, and each of its mutants, differs from the loops, or None."""
    folder, source = tmp_path_factory.mktemp("kernels"), KERNEL.read_text()
    files = {"the kernel": KERNEL} | {mutant.what: folder / f"{n}.py" for n, mutant in enumerate(TRITON)}
    for mutant in TRITON:
        assert source.count(mutant.old) == 1, f"the kernel has changed, so rewrite this fault: {mutant.what}"
        files[mutant.what].write_text(source.replace(mutant.old, mutant.new))
    done = subprocess.run(
        [sys.executable, HERE / "triton_cases.py", *files.values()],
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {what: found[str(file)] for what, file in files.items()}


@pytest.mark.slow
def test_the_kernel_computes_attention(differs):
    assert differs["the kernel"] is None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", TRITON, ids=lambda mutant: mutant.what)
def test_a_fault_is_noticed(differs, mutant):
    assert differs[mutant.what] is not None


def test_it_compiles_for_a_gpu(tmp_path, monkeypatch):
    """Check that the kernel compiles, for which no GPU is needed: the interpreter accepts more than the compiler."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from attnlib._triton import _head

    tiles = {"BLOCK_Q": 64, "BLOCK_K": 64, "WIDTH": 64, "WIDTH_V": 64}
    types = dict.fromkeys(_head.arg_names, "i32") | dict.fromkeys(("query", "key", "value", "out", "lse"), "*bf16")
    types |= {"scale": "fp32", "softcap": "fp32", "offset": "i64"} | dict.fromkeys(tiles, "constexpr")
    constants = {(_head.arg_names.index(name),): size for name, size in tiles.items()}
    compiled = triton.compile(ASTSource(_head, types, constants), target=GPUTarget("cuda", 80, 32))
    assert "mma.sync" in compiled.asm["ptx"]  # the matrix units multiply
    assert compiled.metadata.shared < 48 * 1024


# Refusals


ONE = torch.ones(3, 4)


@pytest.mark.parametrize(
    ("inputs", "exception", "words"),
    [
        ([ONE, ONE, ONE], ValueError, "query is on the cpu.*use attnlib.scaled_dot_product_attention"),
        ([np.ones((3, 4))] * 3, TypeError, "query is a ndarray"),
        ([ONE.double()] * 3, TypeError, "query has dtype torch.float64"),
        ([ONE, ONE, ONE.clone().requires_grad_()], ValueError, "value requires a gradient.*no_grad"),
        ([ONE, torch.ones(5, 3), ONE], ValueError, "D=4 and 3"),
    ],
)
def test_what_it_cannot_do_is_refused(inputs, exception, words):
    with pytest.raises(exception, match=words):
        sdpa(*inputs)


def test_options_are_checked():
    with pytest.raises(TypeError, match="is_causal"):
        sdpa(ONE, ONE, ONE, is_causal=torch.ones(3, 3))
    with pytest.raises(ValueError, match="softcap"):
        sdpa(ONE, ONE, ONE, softcap=-1.0)


# CUDA, where there is one


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_cuda_it_computes_attention():
    assert triton_cases.examine(triton_cases.prepared(), "cuda") is None
