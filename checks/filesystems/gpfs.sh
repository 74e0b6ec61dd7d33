# shellcheck shell=bash disable=SC2034,SC2154
# Spectrum Scale (GPFS), for job scripts and for the probe: both set file_system before they call
# anything. Without its commands, a run works if the site file demands no placement.

PATH=$PATH:/usr/lpp/mmfs/bin

# list_targets [POOL]: prints the name of the pool to use, if any, and all disks.
list_targets() {
    [ -z "${1-}" ] || echo "pool $1"
    within 20 mmlsdisk "$(device)" -Y
}

# list_space [POOL]: only of disks with data, as IBM calls mmdf I/O intensive.
list_space() {
    within 20 mmdf "$(device)" -d ${1:+-P "$1"} -Y
}

device() {
    df --output=source "$file_system" | tail -n 1
}

# look_at_targets [POOL]: for the probe, in its sections. Only root may call mmgetstate.
look_at_targets() {
    section "target space"
    list_space "$@"
    section "node state"
    timeout 10 mmgetstate -Y
}

# The files are listed too, as mmlsattr may pass over some.
read_layout() {
    find "$run_directory" -type f -exec mmlsattr -L {} + >layout.txt 2>&1 || :
    find "$run_directory" -type f -printf 'asked: %p\n' >>layout.txt
}

# The limits and use of user, group and fileset; mmlsquota has KiB and files, 0 for no limit.
show_quota() {
    timeout 10 mmlsquota -Y "$(device)" | awk -F : '
        $3 == "HEADER" { for (n = 1; n <= NF; n++) at[$n] = n; next }
        $1 == "mmlsquota" {
            bytes = $at["blockLimit"] > 0 ? $at["blockLimit"] : $at["blockQuota"]
            files = $at["filesLimit"] > 0 ? $at["filesLimit"] : $at["filesQuota"]
            printf "quota-of bytes %.0f %.0f\n", bytes * 1024, $at["blockUsage"] * 1024
            printf "quota-of files %.0f %.0f\n", files, $at["filesUsage"]
        }'
}
