/* Whether MPI starts, and on how many nodes: a line of the first process, once all have met. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Comm node;
    int rank, processes, rank_on_node, first_on_node, nodes;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank_on_node);
    first_on_node = rank_on_node == 0;
    MPI_Allreduce(&first_on_node, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("iobands-mpi %d processes on %d nodes\n", processes, nodes);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
