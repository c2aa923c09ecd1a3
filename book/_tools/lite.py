"""The exercises in a browser: build JupyterLite, with the released notebooks and attnlib in it.

``python -m _tools.lite SITE/lite`` builds it. Its Python (Pyodide) is loaded from another
host; the pages that lead there say so. With ``--pyodide ARCHIVE``, a release of the matching Pyodide, Python is part of
the site, which then loads nothing from other hosts.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from html import escape
from importlib.metadata import distribution
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL, PYODIDE_VERSION
from wheel.wheelfile import WheelFile

from _tools.replace_folder import recover_folder, replace_folder

ROOT = Path(__file__).parents[2]
RELEASED_NOTEBOOKS = ROOT / "_build" / "released"  # the notebooks as students get them
STAGE = ROOT / "_build" / "lite"  # the folder that JupyterLite's builder reads
INDEX = Path(__file__).with_name("lite.html")  # the page that lists the exercises
EXTENSION = Path(sys.prefix) / "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension"
PYODIDE_KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
WHEELS = "../../../../pypi"  # relative to the extension's script that starts Python
CARRIED_PYTHON = "../static/pyodide/pyodide.mjs"  # relative to a page
PRELOADED_PACKAGES = [
    "numpy",
    "matplotlib",
]  # packages of Pyodide that are loaded before the first cell; attnlib needs both
METADATA_FILES = ("METADATA", "WHEEL", "LICENSE")  # what a wheel says about its package
INSTALLER_FILES = ("RECORD", "INSTALLER", "REQUESTED")  # written by whoever installs a package
APPS = ["notebooks", "tree"]  # a notebook to a page, and the list of them
LAB_SETTINGS = {
    "@jupyterlab/docmanager-extension:plugin": {"autosaveInterval": 5},
    "@jupyterlab/notebook-extension:tracker": {"autoStartDefaultKernel": True},
    "@jupyterlab/mainmenu-extension:plugin": {
        "menus": [
            {"id": "jp-mainmenu-file", "items": [{"command": "filemenu:create-console", "disabled": True, "rank": 2.1}]}
        ]
    },
}
DISABLED_EXTENSIONS = [
    "@jupyter/nbgrader",  # its buttons need a server; disabled in case the environment brings it in
    "@jupyterlab/apputils-extension:announcements",  # asks another host
    "@jupyterlab/console-extension",  # this one and the next three open an application that is left out
    "@jupyter-notebook/console-extension",
    "@jupyterlab/notebook-extension:code-console",
    "@jupyterlab/fileeditor-extension",
    "@jupyter-notebook/application-extension:tree-updater",  # shows addresses that no server has
]


def build(site: Path, pyodide: str | None = None) -> None:
    """Build JupyterLite into a folder; what was built there before stays until the new one is complete."""
    if pyodide and not Path(pyodide).is_file():
        sys.exit(f"{pyodide} came, but a release of Pyodide {PYODIDE_VERSION} is needed, as one file (.tar.bz2)")
    recover_folder(site.resolve())  # an earlier build may have been killed while it replaced the site
    shutil.rmtree(STAGE, ignore_errors=True)
    STAGE.mkdir(parents=True)
    os.environ["SOURCE_DATE_EPOCH"] = "315532800"  # the same bytes for the same files, so that browsers keep them
    copy_notebooks()
    wheel = attnlib_wheel(STAGE / "pypi")
    installed_wheel("comm", STAGE / "pypi")  # the kernel wants it, and Pyodide does not have it
    write("jupyter-lite.json", runtime_config(wheel.name))
    write("overrides.json", LAB_SETTINGS)
    site.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".lite-", dir=site.parent) as folder:
        new = Path(folder) / site.name
        write("jupyter_lite_config.json", build_config(new, pyodide))
        run_builder()
        python = CARRIED_PYTHON if pyodide else f"{PYODIDE_CDN_URL}/pyodide.mjs"
        finish_page(new / "tree" / "index.html", "")
        finish_page(new / "notebooks" / "index.html", python)
        (new / "index.html").write_text(index_page(pyodide is not None), encoding="utf-8")
        replace_folder(new, site.resolve())
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    origin = f"bundled from {pyodide}" if pyodide else "from cdn.jsdelivr.net"
    print(f"{site}: the exercises for a browser, {size / 1e6:.0f} MB; Pyodide {PYODIDE_VERSION} {origin}")


def run_builder() -> None:
    """Run JupyterLite's builder with the configuration."""
    config = str(STAGE / "jupyter_lite_config.json")
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--config", config]
    done = subprocess.run(command, cwd=STAGE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\nJupyterLite could not be built")


def released() -> list[Path]:
    """Return the notebooks as students get them, without anybody's work."""
    return sorted(RELEASED_NOTEBOOKS.glob("*/*.ipynb"))


def copy_notebooks() -> None:
    """Copy the notebooks that the site shows to where the builder finds them."""
    for notebook in released():
        place = STAGE / "files" / notebook.relative_to(RELEASED_NOTEBOOKS)
        place.parent.mkdir(parents=True)
        shutil.copyfile(notebook, place)


def index_page(carried: bool) -> str:
    """Return the page that lists the exercises, at the site's own address."""
    items = []
    for notebook in released():
        title = json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"][0].removeprefix("# ").strip()
        address = f"notebooks/index.html?path={notebook.relative_to(RELEASED_NOTEBOOKS).as_posix()}"
        items.append(f'<li><a href="{escape(address)}">{escape(title)}</a></li>')
    foreign = "Python is loaded from another host, cdn.jsdelivr.net, when a notebook is opened."
    python = f"{'Python comes with this site.' if carried else foreign} The first time, that takes 10 to 20 seconds."
    return Template(INDEX.read_text(encoding="utf-8")).substitute(exercises="\n".join(items), python=python)


def finish_page(page: Path, python: str) -> None:
    """Add the page's icon, and the scripts that link to the book, say whether Python is ready, and record progress.

    Browsers ask for an icon at the root of the host until JupyterLite's own script has said where it is.
    """
    html = page.read_text(encoding="utf-8")
    assert html.count("<head>") == 1, f"{page} begins otherwise than expected"
    progress = '<script src="../../_static/progress.js"></script>'
    script = f'<script src="../../_static/lite.js" data-python="{escape(python)}"></script>'
    html = html.replace("<head>", f'<head>\n    <link rel="icon" href="favicon.ico">\n    {progress}\n    {script}')
    page.write_text(html, encoding="utf-8")


def attnlib_wheel(folder: Path) -> Path:
    """Make a wheel of the attnlib in this repository, with the metadata of the one that is installed."""
    package = distribution("attnlib")
    about = [
        file for file in package.files or [] if file.name in METADATA_FILES and file.parts[0].endswith(".dist-info")
    ]
    files = {file.as_posix(): Path(str(package.locate_file(file))) for file in about}
    for file in sorted((ROOT / "attnlib").rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            files[file.relative_to(ROOT).as_posix()] = file
    folder.mkdir(exist_ok=True)
    path = folder / f"attnlib-{package.version}-py3-none-any.whl"
    with WheelFile(path, "w") as wheel:
        for name, file in files.items():
            wheel.write(file, name)
    return path


def installed_wheel(name: str, folder: Path) -> Path:
    """Make a wheel of a package in pure Python that is installed here."""
    package = distribution(name)
    path = folder / f"{name.replace('-', '_')}-{package.version}-py3-none-any.whl"
    with WheelFile(path, "w") as wheel:
        for file in package.files or []:
            if file.suffix != ".pyc" and file.name not in INSTALLER_FILES and file.parts[0] != "..":
                wheel.write(package.locate_file(file), file.as_posix())
    return path


def runtime_config(attnlib: str) -> dict[str, object]:
    """Return the configuration of the running site."""
    kernel = {
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"packages": [*PRELOADED_PACKAGES, f"{WHEELS}/{attnlib}"]},
    }
    about = {
        "appName": "Attention: the exercises",
        "appUrl": "./tree",
        "faviconUrl": "./tree/favicon.ico",
        "litePluginSettings": {PYODIDE_KERNEL: kernel},
    }
    return {
        "jupyter-lite-schema-version": 0,
        "jupyter-config-data": about | {"disabledExtensions": DISABLED_EXTENSIONS},
    }


def build_config(site: Path, pyodide: str | None) -> dict[str, object]:
    """Return the configuration of the builder."""
    lite = {
        "lite_dir": str(STAGE),
        "output_dir": str(site.resolve()),
        "cache_dir": str(STAGE / ".cache"),
        "contents": ["files"],
        "apps": APPS,
        "ignore_sys_prefix": ["federated_extensions"],
        "federated_extensions": [str(EXTENSION)],
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
    }
    carried = {"PyodideAddon": {"pyodide_url": str(Path(pyodide).resolve())}} if pyodide else {}
    return {"LiteBuildConfig": lite, **carried}


def write(name: str, text: object) -> None:
    """Write a JSON file into the folder that the builder reads."""
    (STAGE / name).write_text(json.dumps(text, indent=1), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("site", type=Path, help="the folder to build into")
    parser.add_argument("--pyodide", metavar="ARCHIVE", help="a release of Pyodide (.tar.bz2) to carry along")
    arguments = parser.parse_args()
    build(arguments.site, arguments.pyodide)
