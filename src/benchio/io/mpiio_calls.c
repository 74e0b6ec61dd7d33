/* Counts the MPI-IO calls that move data, through MPI's profiling interface: each MPI function has
 * a second name that begins with PMPI_, so that a program can wrap it. The calls that HDF5, netCDF
 * and PnetCDF really make pass through here, whatever they were asked for. Calls from Fortran do so
 * in MPICH, but not in Open MPI.
 *
 * A failed call starts the alarm of wait_limit.f90: the library may go on to a call in which it
 * waits for the other processes.
 *
 * Without the mpi.h of the library that the program is linked with, nothing is counted. */
#include <stdint.h>

static int64_t calls[2];

/* Returns the number of collective (1) or independent (0) calls so far. */
int64_t benchio_mpiio_calls(int collective)
{
    return calls[collective];
}

#ifdef BENCHIO_COUNTS_CALLS
#include <mpi.h>
#include <stdio.h>

void benchio_limit_wait(const char *failure);

static void note_failure(const char *name, int status)
{
    char failure[64 + MPI_MAX_ERROR_STRING], reason[MPI_MAX_ERROR_STRING] = "";
    int length;

    MPI_Error_string(status, reason, &length);
    snprintf(failure, sizeof failure, "%s failed: %s", name, reason);
    benchio_limit_wait(failure);
}

enum { independent, collective };

#define COUNTED(kind, name, parameters, arguments)         \
    int MPI_File_##name parameters;                        \
    int MPI_File_##name parameters                         \
    {                                                      \
        calls[kind]++;                                     \
        const int status = PMPI_File_##name arguments;     \
        if (status)                                        \
            note_failure("MPI_File_" #name, status);       \
        return status;                                     \
    }

/* At an offset, and at the file pointer; the last parameter is a status or a request. */
#define AT(kind, name, buffer, count_t, last_t)                                                 \
    COUNTED(kind, name,                                                                         \
            (MPI_File file, MPI_Offset offset, buffer data, count_t count, MPI_Datatype type,   \
             last_t *last),                                                                     \
            (file, offset, data, count, type, last))
#define HERE(kind, name, buffer, count_t, last_t)                                               \
    COUNTED(kind, name,                                                                         \
            (MPI_File file, buffer data, count_t count, MPI_Datatype type, last_t *last),       \
            (file, data, count, type, last))

#define BOTH_WAYS(suffix, count_t)                                                  \
    AT(independent, write_at##suffix, const void *, count_t, MPI_Status)            \
    AT(independent, read_at##suffix, void *, count_t, MPI_Status)                   \
    AT(collective, write_at_all##suffix, const void *, count_t, MPI_Status)         \
    AT(collective, read_at_all##suffix, void *, count_t, MPI_Status)                \
    AT(independent, iwrite_at##suffix, const void *, count_t, MPI_Request)          \
    AT(independent, iread_at##suffix, void *, count_t, MPI_Request)                 \
    AT(collective, iwrite_at_all##suffix, const void *, count_t, MPI_Request)       \
    AT(collective, iread_at_all##suffix, void *, count_t, MPI_Request)              \
    HERE(independent, write##suffix, const void *, count_t, MPI_Status)             \
    HERE(independent, read##suffix, void *, count_t, MPI_Status)                    \
    HERE(collective, write_all##suffix, const void *, count_t, MPI_Status)          \
    HERE(collective, read_all##suffix, void *, count_t, MPI_Status)                 \
    HERE(independent, iwrite##suffix, const void *, count_t, MPI_Request)           \
    HERE(independent, iread##suffix, void *, count_t, MPI_Request)                  \
    HERE(collective, iwrite_all##suffix, const void *, count_t, MPI_Request)        \
    HERE(collective, iread_all##suffix, void *, count_t, MPI_Request)

BOTH_WAYS(, int)
#if MPI_VERSION >= 4
BOTH_WAYS(_c, MPI_Count)
#endif
#endif
