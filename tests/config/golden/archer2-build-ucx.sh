#!/bin/bash

_onerror()
{
    exitcode=$?
    echo "-reframe: command \`$BASH_COMMAND' failed (exit code: $exitcode)"
    exit $exitcode
}

trap _onerror ERR

export LC_ALL=C
export OMP_NUM_THREADS=1
module load PrgEnv-gnu craype-network-ucx cray-mpich-ucx
source ./kept.sh
if ! take_kept_build build/benchio cc ftn; then
mkdir -p build
cmake -DCMAKE_C_COMPILER="cc" -DCMAKE_CXX_COMPILER="CC" -DCMAKE_Fortran_COMPILER="ftn" -DCMAKE_CUDA_COMPILER="nvcc" -S . -B build
cmake --build build -j 4
keep_build build/benchio rfm_build.out
fi
