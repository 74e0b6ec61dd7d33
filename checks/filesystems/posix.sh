# shellcheck shell=bash disable=SC2034,SC2154
# Any file system without stripes, for the probe, which sets file_system before it calls anything.

show_quota() {
    local source
    source=$(df --output=source "$file_system" | tail -n 1)
    timeout 10 quota -v -w -p -u -g | awk -v source="$source" '
        { sub(/^ +/, "") }
        index($0, source " ") == 1 && NF == 8 + split(source, words)'
}
