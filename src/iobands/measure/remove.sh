#!/bin/sh
# Removes run directories of one file system, here or on a compute node. Prints a line for each:
# name, `gone` or `stays`, bytes that are left, and why, between tabs.
#
#   remove.sh ROOT TYPES [NAME MOUNTED HOW]...
#
# TYPES, between commas, is what df may call the file system; empty for anything. MOUNTED is the
# type and mount point that it must have, empty for any. HOW is `remove`, or `look` to remove
# nothing.
export LC_ALL=C
# A directory exists on the root disk too while its file system is not mounted.
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

# Removes what is in the directory from within it, so that nothing else can take its place: it has
# the mark with which jobs make theirs, which goes last. What is empty needs none.
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
        examine_all | sort -r | head -n 1 # what stays rather than what has gone
    fi
done
