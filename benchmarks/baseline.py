"""The baseline for grading: cells in a bare IPython shell, one fork for each submission. No box, judge, or gradebook.

`python benchmarks/baseline.py` reads submissions from its input (JSON, a list of cells for each) and prints the seconds
per submission.
"""

import gc
import io
import json
import os
import sys
import time

from grading.sandbox.inside.shell import warmed


def main() -> None:
    submissions = json.load(sys.stdin)
    shell = warmed()
    gc.collect()
    gc.freeze()  # as the box does, so that what is compared starts alike
    begin = time.perf_counter()
    for sources in submissions:
        child = os.fork()
        if not child:
            sys.stdout = sys.stderr = io.StringIO()
            for source in sources:
                shell.run_cell(source, store_history=False)
            os._exit(0)
        os.waitpid(child, 0)
    print((time.perf_counter() - begin) / len(submissions))


if __name__ == "__main__":
    main()
