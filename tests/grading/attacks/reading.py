"""Reading or altering what is the instructor's, another student's, or the machine's."""
# ruff: noqa: E501 (the lines are the attackers' own)

from pathlib import Path

from attacks.case import Case

# Everything in reach that looks like a secret of the test: the marks begin with these letters.
HUNT = """import os, stat, time
LETTERS = b"CAN" + b"ARY-"
def look(path, most=2_000_000):
    try:
        if not stat.S_ISREG(os.stat(path).st_mode): return
        with open(path, "rb") as file: data = file.read(most)
    except OSError: return
    at = data.find(LETTERS)
    while at >= 0:
        print(path, data[at:at + 60]); at = data.find(LETTERS, at + 1)
def hunt(*places, seconds=1.0):
    until = time.monotonic() + seconds
    for place in places:
        for folder, inside, files in os.walk(place):
            inside[:] = [x for x in inside if os.path.join(folder, x) not in ("/usr", "/proc", "/lib", "/sys")]
            for name in files:
                if time.monotonic() > until: return
                look(os.path.join(folder, name))
"""
MEMORY = """import os, re
LETTERS = b"CAN" + b"ARY-"
for pid in os.listdir("/proc"):
    if not pid.isdigit(): continue
    for name in ("environ", "cmdline", "mem", "maps", "mountinfo", "fd", "root", "cwd"):
        place = f"/proc/{pid}/{name}"
        try:
            if name in ("fd",): print(place, [os.readlink(f"{place}/{x}") for x in os.listdir(place)]); continue
            if name in ("root", "cwd"): print(place, os.listdir(place)); continue
            if name == "mem":
                for line in list(open(f"/proc/{pid}/maps"))[-60:]:
                    start, end = (int(x, 16) for x in line.split()[0].split("-"))
                    if "r" not in line.split()[1] or end - start > 50_000_000: continue
                    with open(place, "rb", buffering=0) as file:
                        file.seek(start); data = file.read(end - start)
                    for found in re.finditer(LETTERS + rb"[0-9a-z-]+", data): print(place, found.group())
                continue
            data = open(place, "rb").read()
            for found in re.finditer(LETTERS + rb"[0-9a-z-]+", data): print(place, found.group())
        except OSError: pass
"""
OTHERS = """import ctypes, os
def refused(what):
    try: what(); return False
    except OSError: return True
assert os.getppid() == 0
libc = ctypes.CDLL(None, use_errno=True)
for pid in (*range(2, 300), 2**15, -1):
    assert refused(lambda: os.kill(pid, 0)), pid
    assert refused(lambda: os.listdir(f"/proc/{pid}")), pid
    assert libc.ptrace(16, pid, 0, 0) == -1
    assert libc.syscall(310, pid, 0, 0, 0, 0, 0) == -1, "process_vm_readv"
"""
CALLS = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, *numbers in (("unshare", 272, 0x10000000), ("setns", 308, 0, 0), ("mount", 165, 0, 0, 0, 0, 0),
                       ("umount", 166, 0, 0), ("pivot_root", 155, 0, 0), ("chroot", 161, 0), ("ptrace", 101, 0, 0, 0, 0),
                       ("bpf", 321, 0, 0, 0), ("keyctl", 250, 0, 0), ("add_key", 248, 0, 0, 0, 0, 0),
                       ("io_uring_setup", 425, 1, 0), ("userfaultfd", 323, 0), ("perf_event_open", 298, 0, 0, 0, 0, 0),
                       ("open_by_handle_at", 304, 0, 0, 0), ("personality", 135, 0x0040000), ("reboot", 169, 0, 0, 0, 0),
                       ("init_module", 175, 0, 0, 0), ("kexec_load", 246, 0, 0, 0, 0), ("setuid", 105, 0),
                       ("clock_settime", 227, 0, 0), ("sethostname", 170, 0, 0), ("swapon", 167, 0, 0),
                       ("memfd_create", 319, b"x", 0), ("shmget", 29, 0, 4096, 0o1600), ("fsopen", 430, 0, 0),
                       ("pidfd_getfd", 438, 0, 0, 0), ("move_mount", 429, 0, 0, 0, 0, 0)):
    ctypes.set_errno(0)
    assert libc.syscall(*numbers) == -1, name
for name, number in (("move_pages", 279), ("mbind", 237), ("process_madvise", 440), ("open_tree_attr", 467),
                     ("statmount", 457), ("listmount", 458), ("mincore", 27), ("cachestat", 451), ("preadv2", 327),
                     ("migrate_pages", 256), ("seccomp", 317), ("clone3", 435), ("splice", 275), ("sysinfo", 99)):
    ctypes.set_errno(0)
    assert libc.syscall(number, -1, -1, -1, -1, -1, -1) == -1 and ctypes.get_errno() == 38, name
