"""The fixtures that run each test on every backend and device present."""

from pathlib import Path

import numpy as np
import pytest
from backends import BACKENDS, TYPED

TAKES_SECONDS = ("compile", "export", "graph")  # in the names of tests that have torch compile or export something


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent and any(word in item.originalname for word in TAKES_SECONDS):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", params=BACKENDS, ids=str)
def backend(request):
    """NumPy, torch on the CPU, and torch on CUDA where there is one."""
    return request.param


@pytest.fixture(scope="session", params=TYPED, ids=lambda pair: "-".join(map(str, pair)))
def typed(request):
    """Each backend with each floating dtype that it has: (backend, name of the dtype)."""
    return request.param


@pytest.fixture
def rng():
    """The same random numbers for every test."""
    return np.random.default_rng(20170612)
