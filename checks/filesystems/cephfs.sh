# shellcheck shell=bash disable=SC2034,SC2154
# CephFS, for job scripts and for the probe: both set file_system before they call anything.

needed=(setfattr getfattr)

# Ceph ends its output without a line break, and the next section of the probe would join it.
list_targets() {
    timeout 20 ceph osd stat --format json && echo
}

# require_targets COUNT [KNOWN]: sets $targets, the number of OSDs that are up, and ends the job
# where a file cannot have COUNT stripes; -1 stands for all. KNOWN is the site configuration's.
require_targets() {
    targets=${2:-$(sed -n 's/.*"num_up_osds": *\([0-9]*\).*/\1/p' targets.txt)}
    [ -n "$targets" ] ||
        refuse "stripe count asked: ${1/#-1/all OSDs}; how many are up cannot be seen here with" \
            "ceph osd stat: say it as targets in the site file's striping"
    [ "$targets" -ge "$1" ] || refuse "stripe count asked: $1; there are $targets OSDs up"
}

# stripe ATTRIBUTE=VALUE...: all at once, as the size of a stripe is checked against an object's.
stripe() {
    or_refuse "Ceph did not take the layout asked for (a client needs the capability p)" \
        setfattr -n ceph.dir.layout -v "$*" "$run_directory"
}

read_layout() {
    find "$run_directory" -type f -exec \
        getfattr --absolute-names -n ceph.file.layout {} + >layout.txt 2>&1
}

# Of the directory and of all above it that are on the same file system.
show_quota() {
    local directory=$file_system mount_point unit limit used
    mount_point=$(df --output=target "$file_system" | tail -n 1)
    while [ "$(df --output=target "$directory" | tail -n 1)" = "$mount_point" ]; do
        for unit in bytes files; do
            limit=$(attribute "ceph.quota.max_$unit" "$directory") || limit=0
            used=$(attribute "ceph.dir.r$unit" "$directory") || continue
            echo "quota-of $unit $limit $used"
        done
        [ "$directory" != / ] || break
        directory=$(dirname "$directory")
    done
}

attribute() {
    getfattr --absolute-names --only-values -n "$1" "$2"
}
