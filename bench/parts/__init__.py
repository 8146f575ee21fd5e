"""The parts of the benchmark, one module each (:mod:`bench.registry`)."""
