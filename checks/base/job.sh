# shellcheck shell=bash
# Guards of a job: its file system, its run directory, its surroundings. Job scripts source this.
#
# A job script sets file_system, the path in the site configuration, and each_node, the command
# that starts one process on each node of the job; it is empty for one node.

file_system=
each_node=()
needed=()

# The sanity phase reports this line as the reason for the failure.
refuse() {
    echo "iobands: $file_system: $*" >&2
    exit 1
}

# or_refuse REASON COMMAND...: ends the job with the first line that a failing COMMAND printed.
or_refuse() {
    local reason=$1 printed
    shift
    # Some commands print pages of help after their first line.
    printed=$("$@" 2>&1) || refuse "$reason: $(head -n 1 <<<"$printed")"
}

# require_mounted TYPE NAME...: the file system must have one of the names in the mount table. While
# it is not mounted, its directory may exist on the root disk, and a run would measure that disk.
require_mounted() {
    local type=$1 mounted name
    shift
    # df asks the mount table, which distinguishes file systems in user space; stat does not.
    mounted=$(df --output=fstype -- "$file_system" 2>/dev/null | tail -n 1)
    for name; do
        [ "$mounted" != "$name" ] || return 0
    done
    refuse "type requested: $type; mounted there: ${mounted:-nothing}: is it mounted on $(uname -n)?"
}

# require_commands TYPE: the script of the type needs one command of each group.
require_commands() {
    local group
    for group in "${needed[@]}"; do
        has_one_of "$group" || refuse "type $1 needs the command ${group// / or }: not found here"
    done
}

# has_one_of GROUP: names of commands between blanks.
has_one_of() {
    local name
    for name in $1; do
        ! command -v "$name" >/dev/null || return 0
    done
    return 1
}

# make_run_directory: makes $run_directory in the directory that the session has noted. However the
# job ends, the directory is removed.
make_run_directory() {
    local unsafe
    noted_directory=$(<run_directory.txt)
    ! unsafe=$(writable_by_others) || refuse "$unsafe"
    noted_directory=$(make_marked "$noted_directory" 2>mkdir.txt) || {
        unsafe=$(tail -n 1 mkdir.txt)
        refuse "no directory can be made there: ${unsafe##*: }"
    }
    remove_at_the_end
    run_directory=$noted_directory/data
    mkdir -- "$run_directory" || refuse "no directory can be made there"
    # Without the columns of names, which may have blanks.
    df -k --output=size,used,avail,pcent "$run_directory" >df.txt
}

# make_marked PATH: makes and prints the directory, with a mark that identifies it even if another
# user renames directories. If PATH exists, it appends characters; the sweep looks for both names.
make_marked() {
    local made=$1
    mkdir -m 0700 -- "$made" 2>/dev/null || made=$(mktemp -d -- "$1.XXXXXXXXXX") || return
    # Without `touch`, which waits for the storage target of the mark.
    { : >"$made/.${made##*/}" || ! rmdir -- "$made"; } && echo "$made"
}

# Removes the directory $1 from within, if it has the mark. The mark goes last, as this may be
# killed half-way.
# shellcheck disable=SC2016
remove_marked='cd -P -- "$1" && [ -f "./.${1##*/}" ] &&
    find . -xdev -mindepth 1 ! -path "./.${1##*/}" -delete &&
    rm -- "./.${1##*/}" && cd / && rmdir -- "$1"'

# writable_by_others: succeeds, with a message, if another user could replace files of a run by
# others, or by links, in the file system's directory.
writable_by_others() {
    local mode
    mode=$(stat -L -c %a -- "$file_system" 2>/dev/null) && [ $((0$mode & 01002)) -eq 2 ] &&
        echo "other users may write there and the directory is not sticky; run chmod +t on it, or" \
            "name a directory of your own below it"
}

# Sets a trap. A killed script has no time to run it, such as a local job that has not ended when
# ReFrame's grace period is over. So there is also a guard process in its own session, which is
# killed neither with the job nor as part of a killed session. It reads until all of the job's
# processes have ended.
remove_at_the_end() {
    stage=$PWD
    trap 'remove_directory "$noted_directory"' EXIT
    # A named pipe: `>(...)` needs /dev/fd, and programs do not inherit what a coproc opens. Some
    # file systems have no named pipes.
    local pipe
    for pipe in guard.fifo "$(mktemp -u "${TMPDIR:-/tmp}/iobands-guard.XXXXXXXXXX")"; do
        mkfifo -m 0600 -- "$pipe" 2>/dev/null || continue
        exec {guard}<>"$pipe"
        # shellcheck disable=SC2094
        env -u IOBANDS_SESSION setsid sh -c "rm -f -- \"\$2\"; cat; $remove_marked" sh \
            "$noted_directory" "$pipe" <"$pipe" >/dev/null 2>&1 {guard}>&- &
        disown
        break
    done
    trap 'exit 143' TERM
    trap 'exit 130' INT
}

