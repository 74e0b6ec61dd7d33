#!/bin/sh
# Each process prints its node and the node's time, and then becomes the program, if any. The errors
# of the program go to a file, as a launcher may lose the last output of processes that it ends. The
# process id tells apart nodes with the same name.
echo "iobands-node ${SLURMD_NODENAME:-$(uname -n)} $(date +%s.%N)"
[ $# -eq 0 ] || exec "$@" 2>"complaint-$(uname -n)-$$"
