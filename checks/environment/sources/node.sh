#!/bin/sh
# What each process does: it tells its node and the node's time, and becomes the program, if any.
echo "iobands-node ${SLURMD_NODENAME:-$(uname -n)} $(date +%s.%N)"
[ $# -eq 0 ] || exec "$@"
