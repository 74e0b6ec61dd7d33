#!/bin/bash
# Unpacks an archive, waits until its files are on the file system, and compares them with the
# archive.
#
#   untar.sh ARCHIVE untar [--blocking-factor=N] --directory=PATH --result=FILE
#
# Without a blocking factor tar uses its default, 20 blocks of 512 bytes.
set -u
# shellcheck source=checks/cases/scripts/result.sh
. "${0%/*}/result.sh"
# A user's options for tar would apply to both sides.
unset TAR_OPTIONS

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
write_result "$result" write "$(tar --version | head -n 1)" path="\"$directory\"" bytes="$bytes" files="$files" fsync=true \
    seconds="$(seconds "$start" "$end")" seconds_sync="$(seconds "$unpacked" "$end")" \
    bandwidth_gib_s="$(gib_s "$bytes" "$start" "$end")" verified_bytes="$bytes"
