/* Preloaded into benchio: prints sender, receiver and number of elements of each face that is sent.
 * Replaces the functions that Open MPI's module mpi_f08 calls. */
#include <mpi.h>
#include <stdio.h>

void mpi_sendrecv_f08_(void *sent, MPI_Fint *sent_count, MPI_Fint *sent_type, MPI_Fint *to,
                       MPI_Fint *sent_tag, void *received, MPI_Fint *received_count,
                       MPI_Fint *received_type, MPI_Fint *from, MPI_Fint *received_tag,
                       MPI_Fint *comm, MPI_Fint *state, MPI_Fint *status)
{
    int rank;
    (void)state;

    MPI_Comm_rank(MPI_Comm_f2c(*comm), &rank);
    fprintf(stderr, "rank %d sent %d to %d\n", rank, (int)*sent_count, (int)*to);
    *status = MPI_Sendrecv(sent, *sent_count, MPI_Type_f2c(*sent_type), *to, *sent_tag, received,
                           *received_count, MPI_Type_f2c(*received_type), *from, *received_tag,
                           MPI_Comm_f2c(*comm), MPI_STATUS_IGNORE);
}
