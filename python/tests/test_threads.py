"""Threads, Ctrl-C, and an interpreter that ends."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import compflow


def large():
    return np.random.default_rng(0).normal(size=(4000, 32)).astype(np.float32)


def test_two_fits_at_once_find_what_each_finds_alone(X):
    alone = [compflow.CKM(3, restarts=20).fit(X).sets_, compflow.CAP().fit(X).sets_]
    found = [None, None]

    def fit(at, model):
        found[at] = model.fit(X).sets_

    models = [compflow.CKM(3, restarts=20), compflow.CAP()]
    threads = [threading.Thread(target=fit, args=pair) for pair in enumerate(models)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == alone


def test_python_goes_on_during_a_fit():
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    compflow.KMeans(50, degree=1, restarts=5).fit(large())
    seconds = time.perf_counter() - start
    stop.set()
    thread.join()
    assert counted[0] > 100 * seconds, f"{counted[0]} in {seconds} s"


def run(code, stop_after=None, expected=0):
    """Runs a script of its own, and sends Ctrl-C as soon as it says that it has begun."""
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n", process.communicate()
    if stop_after is not None:
        time.sleep(stop_after)
        process.send_signal(signal.SIGINT)
    start = time.perf_counter()
    out, errors = process.communicate(timeout=60)
    return process.returncode, out, errors, time.perf_counter() - start


BEGIN = """
    import numpy as np, compflow, threading, sys, time
    X = np.random.default_rng(0).normal(size=(20000, 64)).astype(np.float32)
    compflow.KMeans(2).fit(X[:10])
    print("begun", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_a_fit_soon_and_python_goes_on():
    code = BEGIN + """
    try:
        compflow.KMeans(2000, degree=1, restarts=1000).fit(X)
    except KeyboardInterrupt:
        print("stopped", compflow.KMeans(2).fit(X[:10]).n_features_in_)
    """
    status, out, errors, seconds = run(code, stop_after=0.5)
    assert (status, out) == (0, "stopped 64\n"), errors
    assert seconds < 3


def test_an_interpreter_that_ends_stops_the_work_of_its_threads():
    code = BEGIN + """
    def work():
        compflow.KMeans(2000, degree=1, restarts=1000).fit(X)
    def compose():
        slow = compflow.Function(lambda a, b: (time.sleep(0.001), np.maximum(a, b))[1], lambda a, b, g: (g, g))
        compflow.CKM(5, restarts=10000, composer=slow).fit(X[:500])
    for task in (work, compose):
        threading.Thread(target=task, daemon=True).start()
    time.sleep(0.5)
    """
    status, _, errors, seconds = run(code)
    assert status == 0, errors
    assert "Fatal" not in errors and "panicked" not in errors
    assert seconds < 8
