"""Taking too much, and never coming to an end: time, memory, processes, files, output, and the process itself."""
# ruff: noqa: E501 (the lines are the attackers' own)

from attacks.case import Case
from attacks.channel import FIND

STUBBORN = """import signal, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
def forever():
    while True:
        try: time.sleep(60)
        except BaseException: pass
"""
BOMB = """import os
for _ in range(100):
    try:
        if os.fork() == 0:
            while True: pass
    except OSError: break
import time
time.sleep(60)
"""
DAEMON = """import os, subprocess, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3): os.dup2(os.open(os.devnull, os.O_RDWR), fd)
        while True: time.sleep(1)
    os._exit(0)
subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL)
"""
# Without the sandbox's filter, the kernel would not count the processor time of children whose parent ignores SIGCHLD.
# This cell may use 0.5 seconds, and 0.3 more to end.
# If only the clock limited it, it would have 8 seconds.
UNCOUNTED = """import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for n in range(200):
    if os.fork() == 0:
        end = time.process_time() + 0.1
        while time.process_time() < end: pass
        os._exit(0)
    try: os.wait()
    except (ChildProcessError, KeyboardInterrupt): pass
    if n == 60: print("RAN for 6 seconds", flush=True)
"""
# The process that keeps the student's is woken by a pipe; whoever drinks from it might put that one to sleep for good.
DRINKS = """import fcntl, os, stat, threading, time
pipes = []
for fd in range(3, 256):
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode): pipes.append(fd)
    except OSError: pass
for fd in pipes:
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
def drink(fd):
    while True:
        try: os.read(fd, 1)
        except OSError: return
if os.fork() == 0:
    for fd in pipes: threading.Thread(target=drink, args=(fd,), daemon=True).start()
    while True: time.sleep(0.01)
for _ in range(30):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait(); os.wait(); time.sleep(0.01)  # an orphan falls to the first process, which this is
"""
MEMFD = """import ctypes, os
libc = ctypes.CDLL(None)
held = 0
for n in range(200):
    fd = libc.memfd_create(b"x", 0)
    if fd < 0: break
    for _ in range(7): held += os.write(fd, bytes(1_000_000))
assert held < 1_000_000_000, held
"""
SHARED = """import mmap, os, time
for _ in range(6):
    if os.fork() == 0:
        area = mmap.mmap(-1, 150_000_000)
        for _ in range(14): area.write(bytes(10_000_000))
        time.sleep(30); os._exit(0)
time.sleep(30)
"""
GIVEN_BACK = """import mmap, os, time
for _ in range(6):
    if os.fork() == 0:
        area = mmap.mmap(-1, 150_000_000)
        for _ in range(15): area.write(bytes(10_000_000))
        area.madvise(mmap.MADV_DONTNEED)  # it is no longer this process's, and still there
        time.sleep(30); os._exit(0)
time.sleep(30)
"""
INHERITED = """import ctypes, os, time
for _ in range(8):
    if os.fork() == 0:
        for line in open("/proc/self/maps").readlines():
            place, rights, *_ = line.split()
            begin, end = (int(address, 16) for address in place.split("-"))
            for at in range(begin, end, 4096) if rights == "rw-p" else ():
                ctypes.memmove(at, at, 1)  # what was shared with the box becomes its own
        time.sleep(30); os._exit(0)
time.sleep(30)
"""
SEGMENTS = """import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
made = sum(libc.shmget(0, 100_000_000, 0o1600) >= 0 for _ in range(20))
assert made == 0, made
"""
PAIRS = """import os, socket, time
for _ in range(9):
    if os.fork() == 0:
        kept = []
        try:
            while True:
                for end in (pair := socket.socketpair()):
                    end.setblocking(False)
                    try: end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
                    except OSError: pass
                    try:
                        while True: end.send(bytes(1 << 16))
                    except BlockingIOError: pass
                kept += pair
        except OSError: pass
        time.sleep(30); os._exit(0)
time.sleep(30)
"""
UNACCEPTED = """import os, socket, time
for n in range(9):
    if os.fork() == 0:
        server = socket.socket(socket.AF_UNIX); server.bind(f"/tmp/{n}"); server.listen(4000)
        while True:
            with socket.socket(socket.AF_UNIX) as one:
                one.setblocking(False); one.connect(f"/tmp/{n}")
                try:
                    while True: one.send(bytes(1 << 16))
                except BlockingIOError: pass
time.sleep(30)
"""
AREAS = """import mmap, os, time
kept = [mmap.mmap(-1, 4096, prot=1 + n % 2 * 2) for n in range(7_500)]
for n in range(1, 7_500, 2): kept[n][0] = 1
for _ in range(28):
    if os.fork(): break
time.sleep(30)
"""
TALKS = """import os, time
def grow():
    area = bytearray(125_000_000)
    for at in range(0, len(area), 4096): area[at] = 1
    time.sleep(30); os._exit(0)
for _ in range(8):
    if os.fork() == 0: grow()
while True: print("." * 20_000, flush=True); time.sleep(0.1)
"""
SENDS = """send({"output": {"output_type": "stream", "name": "stdout", "text": "x" * 350_000}})"""
PRLIMIT = """import resource
for name in ("AS", "NPROC", "NOFILE", "FSIZE", "CPU", "CORE", "MEMLOCK"):
    number = getattr(resource, f"RLIMIT_{name}")
    for limit in ((resource.RLIM_INFINITY,) * 2, (resource.getrlimit(number)[1] + 1,) * 2):
        try: resource.setrlimit(number, limit); raise AssertionError(name)
        except (ValueError, OSError): pass
import os
try: os.nice(-5); raise AssertionError("nice")
except OSError: pass
try: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)); raise AssertionError("scheduler")
except OSError: pass
"""


