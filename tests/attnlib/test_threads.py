"""NumPy's attention on several cores: the same numbers, and BLAS as it was before."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController, threadpool_limits

import attnlib
from attnlib import _threads


def blas_threads():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


@pytest.fixture(params=[1, 2, 3, 7])
def cores(request):
    with threadpool_limits(request.param, "blas"):
        yield request.param


def long(rng, heads, dtype=np.float32):
    return [rng.standard_normal((*heads, n, 5)).astype(dtype) for n in (700, 600, 600)]


@pytest.mark.slow
@pytest.mark.parametrize("heads", [(), (1,), (3,), (2, 5)], ids=str)
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"window": (100, 30), "q_offset": -20}], ids=str)
def test_the_number_of_cores_changes_no_more_than_the_rounding(rng, cores, heads, options):
    q, k, v = long(rng, heads, np.float64)
    mask = rng.random((700, 600)) < 0.7
    ours = attnlib.scaled_dot_product_attention(q, k, v, mask, **options, return_lse=True)
    with threadpool_limits(1, "blas"):
        alone = attnlib.scaled_dot_product_attention(q, k, v, mask, **options, return_lse=True)
    for mine, theirs in zip(ours, alone, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


def test_each_item_is_worked_on_once(cores):
    seen = []
    _threads.run_on_cores(seen.extend, lambda number: list(range(10 * number)))
    assert sorted(seen) == list(range(10 * cores))


def test_inside_every_product_has_one_core_and_after_it_as_many_as_before(cores):
    inside = []
    _threads.run_on_cores(lambda items: inside.append(blas_threads()), lambda number: [0] * number)
    assert inside == [[1] * len(blas_threads())] * cores
    assert set(blas_threads()) == {cores}


def test_after_an_error_they_are_as_before_too(cores):
    def fails(items):
        raise RuntimeError("from within")

    with pytest.raises(RuntimeError, match="from within"):
        _threads.run_on_cores(fails, lambda number: [0] * number)
    assert set(blas_threads()) == {cores}


def test_calls_at_once_compute_what_each_alone_computes_and_leave_blas_as_it_was(rng, cores):
    inputs = [long(rng, (3,)) for _ in range(4)]
    alone = [attnlib.scaled_dot_product_attention(*qkv) for qkv in inputs]
    with ThreadPoolExecutor(6) as pool:
        at_once = list(pool.map(lambda qkv: attnlib.scaled_dot_product_attention(*qkv), inputs * 15))
    for ours, theirs in zip(at_once, alone * 15, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)  # pieces of a head end elsewhere on fewer cores
    assert set(blas_threads()) == {cores}


@pytest.mark.parametrize("cores", [3], indirect=True)
def test_a_second_call_at_once_keeps_to_one_core(cores):
    seen, inside, ended = [], threading.Event(), threading.Event()

    def first(items):
        inside.set()
        ended.wait(10)

    one = threading.Thread(target=_threads.run_on_cores, args=(first, lambda number: [0]))
    one.start()
    inside.wait(10)
    _threads.run_on_cores(seen.extend, lambda number: [number])
    ended.set()
    one.join(10)
    assert seen == [1]
    _threads.run_on_cores(seen.extend, lambda number: [number])
    assert seen == [1, 3]


@pytest.mark.parametrize("cores", [2], indirect=True)
def test_the_caller_s_errstate_holds_on_every_core(rng, cores):
    q, k, v = long(rng, (4,))
    v[:, 0] = np.inf
    with np.errstate(all="ignore"):
        assert not np.isfinite(attnlib.scaled_dot_product_attention(q, k, v)).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("cores", [2], indirect=True)
def test_a_forked_process_computes_as_well(rng, cores):
    program = """
import os, numpy as np, attnlib
x = np.random.default_rng(0).standard_normal((3, 600, 4)).astype(np.float32)
before = attnlib.scaled_dot_product_attention(x, x, x)
pid = os.fork()
if pid == 0:
    os._exit(int(not (attnlib.scaled_dot_product_attention(x, x, x) == before).all()))
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_process_forked_in_the_middle_of_a_call_is_as_free_as_before(rng):
    program = """
import os, threading, numpy, attnlib
from attnlib import _threads
from threadpoolctl import ThreadpoolController, threadpool_limits
threads = lambda: {library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers}
with threadpool_limits(3, "blas"):
    pass
inside, ended, number = threading.Event(), threading.Event(), threads()
call = threading.Thread(target=_threads.run_on_cores, args=(lambda _: (inside.set(), ended.wait(20)), lambda n: [0]))
call.start()
inside.wait(10)
assert threads() == {1}
pid = os.fork()
if pid == 0:
    os._exit(0 if threads() == number and _threads._busy.acquire(blocking=False) else 1)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
ended.set()
call.join()
assert threads() == number
assert code == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=600)


def test_a_browser_without_threads_needs_no_library(monkeypatch, rng):
    monkeypatch.setattr(sys, "platform", "emscripten")
    _threads._blas.cache_clear()
    q, k, v = long(rng, (2,))
    here = attnlib.scaled_dot_product_attention(q, k, v)
    assert _threads._blas() is None
    monkeypatch.undo()
    _threads._blas.cache_clear()
    np.testing.assert_allclose(here, attnlib.scaled_dot_product_attention(q, k, v), rtol=1e-4, atol=1e-6)


def test_short_sequences_import_nothing_for_it():
    program = "import sys, numpy, attnlib; x = numpy.ones((2, 9, 4)); attnlib.scaled_dot_product_attention(x, x, x); "
    program += "print('threadpoolctl' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"


def test_the_result_does_not_depend_on_the_run(rng, cores):
    q, k, v = long(rng, (3,))
    first = attnlib.scaled_dot_product_attention(q, k, v)
    for _ in range(3):
        assert_array_equal(attnlib.scaled_dot_product_attention(q, k, v), first)
