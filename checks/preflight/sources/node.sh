#!/bin/sh
# What each process does: it prints its node and the node's time, and becomes the program, if any.
# What the program complains of goes to a file, since a launcher may lose the last words of processes
# that it ends. The process id tells nodes of one name apart.
echo "iobands-node ${SLURMD_NODENAME:-$(uname -n)} $(date +%s.%N)"
[ $# -eq 0 ] || exec "$@" 2>"complaint-$(uname -n)-$$"
