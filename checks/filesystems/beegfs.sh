# shellcheck shell=bash disable=SC2034,SC2154
# BeeGFS, for job scripts and for the probe: both set file_system before they call anything.
# BeeGFS 7 has the command beegfs-ctl, BeeGFS 8 beegfs.

needed=("beegfs-ctl beegfs")
client_settings=/proc/fs/beegfs

is_seven() {
    command -v beegfs-ctl >/dev/null
}

# configuration: the client's configuration file of this mount; a node may have several mounted. The
# option --mount of beegfs-ctl would find it, but fails in 7.4.7.
configuration() {
    findmnt --noheadings --output OPTIONS --target "$file_system" | grep -o 'cfgFile=[^,]*' ||
        echo cfgFile=/etc/beegfs/beegfs-client.conf
}

# with_management COMMAND...: runs it with the address of the management server. By itself, BeeGFS 8
# finds that only where a single file system is mounted.
with_management() {
    local -x BEEGFS_MGMTD_ADDR=${BEEGFS_MGMTD_ADDR:-auto}
    local clients=("$client_settings"/*/config)
    if [ "$BEEGFS_MGMTD_ADDR" = auto ] && [ "${#clients[@]}" -gt 1 ]; then
        BEEGFS_MGMTD_ADDR=$(awk -F ' = ' -v mine="$(configuration)" '
            $1 == "cfgFile" { is_mine = "cfgFile=" $2 == mine }
            is_mine && $1 == "sysMgmtdHost" { host = $2 ~ /:/ ? "[" $2 "]" : $2 }
            is_mine && $1 == "connMgmtdGrpcPort" { port = $2 }
            END { print port ? host ":" port : "auto" }' "${clients[@]}")
    fi
    "$@"
}

# list_targets [POOL]: prints the number of the pool to use, if any, and all targets.
list_targets() {
    [ -z "${1-}" ] || echo "pool $1"
    if is_seven; then
        within 20 beegfs-ctl --listtargets --nodetype=storage --state --storagepools --pools \
            "--$(configuration)"
    else
        with_management within 20 beegfs target list --node-type storage --state --capacity --raw
    fi
}

# BeeGFS 7 asks each server for its space, and an absent one would keep it from printing the states.
list_space() {
    ! is_seven ||
        within 10 beegfs-ctl --listtargets --nodetype=storage --spaceinfo "--$(configuration)"
}

# look_at_targets: for the probe, in its sections.
look_at_targets() {
    section "target space"
    list_space
}

# stripe COUNT CHUNK KNOWN POOL: targets per file and bytes per chunk, empty if not requested. COUNT
# -1 stands for KNOWN, the number in the site file, else for all of the pool that are in service.
stripe() {
    local count=$1 chunk=$2 pool=${4:-[0-9]+} targets
    if [ "$count" = -1 ]; then
        # The number of the pool comes before the states in the list of BeeGFS 8.
        targets=${3:-$(grep -c -E "Online +Good +$pool( |\$)|s:$pool +Online .* Good " targets.txt || :)}
        [ "${targets:-0}" -ge 1 ] ||
            refuse "stripe count requested: all targets; how many are online cannot be seen here:" \
                "set targets in the site file's striping"
        count=$targets
    fi
    or_refuse "BeeGFS refused the requested layout (users may set one if the servers have \
sysAllowUserSetPattern)" set_pattern "$count" "$chunk"
}

set_pattern() {
    local count=$1 chunk=$2 said
    if is_seven; then
        beegfs-ctl --setpattern ${count:+"--numtargets=$count"} ${chunk:+"--chunksize=$chunk"} \
            "--$(configuration)" "$run_directory"
    else
        # Where the library for licenses is missing, 8.3 does all and then fails.
        said=$(with_management beegfs entry set ${count:+"--num-targets=$count"} \
            ${chunk:+"--chunk-size=$chunk"} "$run_directory" 2>&1) || [[ $said == *"verify licensed status"* ]] ||
            { echo "$said" && return 1; }
    fi
}

read_layout() {
    with_management show_entries >layout.txt || : # the reader finds a file without a layout
}

show_entries() {
    local file configuration
    ! is_seven || configuration=--$(configuration)
    find "$run_directory" -type f | while read -r file; do
        echo "--- $file"
        if is_seven; then
            echo "by beegfs-ctl"
            beegfs-ctl --getentryinfo "$configuration" "$file" 2>&1
        else
            beegfs entry info --retro --raw "$file" 2>&1
        fi
    done
}

# For each file `path chunk_size target ...`.
list_stripes() {
    read_layout
    awk '
        /^--- / { if (targets) print path, size targets; path = substr($0, 5); targets = "" }
        /^\+ Chunksize:/ {
            size = $3 * (/K$/ ? 1024 : /M$/ ? 1024 ^ 2 : /G$/ ? 1024 ^ 3 : 1)
        }
        /^ *\+ [0-9]+ @ / { targets = targets " " $2 }
        END { if (targets) print path, size targets }' layout.txt
}
