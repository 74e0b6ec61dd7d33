"""How fast benchio is: pairwise ratios to IOR, fio and itself, and the memory it takes.

`make bench` runs this and writes `docs/benchmarks.md`. May know benchio's command line and result
file, and the files of the programs that it is compared with; knows nothing of ReFrame or `iobands`.
"""
