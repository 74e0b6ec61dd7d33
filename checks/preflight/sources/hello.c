/* Whether MPI starts, and on how many nodes: the first process prints a line once all have met. It
   prints another one if all nodes have the same name, as ROMIO counts nodes by name. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Comm node;
    char name[MPI_MAX_PROCESSOR_NAME], first_name[MPI_MAX_PROCESSOR_NAME];
    int rank, processes, rank_on_node, first_on_node, nodes, length, is_same, all_same;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank_on_node);
    first_on_node = rank_on_node == 0;
    MPI_Allreduce(&first_on_node, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Get_processor_name(name, &length);
    memcpy(first_name, name, sizeof name);
    MPI_Bcast(first_name, sizeof first_name, MPI_CHAR, 0, MPI_COMM_WORLD);
    is_same = strcmp(name, first_name) == 0;
    MPI_Allreduce(&is_same, &all_same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("iobands-mpi %d processes on %d nodes\n", processes, nodes);
        if (all_same && nodes > 1)
            printf("iobands-mpi nodes of one name\n");
    }
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
