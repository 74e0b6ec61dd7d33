/* Preloaded into benchio: prints at its end how many communicators were made and not freed.
 * Replaces the functions that Open MPI's module mpi_f08 calls. */
#include <mpi.h>
#include <stdio.h>

static int left;

void mpi_comm_split_f08_(MPI_Fint *comm, MPI_Fint *color, MPI_Fint *key, MPI_Fint *new_comm,
                         MPI_Fint *status)
{
    MPI_Comm part;

    *status = MPI_Comm_split(MPI_Comm_f2c(*comm), *color, *key, &part);
    *new_comm = MPI_Comm_c2f(part);
    left += part != MPI_COMM_NULL;
}

void mpi_comm_split_type_f08_(MPI_Fint *comm, MPI_Fint *type, MPI_Fint *key, MPI_Fint *info,
                              MPI_Fint *new_comm, MPI_Fint *status)
{
    MPI_Comm part;

    *status = MPI_Comm_split_type(MPI_Comm_f2c(*comm), *type, *key, MPI_Info_f2c(*info), &part);
    *new_comm = MPI_Comm_c2f(part);
    left += part != MPI_COMM_NULL;
}

void mpi_comm_free_f08_(MPI_Fint *comm, MPI_Fint *status)
{
    MPI_Comm old = MPI_Comm_f2c(*comm);

    *status = MPI_Comm_free(&old);
    *comm = MPI_Comm_c2f(old);
    left--;
}

__attribute__((destructor)) static void report(void)
{
    fprintf(stderr, "communicators left: %d\n", left);
}
