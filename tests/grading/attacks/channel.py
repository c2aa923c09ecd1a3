"""Attacks on the channel that answers go through: frames that lie, break, flood or come at the wrong time."""
# ruff: noqa: E501 (the lines are the attackers' own)

from attacks.case import Case

# Find the channel among the open files, and write frames to it.
FIND = """import base64, json, os, socket, stat, struct, sys, threading, time
def channel():
    for fd in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): return fd
        except OSError: pass
fd = channel()
def raw(data):
    while data: data = data[os.write(fd, data):]
def frame(body, length=None): raw(struct.pack(">I", len(body) if length is None else length) + body)
def send(message): frame(json.dumps(message).encode())
def request():
    head = os.read(fd, 4)
    size, body = struct.unpack(">I", head)[0], b""
    while len(body) < size: body += os.read(fd, size - len(body))
    return json.loads(body)
"""
ENDLESS = "while True: time.sleep(60)"
DEAF = """import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
for _ in "ab": send({"done": True})
while True:
    try: time.sleep(60)
    except BaseException: pass
"""
ALL = ("softmax", "dot", "choice", "attention")
FORGED = """fake = {"array": ["<f8", [1, 3], [0, 1], base64.b64encode(np.ones(3).tobytes()).decode()]}
for nonce in ("", "0" * 32, None, 0, True, "f" * 32):
    send({"nonce": nonce, "error": None, "callable": True, "kind": "function", "module": False, "has": []})
    send({"nonce": nonce, "case": 0, "answer": {"arrays": {"weights": fake}, "changed": [], "problem": None}})
    send({"nonce": nonce, "value": "B", "error": None})
"""
# Take the requests from the channel in place of the process, and answer them with this function.
TAKEN = """import numpy as np
send({{"done": True, "cut": False}})
while True:
    asked = request()
    nonce = asked.get("nonce")
    if "inspect" in asked:
        send({{"nonce": nonce, "error": None, "callable": True, "kind": "function", "module": False, "has": []}})
    if "evaluate" in asked: send({{"nonce": nonce, "value": "Z", "error": None}})
    if "call" in asked:
        for number, case in asked["call"]["cases"]:
            {answer}
    send({{"done": True, "cut": False}})
"""


def _taken(name: str, does: str, answer: str, *verdicts: str) -> Case:
    source = FIND + TAKEN.format(answer=answer.replace("\n", "\n            "))
    return Case(f"channel-{name}", does, {"first": source}, loses=ALL, verdicts=verdicts or ("graded",))


def _answer(name: str, does: str, arrays: str, *verdicts: str) -> Case:
    """An answer that is none, sent with the right number."""
    answer = f"""try: body = {arrays}
except Exception as error: body = str(error)
send({{"nonce": nonce, "case": number, "answer": {{"arrays": body, "changed": [], "problem": None}}}})"""
    return _taken(name, does, answer, *verdicts)


def _own(
    name: str, does: str, source: str, *verdicts: str, loses: tuple[str, ...] = (), computes: bool = False
) -> Case:
    return Case(f"channel-{name}", does, {"first": FIND + source}, verdicts=verdicts, loses=loses, computes=computes)


def _in_answer(name: str, does: str, source: str, *verdicts: str, loses: tuple[str, ...] = ("softmax",)) -> Case:
    """Something that a function does while it is asked."""
    body = source.replace("\n", "\n    ")
    answer = f"{FIND}\ndef softmax(x, axis=-1):\n    {body}\n    return x"
    return Case(f"channel-{name}", does, {"softmax": answer}, verdicts=verdicts, loses=loses)


def _array(kind: str, shape: str, axes: str, data: str) -> str:
    return f'{{"weights": {{"array": [{kind}, {shape}, {axes}, {data}]}}, "scores": {{"array": [{kind}, {shape}, {axes}, {data}]}}}}'