def _cell(name: str, does: str, source: str, *verdicts: str, **more: object) -> Case:
    """Something done in a cell of one's own, before anything else."""
    return Case(name, does, {"first": source}, verdicts=verdicts or ("graded",), **more)  # type: ignore[arg-type]


def _answer(name: str, does: str, line: str, *verdicts: str, before: str = "", **more: object) -> Case:
    """Something done while softmax is asked."""
    source = f"{before}\ndef softmax(x, axis=-1):\n    {line}\n    return x"
    return Case(name, does, {"softmax": source}, loses=("softmax",), verdicts=verdicts, **more)  # type: ignore[arg-type]


CASES = (
    _answer("never-ends", "runs a loop that never ends", "while True: pass", "timeout", base="right", harmless=True, computes=True),
    _answer("never-ends-in-c", "searches with a regular expression that backtracks forever",
            're.match("(a|a?)+$", "a" * 40 + "b")', "timeout", before="import re", base="right", computes=True),
    _answer("counts-in-c", "computes a number with a hundred million digits", "10 ** 10 ** 8", "timeout", base="right", computes=True),
    _cell("sleeps", "sleeps for an hour", "import time; time.sleep(3600)", "timeout", base="right", harmless=True),
    _cell("cannot-be-stopped", "ignores every signal, and sleeps", STUBBORN + "forever()", "timeout", harmless=True),
    _answer("swallows-interrupts", "catches everything, KeyboardInterrupt too", "forever()", "timeout", before=STUBBORN),
    _cell("stops-itself", "stops its own process", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "graded"),
    _cell("waits-for-input", "waits for input in every possible way", """import getpass, pdb, sys, os
for ask in (input, getpass.getpass, breakpoint, sys.stdin.read, pdb.set_trace, lambda: os.read(0, 1)):
    try: ask()
    except (EOFError, Exception) as error: print(type(error).__name__)
""", "graded", "timeout", "student-error", base="right", harmless=True),
    _cell("threads-remain", "starts threads that never end",
          "import threading, time\nfor _ in range(2): threading.Thread(target=lambda: time.sleep(600)).start()", "graded",
          base="right"),
    _cell("forks-a-bomb", "forks until no more processes are allowed, and every child loops", BOMB, "timeout", computes=True),
    _cell("forks-without-end", "forks in every child", "import os, time\nif os.fork() == 0:\n    while True:\n"
          "        try: os.fork()\n        except OSError: pass\ntime.sleep(60)", "timeout", computes=True),
    _cell("hides-its-processor-time", "makes the kernel forget its children, and the processor time that they used", UNCOUNTED,
          "timeout", computes=True),
    _cell("leaves-daemons", "leaves daemons in sessions of their own", DAEMON, "graded", base="right"),
    _cell("drinks-from-pipes", "drains every pipe that could wake the process that supervises it", DRINKS, "graded",
          "timeout", "crashed"),
    _cell("signals-the-first-process", "sends every signal to the first process, which is its own",
          "import os\nfor number in range(1, 65):\n    try: os.kill(1, number)\n    except (OSError, KeyboardInterrupt): pass", "graded"),
    _cell("kills-everything", "kills every process that it may", "import os\nos.fork() or os._exit(0)\nos.kill(-1, 9)", "crashed", "graded", "student-error"),
    _cell("kills-its-parent", "kills its parent and its group",
          "import os\nos.kill(os.getppid(), 9)\nos.killpg(0, 9)", "graded"),
    _answer("kills-itself", "kills itself, in vain", "os.kill(os.getpid(), 9)", "graded", before="import os", base="right"),
    _answer("exits", "leaves the interpreter at once", "os._exit(0)", "crashed", before="import os", base="right", harmless=True),
    _answer("aborts", "aborts", "os.abort()", "crashed", before="import os", base="right"),
    _answer("faults", "reads from address 0", "ctypes.string_at(0)", "crashed", before="import ctypes", base="right", harmless=True),
    _cell("exits-politely", "calls sys.exit, exit and quit", "import sys\nsys.exit(0)", "student-error", "graded",
          base="right", harmless=True),
    _answer("exits-when-asked", "raises SystemExit while it is asked", "raise SystemExit", "graded", base="right", harmless=True),
    _cell("does-things-at-the-end", "registers exit functions that never return",
          "import atexit, time\natexit.register(time.sleep, 600)", "graded", base="right"),
    _cell("crashes-every-cell", "ends the process after every cell, and again after every restart",
          "import os\nget_ipython().events.register('post_run_cell', lambda *_: os._exit(1))", "crashed", harmless=True),
    _cell("fills-a-list", "fills a list until memory ends", "kept = []\nwhile True: kept.append(bytes(10_000_000))",
          "out-of-memory", base="right"),
    _answer("large-array", "makes an array of a hundred gigabytes", "np.ones((120_000, 120_000))", "graded",
            "out-of-memory", base="right"),
    _cell("fills-files-in-memory", "fills files that exist only in memory", MEMFD, "graded", "student-error"),
    _cell("fills-shared-memory", "has many processes fill memory that is shared", SHARED, "out-of-memory"),
    _cell("gives-memory-back", "has many processes fill memory that is shared, and give it back", GIVEN_BACK,
          "out-of-memory"),
    _cell("rewrites-what-it-inherits", "has many processes write to memory that they inherited, so that each gets its own copy", INHERITED,
          "out-of-memory"),
    _cell("fills-sockets", "has nine processes fill sockets, in which the kernel keeps what nobody reads", PAIRS,
          "out-of-memory"),
    _cell("fills-a-queue", "fills sockets that nobody has accepted, and closes its own ends", UNACCEPTED,
          "out-of-memory"),
    _cell("maps-many-areas", "makes the kernel keep lists of many areas of memory, for many processes", AREAS,
          "out-of-memory"),
    _cell("fills-segments", "takes segments of shared memory", SEGMENTS),
    _cell("talks-while-it-fills", "prints all the time to distract the grader while its children fill the memory", TALKS,
          "out-of-memory"),
    _cell("fills-the-disk", "writes files wherever it can until nothing is left", """import os
written = 0
for place in ("/tmp", "/dev/shm", "/scratch", "/warm"):
    try:
        for n in range(100):
            with open(f"{place}/{n}", "wb") as file:
                for _ in range(50): written += file.write(bytes(1_000_000))
    except OSError: pass
assert written < 60_000_000, written
for place in ("/tmp", "/dev/shm", "/scratch", "/warm"):
    for name in os.listdir(place):
        if os.path.isfile(f"{place}/{name}"): os.remove(f"{place}/{name}")  # and not the way to Python
""", base="right"),
    _cell("many-files", "makes a million empty files", """import os
try:
    for n in range(1_000_000): os.close(os.open(f"/scratch/{n}", os.O_CREAT))
except OSError: print(n)
assert n < 20_000
""", "graded", "timeout", base="right"),
    _cell("many-open", "opens files until there are no more", """import os
opened = []
try:
    while True: opened.append(os.open("/dev/null", 0))
except OSError: print(len(opened))
for fd in opened: os.close(fd)
""", base="right"),
    _cell("prints-forever", "prints without end", "while True: print('x' * 1000)", "output-limit", "timeout", base="right", computes=True),
    _cell("errors-forever", "prints to stderr without end",
          "import sys\nwhile True: sys.stderr.write('x' * 1000)", "timeout", "output-limit", base="right", computes=True),
    _cell("prints-too-much", "prints megabytes, and ends", "for _ in range(5000): print('x' * 1000)", "output-limit",
          base="right", harmless=True),
    _cell("writes-past-python", "writes megabytes past Python's streams",
          "import os, subprocess\nsubprocess.run('yes | head -c 5000000', shell=True)\nos.write(1, b'y' * 2_000_000)",
          "output-limit", "graded", base="right"),
    _cell("displays-too-much", "displays thousands of things", """from IPython.display import HTML, display
for n in range(400): display(HTML(f"<b>{n}</b>" * 200))
""", "output-limit", base="right"),
    _cell("updates-many-displays", "displays something five hundred times under one id, and updates it once with large content", """from IPython.display import display, update_display
for _ in range(500): display(0, display_id="a")
update_display("x" * 50_000, display_id="a")
""", "output-limit", base="right"),
    _cell("large-repr", "shows an object whose text is endless",
          "class R:\n    def __repr__(self): return 'x' * 50_000_000\nR()", "output-limit", "graded", base="right", harmless=True),
    _cell("large-error", "raises an error whose text is endless", "raise ValueError('x' * 50_000_000)", "student-error",
          base="right"),
    _answer("error-in-an-error", "raises an error that cannot be shown", "raise Odd", "graded", base="right", before=
            "class Odd(Exception):\n    def __str__(self): raise Odd\n    __repr__ = __str__", harmless=True),
    _answer("large-error-when-asked", "raises an error with megabytes of text while it is asked",
            "raise ValueError('\\x1b[31m<script>' * 1_000_000)", "graded", base="right"),
    _answer("recursion", "calls itself without end", "return softmax(x)", "graded", base="right", harmless=True),
    _cell("deep-recursion", "lifts the limit, and calls itself without end",
          "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return [f()]\nf()", "crashed", "student-error",
          "out-of-memory", "timeout", base="right", computes=True),
    _cell("raises-limits", "raises its limits", PRLIMIT),
    _cell("terminal-codes", "prints codes that move a terminal's cursor and set its title",
          "print('\\x1b[2J\\x1b]0;owned\\x07\\x1b[1;1H\\r\\x08', '\\u202egnp')", base="right", harmless=True),
    _cell("odd-characters", "prints invalid characters", "print('\\ud800 \\x00 \\x0b \\ufffe')", base="right", harmless=True),
    _cell("scripts", "shows scripts, frames and pictures from elsewhere", """from IPython.display import HTML, SVG, Javascript, display
for bad in ("<script>alert('OWNED')</script>", "<img src=x onerror=alert('OWNED')>", "<iframe src=//evil.example></iframe>",
            "<a href=javascript:alert(1)>x</a>", "<img src=http://evil.example/t.gif>", "<style>@import '//evil.example'</style>",
            "<base href=//evil.example>", "<meta http-equiv=refresh content=0;url=//evil.example>", "<form action=//evil.example>",
            "</pre></div></main></body><script>OWNED</script>", "<svg onload=alert('OWNED')>", "<math><mtext><script>OWNED"):
    display(HTML(bad)); print(bad)
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' onload='OWNED()'><script>OWNED()</script></svg>"))
display(Javascript("OWNED()")); display({"text/latex": "$\\\\href{javascript:OWNED()}{x}$", "text/markdown": "<script>OWNED</script>"}, raw=True)
raise ValueError("<script>OWNED</script>")
""", "student-error", base="right"),
    _cell("takes-outputs-back", "clears outputs, and updates those of other cells", """from IPython.display import clear_output, display
display("mine", display_id="a"); clear_output(); display("b", display_id="a")
display("other", display_id="softmax-check", update=True)
for n in range(300): display(n, display_id="a", update=True)
""", base="right"),
    Case("many-displays-updated", "shows very many things, and updates each of them", {"first": """
from IPython.display import display
handles = [display(n, display_id=str(n)) for n in range(800)]
for n in range(800): display(0, display_id=str(n), update=True)
"""}, base="right", verdicts=("graded", "output-limit")),
    _cell("nested-markup", "shows markup that is nested very deeply", """from IPython.display import HTML, display
display(HTML("<b><a><i>" * 950)); display(HTML("<table>" * 2900)); display(HTML("<div>" * 2900 + "x"))
""", base="right"),
    Case("nested-code", "hands in code that is nested too deeply to be read", {"first": "x = " + "-" * 20_000 + "1",
         "last": "y = " + "1+" * 20_000 + "1"}, base="right", verdicts=("student-error", "crashed", "out-of-memory")),
    Case("nested-brackets", "hands in code with very many brackets", {"first": "(" * 60_000, "last": "f(" * 500 + ")" * 500},
         base="right", verdicts=("student-error", "crashed")),
    Case("nested-text", "hands in text cells that take long to parse", base="right", edit=lambda data: data["cells"].extend(
         {"cell_type": "markdown", "id": f"text-{n}", "metadata": {}, "source": text} for n, text in enumerate(
             ("[" * 20_000, ">" * 20_000, "**a" * 10_000, "`" * 20_001, "$" * 20_001, "<b>" * 10_000, "|a" * 10_000 + "\n|-",
              "![x](" * 5_000, "$$\\frac" + "{" * 20_000, "&" * 20_000, "_a*b" * 5_000, "- " * 5_000 + "x")))),
    Case("outputs-of-many-cells", "sends outputs past its own limits, in each of many cells", {"first": FIND}, base="right",
         verdicts=("output-limit",), edit=lambda data: data["cells"].extend(
             {"cell_type": "code", "id": f"more-{n}", "metadata": {}, "source": SENDS, "outputs": [],
              "execution_count": None} for n in range(12))),
)  # fmt: skip
