/* Preloaded into benchio: makes one machine look like two nodes of different
 * size: ranks 0, 3 and 4 are on the first, ranks 1 and 2 on the second.
 * Replaces the functions that Open MPI's module mpi_f08 calls. */
#include <mpi.h>

void mpi_comm_split_type_f08_(MPI_Fint *comm, MPI_Fint *type, MPI_Fint *key, MPI_Fint *info,
                              MPI_Fint *new_comm, MPI_Fint *status)
{
    MPI_Comm node;
    int rank;

    (void)type;
    (void)info;
    *status = MPI_Comm_rank(MPI_Comm_f2c(*comm), &rank);
    if (*status != MPI_SUCCESS)
        return;
    *status = MPI_Comm_split(MPI_Comm_f2c(*comm), (rank + 1) / 2 % 2, *key, &node);
    *new_comm = MPI_Comm_c2f(node);
}