ZERO = "base64.b64encode(bytes(24)).decode()"
CASES = (
    _own("done-early", "says that the cell is done, and goes on", 'send({"done": True})\n' + ENDLESS,
         "timeout", "tampered", loses=ALL),
    _own("done-always", "says that the cell is done, again and again, from a second thread", 'def flood():\n    while True:\n'
         '        send({"done": True, "cut": False}); time.sleep(0.001)\n'
         "threading.Thread(target=flood, daemon=True).start()",
         "graded", "tampered", "crashed", loses=ALL),
    _own("forged-answers", "sends answers with guessed numbers beforehand", "import numpy as np\n" + FORGED, "tampered"),
    _in_answer("forged-answers-meanwhile", "sends answers with guessed numbers while it is asked", FORGED, "tampered"),
    _taken("replayed-number", "reads the number of the question, and answers ones to everything",
           'one = base64.b64encode(np.ones(3).tobytes()).decode()\n'
           'arrays = {"weights": {"array": ["<f8", [3], [0], one]}, "scores": {"array": ["<f8", [1, 3], [0, 1], one]}}\n'
           'send({"nonce": nonce, "case": number, "answer": {"arrays": arrays, "changed": [], "problem": None}})'),
    _taken("claims-to-have-passed", "answers with a score in place of arrays",
           'send({"nonce": nonce, "case": number, "answer": {"passed": True, "score": 1.0, "points": 4, "arrays": {}}})'),
    _taken("no-case-answered", "answers no case at all", "pass"),
    _taken("cases-not-asked", "answers cases that were never asked",
           'send({"nonce": nonce, "case": number + 1000, "answer": {"arrays": {}}})', "tampered"),
    _taken("cases-twice", "answers every case twice",
           'for _ in "ab": send({"nonce": nonce, "case": number, "answer": {"arrays": {}}})', "tampered"),
    _taken("case-is-text", "numbers its answers with strings, booleans and fractions",
           'for odd in ("0", True, 0.0, None, [], 10**40): send({"nonce": nonce, "case": odd, "answer": {}})', "tampered"),
    _answer("pickled-objects", "sends arrays of pickled objects", _array('"|O"', "[3]", "[0]",
            'base64.b64encode(b"cos\\nsystem\\n(S\'id\'\\ntR.").decode()')),
    _answer("structured-type", "sends arrays of a structured type", _array('"<f8,<f8"', "[3]", "[0]", ZERO)),
    _answer("other-end-first", "sends numbers in the other byte order", _array('">f8"', "[3]", "[0]", ZERO)),
    _answer("text-array", "sends arrays of strings", _array('"<U6"', "[1]", "[0]", ZERO)),
    _answer("void-type", "sends arrays of an impossible type", _array('"|V24"', "[1]", "[0]", ZERO)),
    _answer("negative-size", "sends arrays of a negative size", _array('"<f8"', "[-1]", "[0]", ZERO)),
    _answer("endless-size", "sends arrays with more elements than a 64-bit integer can count",
            _array('"<f8"', "[2**63, 2**63]", "[0, 1]", ZERO)),
    _answer("endless-and-empty", "sends empty arrays with an endless dimension",
            _array('"<f8"', "[0, 2**80]", "[0, 1]", '""')),
    _answer("wrong-size", "sends arrays whose bytes do not fit", _array('"<f8"', "[4]", "[0]", ZERO)),
    _answer("axes-as-text", "sends arrays whose axes are strings", _array('"<f8"', "[3]", '["0"]', ZERO)),
    _answer("axes-twice", "sends arrays with an axis twice", _array('"<f8"', "[1, 3]", "[0, 0]", ZERO)),
    _answer("sizes-as-truth", "sends arrays whose sizes are True", _array('"<f8"', "[True, 3]", "[0, 1]", ZERO)),
    _answer("many-dimensions", "sends arrays of hundreds of dimensions",
            _array('"<f8"', "[1] * 300", "list(range(300))", ZERO)),
    _answer("no-dimension", "sends arrays without dimensions", _array('"<f8"', "[]", "[]", ZERO)),
    _answer("no-base64", "sends bytes that are not base64", _array('"<f8"', "[3]", "[0]", '"\\ud800!?" * 9')),
    _answer("odd-truth", "sends booleans that are neither 0 nor 1",
            _array('"|b1"', "[1, 3]", "[0, 1]", 'base64.b64encode(b"\\x02\\xff\\x80").decode()')),
    _answer("other-names", "sends arrays under other names", '{"passed": {"array": ["<f8", [3], [0], ' + ZERO + "]}}"),
    _answer("arrays-in-arrays", "sends nested lists in place of arrays", '{"weights": [[1.0] * 3], "scores": {"a": {}}}'),
    _answer("import-by-name", "asks the grader to import a module by name",
            '{"weights": {"function": ["os", "abort"]}, "scores": {"function": ["antigravity", "x"]}}'),
    _answer("large-arrays", "sends millions of numbers in each answer",
            _array('"<f8"', "[400000]", "[0]", "base64.b64encode(bytes(3200000)).decode()"), "output-limit"),
    _own("oversized-frame", "announces a frame of four gigabytes", 'frame(b"{}", 2**32 - 1)\n' + ENDLESS, "output-limit"),
    _own("truncated-frame", "sends half a frame, and waits", 'frame(b"{", 1000)\n' + ENDLESS, "timeout", "tampered"),
    _own("byte-by-byte", "sends a frame so slowly that it never ends",
         'raw(struct.pack(">I", 100_000))\nwhile True: raw(b" "); time.sleep(0.05)', "timeout"),
    _own("empty-frame", "sends an empty frame", 'frame(b"")', "tampered"),
    _own("no-json", "sends frames that are not JSON", 'frame(b"\\xff\\x00 done")', "tampered"),
    _own("junk", "writes random bytes", 'raw(os.urandom(100_000))\n' + ENDLESS, "tampered", "output-limit"),
    _own("deep-nesting", "sends JSON that is nested very deeply", 'frame(b"[" * 200_000)', "tampered"),
    _own("huge-number", "sends a number of many digits", 'frame(b\'{"done": \' + b"9" * 300_000 + b"}")', "tampered"),
    _own("no-object", "sends JSON that is not an object", 'for x in (b"1", b"[]", b"null", b\'"done"\'): frame(x)', "tampered"),
    _own("nan-and-twice", "sends NaN, Infinity and duplicate keys",
         'frame(b\'{"done": NaN, "done": Infinity, "output": {}, "output": -Infinity}\')', "tampered"),
    _own("many-small-values", "sends lists of very many small values",
         'frame(b\'{"output": [\' + b"[]," * 130_000 + b"0]}")', "tampered"),
    _own("interrupted-forever", "says again and again that it was interrupted",
         'while True: send({"interrupted": True})', "output-limit", "timeout", computes=True),
    _own("flood", "sends megabytes of outputs past its own limits",
         'text = "x" * 90_000\nfor _ in range(2000): send({"output": {"output_type": "stream", "name": "stdout", '
         '"text": text}})', "output-limit"),
    _own("outputs-unsound", "sends outputs of kinds and types that do not exist",
         'for x in (0, None, [], {}, {"output_type": []}, {"output_type": "stream", "name": 1, "text": 2}): '
         'send({"output": x})', "tampered"),
    _own("outputs-half-characters", "sends outputs that contain halves of characters (lone surrogates)",
         'for kind in ("stdout", "stderr"):\n'
         '    send({"output": {"output_type": "stream", "name": kind, "text": "a\\ud800b\\udfff\\x00"}})\n'
         'send({"output": {"output_type": "display_data", "data": {"text/html": "\\ud800"}, "display_id": "\\udfff"}})\n'
         'send({"output": {"output_type": "error", "ename": "\\ud800", "evalue": "\\ud800", "traceback": ["\\ud800"]}})',
         "student-error"),
    _own("report-as-output", "sends a report of full marks as an output of its own",
         'send({"output": {"output_type": "execute_result", "data": {"text/plain": "4.0", '
         '"application/vnd.attnlib.report+json": {"passed": True}}, "metadata": {"x": 1}, "execution_count": 7}})',
         "graded"),
    _own("closed", "closes the channel", "os.close(fd)", "crashed"),
    _own("hung-up", "shuts the channel down, and keeps running", "socket.socket(fileno=fd).shutdown(2)\n" + ENDLESS, "crashed"),
    _own("replaced", "puts another socket in place of the channel",
         "ours, theirs = socket.socketpair()\nos.dup2(theirs.fileno(), fd)", "crashed"),
    Case("channel-never-read", "stops reading, and leaves the grader a large cell to send",
         {"first": FIND + DEAF, "softmax": "#" * 450_000}, verdicts=("timeout",), loses=ALL),
    _own("out-of-band", "sends out-of-band bytes and open files",
         "end = socket.socket(fileno=os.dup(fd))\ntry: end.send(b'!', socket.MSG_OOB)\nexcept OSError: pass\n"
         "socket.send_fds(end, [b'{'], [0, 1, 2])\n" + ENDLESS, "timeout", "output-limit", "tampered"),
    _in_answer("answers-late", "answers questions that are over, in later cells",
               "threading.Timer(0.2, lambda: [send({'nonce': '0' * 32, 'value': 'B'}) for _ in range(50)]).start()",
               "tampered", "graded", loses=("softmax",)),
    _in_answer("asks-itself", "makes the process's own machinery answer in its place",
               "runner = get_ipython().sink.__self__\nrunner.answers.give({'evaluate': '1', 'nonce': '0' * 32})", "tampered"),
)  # fmt: skip
