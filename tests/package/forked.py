"""Run by test_package.py: imports the package once, then runs every script that it is told of in a fork of itself.

Reads one JSON list [script, folder] a line, and answers each with one line, [exit code, what was printed].
"""

import json
import os
import runpy
import sys
import tempfile
import traceback


def child(script, folder, output):
    status = 1
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    os.chdir(folder)
    sys.argv, sys.path[0] = [script], os.path.dirname(script)  # as python SCRIPT does
    try:
        runpy.run_path(script, run_name="__main__")
        status = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main():
    import unspool.study  # the scripts find it loaded, and torch with it

    assert unspool.study
    for line in sys.stdin:
        with tempfile.TemporaryFile() as output:
            pid = os.fork()
            if not pid:
                child(*json.loads(line), output)
            _, ended = os.waitpid(pid, 0)
            output.seek(0)
            print(json.dumps([os.waitstatus_to_exitcode(ended), output.read().decode(errors="replace")]), flush=True)


if __name__ == "__main__":
    main()
