"""Problems timed beside other libraries: ``python -m benchmarks NAME``; ``--list`` names the problems.

Each contender lives in a process of its own, which is kept for the whole run. The processes take turns, one repeat at a
time, so that a busy spell of the machine meets all of them, and the minimum of the repeats is reported.
"""