# remove_directory PATH: also records the removal in the stage directory.
remove_directory() {
    sh -c "$remove_marked" sh "$1" && echo "$1" >>"${stage:-.}/removed_directories.txt"
}

# require_space NEEDED WRITTEN: at least NEEDED GiB must be free; the run writes WRITTEN of them.
require_space() {
    local said
    said=$(awk -v needed="$1" -v written="$2" '
        function gib(size) { return sprintf(size < 100 ? "%.3g" : "%.0f", size) }
        NR == 2 && $3 / 2 ^ 20 < needed {
            print gib($3 / 2 ^ 20) " GiB are free; this run needs " gib(needed) " GiB: it writes " \
                gib(written) ", the rest must stay free"
        }' df.txt)
    [ -z "$said" ] || refuse "$said"
}

# require_inodes FILES: at least this many inodes must be free. df shows 0 of 0 if they are made as
# needed, and on CephFS `-` for the free ones.
require_inodes() {
    local free
    free=$(df --output=itotal,iavail "$run_directory" |
        awk 'NR == 2 && $1 > 0 && $2 ~ /^[0-9]+$/ { print $2 }')
    [ -z "$free" ] || [ "$free" -ge "$1" ] ||
        refuse "$free inodes are free; this run needs $1"
}

# within SECONDS COMMAND...: prints a list, or nothing if the time is up, as a part of a list looks
# whole.
within() {
    local printed status
    printed=$(timeout "$@")
    status=$?
    [ "$status" -eq 124 ] || [ -z "$printed" ] || printf '%s\n' "$printed"
    return "$status"
}

# note_targets [POOL]: which storage targets are in service, and their space; the file system's
# script has list_targets, and list_space if each target has its own space.
note_targets() {
    {
        list_targets "$@"
        ! declare -F list_space >/dev/null || list_space "$@"
    } >targets.txt 2>/dev/null || :
}

# note_libraries PROGRAM: the libraries that the loader finds for the program.
note_libraries() {
    ldd "$(command -v "$1")" >libraries.txt 2>&1
}

# look_before SCHEDULER [SCRIPT]: covariates; their failure does not fail the run. SCRIPT is the
# file system's script, if it can count what its clients on the nodes move.
look_before() {
    on_each_node nodes_before.txt bash ./covariates.sh "$file_system" "${2-}"
    [ -z "${SLURM_JOB_NODELIST-}" ] || echo "$SLURM_JOB_NODELIST" >node_list.txt
    # Renamed only when complete, as an empty list is an answer, too.
    if { id -un && list_jobs "$1"; } >jobs.txt.part 2>/dev/null; then
        mv jobs.txt.part jobs.txt
    fi
}

# look_after SCRIPT
look_after() {
    on_each_node nodes_after.txt bash ./covariates.sh "$file_system" "$1"
}

# on_each_node FILE COMMAND...: writes to FILE what COMMAND prints on each node; never fails.
on_each_node() {
    local file=$1
    shift
    timeout -k 5 20 "${each_node[@]}" "$@" >"$file" 2>/dev/null || :
}

# list_jobs SCHEDULER: the users of the running jobs on this job's partition; PBS prints a table.
list_jobs() {
    case $1 in
    slurm | squeue)
        timeout 10 squeue --noheader --states=RUNNING --partition="$SLURM_JOB_PARTITION" --format=%u
        ;;
    pbs | pbspro | torque) timeout 10 qstat -r "$PBS_QUEUE" ;;
    lsf) timeout 10 bjobs -u all -r -q "$LSB_QUEUE" -noheader -o user ;;
    flux) timeout 10 flux jobs -A --no-header --filter=running --format='{username}' ;;
    *) return 1 ;;
    esac
}

# inspect_run_directory STATUS: keeps the program's exit status, and a list of its files.
inspect_run_directory() {
    exit_status=$1
    echo "$exit_status" >exit_status.txt
    find "$run_directory" -type f -printf '%s %f\n' >files.txt
}

# load_modules PROGRAM MODULE...: ends the job if a module is missing. It would otherwise measure
# another program of that name on PATH.
load_modules() {
    local program=$1 module
    local where="the site configuration, under 'programs'"
    shift
    type module >/dev/null 2>&1 ||
        end "jobs have no command 'module' to load $* with: start iobands from a login shell," \
            "define it in the partition's prepare_cmds, or name the path of $program in $where"
    for module; do
        module load "$module" ||
            end "the module $module cannot be loaded: correct it in $where"
    done
}

# load_by_spack ENVIRONMENT SPEC
load_by_spack() {
    local loads
    if ! { loads=$(spack -e "$1" load --sh "$2") && eval "$loads"; }; then
        end "Spack cannot load $2 in jobs: do they find the command spack?"
    fi
}

end() {
    echo "iobands: $*" >&2
    exit 1
}
