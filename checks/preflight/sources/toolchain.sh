# shellcheck shell=bash
# Tries compilers, for the job script of EnvCompiler.

# try_compiler LANGUAGE SOURCE COMPILER...: prints the exit status and the compiler's first line.
try_compiler() {
    local language=$1 source=$2
    shift 2
    "$@" "$source" -o "empty-$language" >"$language.txt" 2>&1
    echo "iobands-compiler $language $? $*: $(head -n 1 "$language.txt")"
}

# build SOURCE PROGRAM COMPILER...: builds the program; never fails.
build() {
    local source=$1 program=$2
    shift 2
    "$@" "$source" -o "$program" >"$program.txt" 2>&1 || :
}
