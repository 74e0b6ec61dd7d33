#!/bin/sh
# Removes run directories of one file system, here or on a compute node. Prints a line for each:
# name, `gone`, `stays` or `away` (not on this node), remaining bytes, and reason, between tabs.
#
#   remove.sh ROOT TYPES [NAME MOUNTED HOW]...
#
# TYPES are the types that df may show for ROOT, separated by commas; empty allows any. MOUNTED is
# the type and mount point on which the directory was made; empty allows any. HOW is `remove`, or
# `look` to remove nothing.
export LC_ALL=C
# While a file system is not mounted, its mount point is a directory of the root disk.
if cd -- "$1" 2>/dev/null; then
    here=$(df --output=fstype,target . 2>/dev/null | tail -n 1 | tr -s ' ')
    case ,$2, in ,, | *",${here%% *},"*) away= ;; *) away="another file system is at $1: $here" ;; esac
else
    away="$1 is not there on $(uname -n)"
fi
shift 2

stays() {
    size=
    [ ! -d "./$name" ] || size=$(du -sx --block-size=1 -- "./$name" 2>/dev/null | cut -f 1)
    printf '%s\tstays\t%s\t%s\n' "$noted" "$size" "$1"
}

# Empties the directory from within, so that no other can take its place. It must have the mark that
# jobs put into their directories, which is removed last. An empty directory needs no mark.
remove() {
    rmdir -- "./$name" 2>/dev/null && return
    (
        cd -P -- "./$name" || exit
        if ! [ -O . ] || ! [ -f "./.$name" ]; then
            echo "remove.sh: it has no mark of a run; if a run made it, remove it by hand"
            exit
        fi
        find . -xdev -mindepth 1 ! -path "./.$name" -delete && rm -- "./.$name"
    ) && rmdir -- "./$name"
}

examine() {
    if [ -L "./$name" ]; then
        stays "a symbolic link is in its place"
    elif [ ! -e "./$name" ]; then
        printf '%s\tgone\t\t\n' "$noted"
    elif [ ! -d "./$name" ] || [ ! -O "./$name" ]; then
        stays "it is not a directory of $(id -un)"
    elif [ "$how" = look ]; then
        stays ""
    else
        said=$(remove 2>&1 | head -n 1)
        if [ -e "./$name" ]; then
            stays "${said#*: }"
        else
            printf '%s\tgone\t\t\n' "$noted"
        fi
    fi
}

# A job makes `NAME.` and ten characters if another user has already made NAME.
examine_all() {
    for name in "$noted" "$noted".??????????; do
        [ "$name" = "$noted" ] || { [ ! -L "./$name" ] && [ -O "./$name" ]; } || continue
        examine
    done
}

while [ $# -ge 3 ]; do
    noted=$1 mounted=$2 how=$3
    shift 3
    if [ -n "$away" ]; then
        printf '%s\taway\t\t%s\n' "$noted" "$away"
    elif [ -n "$mounted" ] && [ "$mounted" != "$here" ]; then
        printf '%s\taway\t\t%s\n' "$noted" "it was made on $mounted; here is $here"
    else
        examine_all | sort -r | head -n 1 # `stays` before `gone`
    fi
done
