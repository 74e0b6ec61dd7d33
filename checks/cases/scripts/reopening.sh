#!/bin/bash
# Appends records of 1 KiB to a file, which is opened and closed for each record or once for all, and
# waits until they are on the file system.
#
#   reopening.sh RECORDS reopening [--once] --directory=PATH --result=FILE
set -u
# shellcheck source=checks/cases/scripts/result.sh
. "${0%/*}/result.sh"

records=$1
shift 2
once=
for option; do
    case $option in
    --once) once=once ;;
    --directory=*) file=${option#*=}/file ;;
    --result=*) result=${option#*=} ;;
    *) fail "unknown option $option" ;;
    esac
done
record=$(printf '%01024d' 0)

append_once() {
    for ((n = 0; n < records; n++)); do
        printf %s "$record" || return
    done >>"$file"
}

append_each() {
    for ((n = 0; n < records; n++)); do
        printf %s "$record" >>"$file" || return
    done
}

rm -f -- "$file"
start=$(date +%s%N)
"append_${once:-each}" || fail "$file could not be written"
written=$(date +%s%N)
sync "$file" || fail "sync ended with status $?"
end=$(date +%s%N)
bytes=$((records * 1024))
if [ "$(tr -d 0 <"$file" | wc -c)" -ne 0 ] || [ "$(wc -c <"$file")" -ne "$bytes" ]; then
    fail "$file does not contain what was written to it"
fi
write_result "$result" write "$BASH_VERSION" bytes="$bytes" files=1 fsync=true \
    seconds="$(seconds "$start" "$end")" seconds_sync="$(seconds "$written" "$end")" \
    bandwidth_gib_s="$(gib_s "$bytes" "$start" "$end")" verified_bytes="$bytes"
