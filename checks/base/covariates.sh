#!/bin/bash
# Prints the covariates of one node: its load average of the last minute, and how much the file
# system's client on it has moved so far.
#
#   covariates.sh FILE_SYSTEM [SCRIPT]     SCRIPT defines client_statistics
read -r load _ </proc/loadavg
echo "load $load"
if [ -n "${2-}" ]; then
    # shellcheck source=/dev/null
    source "./$2"
    client_statistics "$1"
fi