assert os.getuid() != 0 and os.geteuid() != 0
"""
NETWORK = """import socket, subprocess
for family, address in ((socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_INET, ("127.0.0.1", 8888)),
                        (socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET6, ("::1", 80))):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try: s = socket.socket(family, kind); s.settimeout(1); s.connect(address); s.send(b"x"); print("CONNECTED", address)
        except OSError: pass
for number in (16, 17, 40, 2):
    try: socket.socket(number, socket.SOCK_RAW); print("CONNECTED", number)
    except OSError: pass
try: print("CONNECTED", socket.getaddrinfo("example.com", 80))
except OSError: pass
"""
LOCAL = """import socket, glob
for path in ["/run/docker.sock", "/var/run/docker.sock", "/run/systemd/private", *glob.glob("/tmp/.X11-unix/*")]:
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); print("CONNECTED", path)
    except OSError: pass
for name in open("/proc/net/unix").read().split("\\n")[1:]:
    if "@" in name: print("CONNECTED", name)
s = socket.socket(socket.AF_UNIX); s.bind("\\0leftover"); s.listen()
"""
MODULES = """import os, importlib, importlib.util, pathlib, sys
for name in ("attnlib.checks.catalogue", "attnlib.checks.evaluation", "attnlib.checks.report", "grading.judge",
             "grading.graded_cell", "grading.gradebook.assignment", "grading.course", "attnlib.checks.questions"):
    try: importlib.import_module(name); print("FOUND", name)
    except ImportError: pass
for place in {"/payload", os.getcwd(), *(str(x) for x in pathlib.Path("/work").glob("*/*") if not x.name.startswith("."))}:
    for name in ("catalogue", "solutions", "gradebook.db", "judge.py", "nbgrader_config.py"):
        for found in pathlib.Path(place).glob(f"**/{name}"):
            print("FOUND", found)
"""
LEAVES = """import os, shutil, socket, subprocess, threading, time
mark = "MARK"
for place in ("/tmp", "/scratch", "/dev/shm", "/warm", "/var/tmp", "/", "/dev", "/payload", os.getcwd(), "/run", "/home"):
    try:
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, "left-behind"), "w") as file: file.write(mark)
    except OSError: pass
s = socket.socket(socket.AF_UNIX); s.bind("\\0" + mark); s.listen()
os.environ["LEFT"] = mark
child = subprocess.Popen(["sleep", "600"], env={"LEFT": mark}, start_new_session=True)
try: os.mkfifo("/tmp/pipe-" + mark)
except OSError: pass
import attnlib
try: open(attnlib.__file__, "a").write("# " + mark)
except OSError: pass
"""
FINDS = (
    HUNT
    + """
hunt("/tmp", "/scratch", "/dev", "/warm", "/var", "/run", "/home", "/payload")
for place in ("/tmp", "/scratch", "/dev/shm", "/warm"): print("LEFT", place, [x for x in os.listdir(place) if "left" in x])
assert "leftover" not in open("/proc/net/unix").read()
assert "LEFT" not in os.environ
assert len([x for x in os.listdir("/proc") if x.isdigit()]) <= 2
"""
)
WRITES = """import os, pathlib
for place in ("/payload", "/usr", "/etc", "/", "/dev", "/proc/sys/kernel", "/lib", "/bin", os.path.dirname(os.__file__)):
    for name in ("x.py", "sitecustomize.py", "core_pattern", "hostname"):
        try: open(os.path.join(place, name), "w").write("1"); print("WROTE", place, name)
        except OSError: pass
for place in ("/payload/attnlib/__init__.py", os.__file__, "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern"):
    try: open(place, "a").write("\\n"); print("WROTE", place)
    except OSError: pass
    try: os.chmod(place, 0o777); print("WROTE", place)
    except OSError: pass
    try: os.remove(place); print("WROTE", place)
    except OSError: pass
"""
SETUID = """import os, subprocess
found = [os.path.join(d, f) for d in ("/bin", "/usr/bin", "/usr/sbin", "/usr/lib/openssh") if os.path.isdir(d)
         for f in os.listdir(d) if os.path.isfile(os.path.join(d, f)) and os.stat(os.path.join(d, f)).st_mode & 0o4000]
for line in (["su", "-c", "id"], ["mount", "-t", "tmpfs", "x", "/tmp"], ["sudo", "-n", "id"], ["newgrp"], ["bwrap", "true"],
             ["unshare", "-r", "id"]):
    try:
        done = subprocess.run(line, capture_output=True, timeout=2, stdin=subprocess.DEVNULL)
        if done.returncode == 0: print("RAN", line, done.stdout)
    except (OSError, subprocess.TimeoutExpired): pass
"""
OWN_MEMORY = """import ctypes, re
LETTERS = b"CAN" + b"ARY-"
looked = []
def softmax(x, axis=-1):
    for line in list(open("/proc/self/maps"))[-20:] if not looked else ():
        looked.append(line)
        start, end = (int(n, 16) for n in line.split()[0].split("-"))
        if "rw" in line.split()[1] and end - start < 5_000_000 and "[v" not in line:
            data = ctypes.string_at(start, end - start)
            for found in re.finditer(LETTERS + rb"[0-9a-z-]{20,}", data): print("MEMORY", found.group())
    return np.ones(np.shape(x))
