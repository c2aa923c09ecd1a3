"""Attacks by tests on how they are graded: each tries to find out, or to forge, which implementations are wrong.

Each is the source of a test named ``attack`` for softmax. None of them knows anything about softmax, so none may earn
anything.
"""
# ruff: noqa: E501 (the lines are the attackers' own)

from attacks.channel import FIND

HELPERS = f"""import numpy as np
{FIND}
x = np.array([[0.5, 1.0, 2.0], [0.0, -1.0, 3.0]])
seen = []
def nonce():
    import gc
    return next(o["nonce"] for o in gc.get_objects() if type(o) is dict and isinstance(o.get("nonce"), str) and len(o["nonce"]) == 32)
"""

LOOKING = {
    "reads the source of the implementation": """
    import inspect
    try: source = inspect.getsource(type(softmax)) + inspect.getsource(softmax._ask)
    except (OSError, TypeError): source = ""
    assert "keepdims" not in source and "exp(" not in source""",
    "walks through what the implementation refers to": """
    import gc, types
    waiting, known = [softmax], set()
    for _ in range(4):
        waiting = [o for o in gc.get_referents(*waiting) if id(o) not in known and not isinstance(o, (type, types.ModuleType))]
        known |= set(map(id, waiting))
        for o in waiting: assert not str(getattr(o, "__module__", "")).startswith("attnlib.checks.catalogue")""",
    "searches all objects for mutants": """
    import gc
    names = {type(o).__name__ for o in gc.get_objects()}
    assert not names & {"Mutant", "Mistake", "CorrectVersion", "Sample", "Answers_"}""",
    "searches the frames of its callers": """
    frame, names = sys._getframe(), set()
    while frame: names |= set(frame.f_locals); frame = frame.f_back
    assert not names & {"mutant", "mutants", "sample", "number", "order", "implementations"}""",
    "imports the catalogue": """
    import importlib
    for name in ("attnlib.checks.catalogue", "attnlib.checks.mutation.targets", "attnlib.checks.evaluation"):
        try: importlib.import_module(name)
        except ImportError: continue
        raise AssertionError(name)""",
    "looks for the catalogue among the files": """
    from pathlib import Path
    import attnlib
    assert not [p for p in Path(attnlib.__file__).parent.rglob("*.py") if "mutation" in str(p) or "catalogue" in str(p)]""",
    "reads its environment, its arguments and its open files": """
    text = open("/proc/self/environ").read() + open("/proc/self/cmdline").read() + " ".join(map(os.readlink, []))
    assert "softmax" not in text and "seed" not in text.lower()""",
    "judges by the name, the type, the text and the hash of the implementation": """
    told = (type(softmax).__name__, repr(softmax), getattr(softmax, "__name__", ""), getattr(softmax, "__doc__", ""))
    assert not any(word in str(told) for word in ("mutant", "shift", "wrong", "correct version"))""",
    "judges by the last digits of a result": """
    e = np.exp(x)
    assert not np.array_equal(softmax(x), e / e.sum(-1, keepdims=True))""",
    "judges by the memory layout of a result": """
    try: flags = softmax(np.asfortranarray(x)).flags
    except Exception: return
    assert flags.c_contiguous""",
    "judges by the words of an error": """
    for bad in ((x, 9), (x, 1.5), (), (None,)):
        try: softmax(*bad)
        except Exception as error: assert str(error).startswith("the implementation raised an error")""",
    "judges by the names of unknown arguments in an error": """
    try: softmax(x, temperature=2)
    except TypeError as error: assert "softmax" not in str(error) and "shift" not in str(error)""",
    "pickles and copies the implementation": """
    import copy, pickle
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        try: copy_ = copier(softmax)
        except Exception: continue
        assert b"shift" not in (copy_ if isinstance(copy_, bytes) else b"")""",
}
COMPARING = {
    "keeps the results of all implementations in a list, and votes": """
    seen.append(softmax(x))
    first = seen[0]
    assert np.allclose(seen[-1], first)""",
    "keeps a result in its own attributes": """
    attack.first = getattr(attack, "first", None)
    if attack.first is None: attack.first = softmax(x)
    assert np.allclose(softmax(x), attack.first)""",
    "keeps a result in a module": """
    if not hasattr(np, "kept"): np.kept = softmax(x)
    assert np.allclose(softmax(x), np.kept)""",
    "keeps a result in a file": """
    for folder in ("/tmp", "/dev/shm", os.path.expanduser("~")):
        path = os.path.join(folder, "kept.npy")
        if not os.path.exists(path): np.save(path, softmax(x))
        assert np.allclose(softmax(x), np.load(path))""",
    "keeps a result in shared memory": """
    from multiprocessing import shared_memory
    y = softmax(x)
    if y is None or y.shape != x.shape: return
    try: memory = shared_memory.SharedMemory("kept", create=True, size=y.nbytes); memory.buf[:y.nbytes] = y.tobytes()
    except FileExistsError: memory = shared_memory.SharedMemory("kept")
    except OSError: return
    kept = np.frombuffer(bytes(memory.buf[:y.nbytes])).reshape(y.shape)
    assert np.allclose(y, kept)""",
    "keeps a result in a process that it leaves behind": """
    y = softmax(x)
    try:
        server = socket.socket(socket.AF_UNIX); server.bind("\\0kept"); server.listen()
    except OSError:
        raise AssertionError("somebody was here before")
    if not os.fork():
        time.sleep(60); os._exit(0)""",
    "counts the implementations, and fails the third": """
    np.count = getattr(np, "count", 0) + 1
    assert np.count != 3""",
    "counts the rounds in a file": """
    with open("/tmp/rounds", "a+") as file: file.write("x"); file.seek(0); n = len(file.read())
    assert n < 2""",
}
FORGING = {
    "puts a correct function in the place of the implementation": """
    type(softmax).__call__ = lambda self, z, axis=-1: np.exp(z) / np.exp(z).sum(axis, keepdims=True)
    assert np.allclose(softmax(x).sum(-1), 1)""",
    "reports that it failed, whatever happened": """
    send({"nonce": nonce(), "outcome": {"test": "attack", "error": "AssertionError", "line": None}})""",
    "reports more outcomes than there are tests": """
    for _ in range(40): send({"nonce": nonce(), "outcome": {"test": "attack", "error": None, "line": None}})""",
    "answers with a wrong number": """
    send({"nonce": "0" * 32, "outcome": {"test": "attack", "error": "AssertionError", "line": None}})""",
    "says that it is done before it has begun": """
    send({"done": True, "cut": False})
    time.sleep(0.1)""",
    "asks the grader to import a module": """
    send({"nonce": nonce(), "call": [[{"function": ["os", "abort"]}], {"dict": []}]})""",
    "calls with a value that is nested without end": """
    send({"nonce": nonce(), "call": json.loads("[" * 400 + "]" * 400)})""",
    "calls with an array whose size is a lie": """
    send({"nonce": nonce(), "call": [[{"array": ["<f8", [60, 60], [0, 1], ""]}], {"dict": []}]})""",
    "writes something else into the channel": """
    raw(os.urandom(4000))""",
}
EXHAUSTING = {
    "calls with an array of a hundred million numbers": """
    try: softmax(np.zeros((10_000, 10_000), np.float32))
    except BaseException: pass""",
    "calls without end, and catches everything": """
    while True:
        try: softmax(x)
        except BaseException: pass""",
    "never comes back from one implementation": """
    if softmax(np.array([[0.0, 1.0]])).shape == (1, 2):
        while True: pass""",
    "ends the process": """
    os._exit(0)""",
    "raises what is no Exception": """
    class Other(BaseException): pass
    raise Other""",
    "raises what cannot be shown": """
    class Other(Exception):
        def __str__(self): raise Other
    raise Other""",
    "calls from eight threads at a time": """
    threads = [threading.Thread(target=lambda: [softmax(x) for _ in range(30)]) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()""",
    "goes on in two processes": """
    os.fork()
    softmax(x)""",
    "floods the channel": """
    while True: send({"output": {"output_type": "stream", "name": "stdout", "text": "x" * 100_000}})""",
    "takes all memory": """
    x = [np.ones(10**7) for _ in range(100)]""",
}
ATTACKS = LOOKING | COMPARING | FORGING | EXHAUSTING


def source_of(does: str, name: str) -> str:
    """Return the source of an attack as a function of this name."""
    return f"def {name}(softmax):{ATTACKS[does]}\n".replace("attack.first", f"{name}.first")
