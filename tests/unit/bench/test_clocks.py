"""CPU time of other processes."""

import multiprocessing
import subprocess
import sys
import time

from bench.clocks import Clocks


def burn(seconds: float) -> None:
    while time.process_time() < seconds:
        pass


def test_an_engine_is_every_process_this_one_started() -> None:
    child = multiprocessing.get_context("spawn").Process(target=burn, args=(60.0,))
    child.start()
    try:
        clocks = Clocks()
        begun = clocks.read()
        while clocks.read().engine_cpu < begun.engine_cpu + 0.2:
            time.sleep(0.02)
        ended = clocks.read()
        assert ended.wall - begun.wall >= 0.2
        assert ended.client_cpu - begun.client_cpu < ended.wall - begun.wall
    finally:
        child.kill()
        child.join()


def test_without_an_engine_its_clock_stands_still() -> None:
    # In a process of its own: this one may have started engines for other tests.
    code = "from bench.clocks import Clocks; assert Clocks().read().engine_cpu == 0"
    subprocess.run([sys.executable, "-c", code], check=True)