"""
SOURCE = """import inspect, attnlib
code = inspect.getsource(attnlib.softmax)
print(len(code))
def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)
"""
ABOVE = """import os
for up in range(12):
    place = "/".join([".."] * up) or "."
    for name in ("solutions", "submitted", "gradebook.db", "autograded", "victim", ".ssh", "class", ".git", "small.ipynb"):
        if os.path.exists(os.path.join(place, name)): print("FOUND", place, name)
for name in ("@ROOT@/grading", "@ROOT@/solutions", "/root/.ssh", "/root/.bash_history", "/etc/shadow", "/etc/passwd",
             "/var/log", "/proc/kcore", "/sys/kernel", "/boot", "/dev/mem", "/dev/vda", "/dev/kmsg"):
    try: print("FOUND", name, os.listdir(name) if os.path.isdir(name) else open(name, "rb").read(10))
    except OSError: pass
""".replace("@ROOT@", str(Path(__file__).parents[3]))

TALKS = """import ctypes, fcntl, os, struct
def refused(what, *arguments):
    try: what(*arguments); return False
    except OSError: return True
libc = ctypes.CDLL(None, use_errno=True)
env, folder = os.open("/usr/bin/env", os.O_RDONLY), os.open("/usr/bin", os.O_RDONLY)
for bit in range(240):
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, bit, 1, 0)
    assert refused(fcntl.fcntl, env, fcntl.F_SETLK, lock) and refused(fcntl.fcntl, env, fcntl.F_GETLK, lock), "locks"
for command in (36, 37, 38, 1024, 1025):
    assert refused(fcntl.fcntl, env, command, bytes(32)), command
assert refused(fcntl.fcntl, folder, fcntl.F_NOTIFY, 1), "F_NOTIFY"
assert refused(fcntl.flock, env, fcntl.LOCK_SH), "flock"
assert refused(os.getloadavg), "load"
for name in ("null", "zero", "full", "random", "urandom", "tty"):
    assert refused(os.utime, f"/dev/{name}"), name
for number in (27, 99, 327, 437, 451):  # mincore, sysinfo, preadv2, openat2, cachestat
    assert libc.syscall(number, -1, -1, -1, -1, -1, -1) == -1 and ctypes.get_errno() == 38, number
for path in ("/proc/sys/kernel/pty/nr", "/proc/sys/fs/file-nr", "/proc/sys/fs/inode-nr"):
    assert not os.path.exists(path), path
for path in ("/proc/loadavg", "/proc/uptime", "/proc/vmstat", "/proc/interrupts", "/proc/locks", "/proc/diskstats"):
    assert not open(path).read(), path
assert open("/proc/stat").read() == open("/proc/stat").read() and os.cpu_count() and open("/proc/cpuinfo").read()
"""

CASES = (
    Case("reads-the-machine", "looks for secrets in every file in reach", {"first": HUNT + 'hunt("/")'}),
    Case("reads-around-it", "looks for the class, the solutions and the system's files", {"first": ABOVE}),
    Case("reads-processes", "reads the memory, files and environments of every process", {"first": MEMORY}),
    Case("reads-own-memory", "looks through its own memory while answers are requested", {"softmax": OWN_MEMORY},
         loses=("softmax",)),
    Case("reads-others", "tries every process number, and looks into the processes that it finds", {"first": OTHERS}),
    Case("reads-environment", "prints its environment, command line and mounts",
         {"first": "import os\nprint(os.environ, open('/proc/self/cmdline').read(), open('/proc/self/mountinfo').read())"}),
    Case("reads-the-catalogue", "looks for the modules that know the answers, and imports them", {"first": MODULES}),
    Case("reads-the-library", "reads the source of the library's own function", {"softmax": SOURCE}, flagged=True),
    Case("alters-the-box", "writes into the library, the system and the kernel's settings", {"first": WRITES}),
    Case("alters-nothing-by-calls", "makes the system calls that have let processes out of boxes", {"first": CALLS}),
    Case("reaches-the-network", "connects, sends, and resolves names", {"first": NETWORK}),
    Case("reaches-local-sockets", "connects to sockets of the machine", {"first": LOCAL}),
    Case("becomes-root", "runs the programs that grant other privileges", {"first": SETUID}),
    Case("leaves-things-1", "leaves files, processes and names for whoever comes next", {"first": LEAVES}),
    Case("leaves-things-2", "does so again, in the other box", {"first": LEAVES}),
    Case("talks-1", "passes bits to the box beside it, through locks, notifications, timing and the kernel's counters", {"first": TALKS}),
    Case("talks-2", "does so again, in the other box", {"first": TALKS}),
    Case("looks-for-leftovers-1", "looks for what others left behind", {"first": FINDS}),
    Case("looks-for-leftovers-2", "does so again, in the other box", {"first": FINDS}),
)  # fmt: skip
