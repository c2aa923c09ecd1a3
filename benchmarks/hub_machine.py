"""A machine for a trial of JupyterHub: accounts, folders and the hub itself, all of which are removed at the end."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import requests
from hub_session import until

ROOT = Path(__file__).parents[1]
BIN = Path(sys.prefix) / "bin"
NEEDED = ("attnlib", "grading", "solutions", "exercises", "nbgrader_config.py", "pyproject.toml", "requirements.txt")
GRADER, EMMY, ADA, BELA = ACCOUNTS = ("attn-grader", "attn-emmy", "attn-ada", "attn-bela")
GROUPS = {EMMY: "attn-instructors", ADA: "attn-students", BELA: "attn-students"}
FOLDERS = {"attention": 0o750, "class": 0o700, "exchange": 0o1777, "etc": 0o755, "hub": 0o700}
RENAMED = {  # what the files in deploy/ call it, and what it is called in the trial
    '"grader"': f'"{GRADER}"', "=grader": f"={GRADER}", '"emmy"': f'"{EMMY}"',
    '"students"': '"attn-students"', '"instructors"': '"attn-instructors"',
}  # fmt: skip


def require_machine() -> str:
    """Return the path of the proxy, or stop and say what is missing."""
    if os.geteuid():
        sys.exit("only root can create accounts: run this with sudo, on a machine where you may do so")
    if not (BIN / "jupyterhub-singleuser").exists():
        sys.exit(f"JupyterHub is not installed in {sys.prefix}: run `{sys.executable} -m pip install jupyterhub`")
    known = subprocess.run(["getent", "passwd", *ACCOUNTS], capture_output=True, text=True).stdout
    if known:
        sys.exit(f"these accounts already exist; remove them with `userdel --remove NAME`:\n{known}")
    if not (proxy := shutil.which("configurable-http-proxy")):
        sys.exit("configurable-http-proxy is not on the PATH: run `npm install --global configurable-http-proxy`")
    return proxy


@contextmanager
def accounts() -> Iterator[dict[str, str]]:
    """Create the accounts, and return their passwords; remove them, their files and their processes at the end."""
    groups, passwords = sorted(set(GROUPS.values())), {name: secrets.token_urlsafe(12) for name in GROUPS}
    try:
        for group in groups:
            _run("groupadd", group)
        for name in ACCOUNTS:
            _run("useradd", "--create-home", "--shell", "/bin/bash", "--groups", GROUPS.get(name, ""), name)
            Path("/home", name).chmod(0o700)
        _run("chpasswd", told="".join(f"{name}:{password}\n" for name, password in passwords.items()))
        yield passwords
    finally:
        for name in ACCOUNTS:
            subprocess.run(["pkill", "-KILL", "--uid", name], check=False)
            subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)
        for group in groups:
            subprocess.run(["groupdel", group], check=False)


def _run(*command: str, told: str = "") -> None:
    subprocess.run(command, input=told, capture_output=True, text=True, check=True)


def require_readable(folder: Path) -> None:
    """Stop unless students can run what is installed here."""
    command = ["runuser", "-u", ADA, "--", sys.executable, "-c", "import attnlib, grading, jupyterhub, nbgrader"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"an ordinary user cannot use {sys.prefix}: install the course in /opt, say.\n{done.stderr[-500:]}")


def prepare(place: Path, port: int, proxy: str) -> Path:
    """Make the folders as the page says, copy the course, and return the configuration of the hub."""
    place.chmod(0o755)
    for name, mode in FOLDERS.items():
        (place / name).mkdir()
        (place / name).chmod(mode)
    course = place / "attention"
    for name in NEEDED:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, course / name)
    (course / "_build").mkdir()
    _run("chgrp", GRADER, str(course))
    _run("chown", "--recursive", GRADER, str(place / "class"), str(course / "_build"), str(course / "exercises"))
    _write_configuration(place, "nbgrader_config.py", "etc")
    config = _write_configuration(place, "jupyterhub_config.py", "hub")
    with config.open("a", encoding="utf-8") as stream:
        stream.write(f'c.JupyterHub.bind_url = "http://127.0.0.1:{port}"\n')
        stream.write(f"c.JupyterHub.hub_port = {free_port()}\n")
        stream.write(f'c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{free_port()}"\n')
        stream.write(f'c.ConfigurableHTTPProxy.command = ["{proxy}"]\n')
    return config


def _write_configuration(place: Path, name: str, folder: str) -> Path:
    """Write a file of `deploy/jupyterhub/` with the accounts and folders of the trial."""
    text = (ROOT / "deploy" / "jupyterhub" / name).read_text(encoding="utf-8")
    paths = {f"/srv/{one}": str(place / one) for one in ("class", "exchange")} | {"{COURSE}/.venv": sys.prefix}
    paths |= {"/opt/attention": str(place / "attention"), "/etc/attention": str(place / "etc")}
    for theirs, ours in (RENAMED | paths).items():
        text = text.replace(theirs, ours)
    file = place / folder / name
    file.write_text(text, encoding="utf-8")
    return file


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def hub(config: Path, port: int) -> Iterator[str]:
    """Start the hub, and return its address; if something goes wrong, print the end of its log."""
    address, log = f"http://127.0.0.1:{port}", config.with_name("hub.log")
    command = [sys.executable, "-m", "jupyterhub", "--config", str(config)]
    settings = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    with log.open("w") as stream, subprocess.Popen(
        command, cwd=config.parent, env=settings, stdout=stream, stderr=subprocess.STDOUT
    ) as process:  # fmt: skip
        try:
            until(lambda: process.poll() is not None or _answers(address), "the hub answers")
            yield address
        except BaseException:
            print(log.read_text()[-8000:], file=sys.stderr)
            raise
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
            _end_proxy(config.with_name("jupyterhub-proxy.pid"))


def _end_proxy(file: Path) -> None:
    """End the proxy if the hub has left it running, as it does if it is stopped while it starts."""
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(file.read_text()), signal.SIGTERM)


def _answers(address: str) -> bool:
    """Tell whether the hub answers."""
    try:
        return requests.get(f"{address}/hub/health", timeout=10).ok
    except requests.ConnectionError:
        return False
