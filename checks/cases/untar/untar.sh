#!/bin/bash
# Unpacks an archive, waits until what came out of it is on the file system, and compares it with
# the archive. Leaves a result file in benchio's form (docs/contracts.md), with one write phase.
#
#   untar.sh ARCHIVE untar [--blocking-factor=N] --directory=PATH --result=FILE
#
# Without a blocking factor tar takes its own, 20 blocks of 512 bytes.
set -u
# What a user has set for tar would be a setting of both sides.
unset TAR_OPTIONS

fail() {
    echo "iobands: untar: $*" >&2
    exit 1
}

archive=$1
shift 2
blocking=()
for option; do
    case $option in
    --blocking-factor=*) blocking=("-b" "${option#*=}") ;;
    --directory=*) directory=${option#*=} ;;
    --result=*) result=${option#*=} ;;
    *) fail "unknown option $option" ;;
    esac
done

find "$directory" -mindepth 1 -delete || fail "$directory cannot be emptied"
start=$(date +%s%N)
tar "${blocking[@]}" -x -f "$archive" -C "$directory" || fail "tar ended with status $?"
unpacked=$(date +%s%N)
find "$directory" -type f -exec sync {} + || fail "sync ended with status $?"
end=$(date +%s%N)
tar -d -f "$archive" -C "$directory" || fail "what was unpacked differs from the archive"

read -r files bytes < <(find "$directory" -type f -printf '%s\n' | awk '{n++; s += $1} END {printf "%d %.0f\n", n, s}')
awk -v files="$files" -v bytes="$bytes" -v start="$start" -v unpacked="$unpacked" -v end="$end" \
    -v path="$directory" -v version="$(tar --version | head -n 1)" 'BEGIN {
    seconds = (end - start) / 1e9
    printf "{\"schema\": \"benchio/4\", \"version\": \"%s\", \"layer\": \"untar\", ", version
    printf "\"pattern\": \"untar\", \"interface\": \"posix\", \"operation\": \"write\", \"repeat\": 1, "
    printf "\"path\": \"%s\", \"nodes\": 1, \"processes\": 1, \"bytes\": %.0f, ", path, bytes
    printf "\"files\": %d, \"fsync\": true, \"seconds\": %.9f, ", files, seconds
    printf "\"seconds_sync\": %.9f, ", (end - unpacked) / 1e9
    printf "\"bandwidth_gib_s\": %.9g, \"verified_bytes\": %.0f, \"hints\": {}}\n", bytes / seconds / 2 ^ 30, bytes
}' > "$result"
