/* Grids and graphs on any number of ranks. */
#include "check.h"

static void grids(void)
{
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], got[2], back[2], rank, source, dest, kind, ndims;
    MPI_Comm grid, row;
    OK(MPI_Dims_create(check_size, 2, dims));
    CHECK(dims[0] * dims[1] == check_size && dims[0] >= dims[1]);
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid));
    OK(MPI_Topo_test(grid, &kind));
    CHECK(kind == MPI_CART);
    OK(MPI_Cartdim_get(grid, &ndims));
    OK(MPI_Cart_get(grid, 2, got, back, coords));
    CHECK(ndims == 2 && got[1] == dims[1] && back[0] && !back[1]);
    OK(MPI_Comm_rank(grid, &rank));
    OK(MPI_Cart_rank(grid, coords, &kind));
    CHECK(kind == rank && coords[0] * dims[1] + coords[1] == rank);
    OK(MPI_Cart_shift(grid, 0, 1, &source, &dest));
    int value = rank, from = -1;
    OK(MPI_Sendrecv(&value, 1, MPI_INT, dest, 0, &from, 1, MPI_INT, source, 0, grid, MPI_STATUS_IGNORE));
    CHECK(from == source);
    OK(MPI_Cart_shift(grid, 1, 1, &source, &dest));
    CHECK((source == MPI_PROC_NULL) == (coords[1] == 0));
    CHECK((dest == MPI_PROC_NULL) == (coords[1] == dims[1] - 1));
    int keep[2] = {0, 1}, size;
    OK(MPI_Cart_sub(grid, keep, &row));
    OK(MPI_Comm_size(row, &size));
    OK(MPI_Comm_rank(row, &rank));
    CHECK(size == dims[1] && rank == coords[1]);
    OK(MPI_Cartdim_get(row, &ndims));
    CHECK(ndims == 1);
    OK(MPI_Comm_free(&row));
    OK(MPI_Comm_dup(grid, &row));
    OK(MPI_Topo_test(row, &kind));
    CHECK(kind == MPI_CART);
    OK(MPI_Comm_free(&row));
    OK(MPI_Comm_free(&grid));
    int one = 1;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &one, 0, &grid));
    CHECK((grid == MPI_COMM_NULL) == (check_rank != 0));
    if (grid != MPI_COMM_NULL)
        OK(MPI_Comm_free(&grid));
}

/* Every rank has all others as neighbours. */
static void graph(void)
{
    int n = check_size, index[64], edges[64 * 64], count, neighbors[64], place = 0;
    MPI_Comm graph;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            if (i != j)
                edges[place++] = j;
        index[i] = place;
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &graph));
    OK(MPI_Graphdims_get(graph, &count, &place));
    CHECK(count == n && place == n * (n - 1));
    OK(MPI_Graph_neighbors_count(graph, n - 1, &count));
    CHECK(count == n - 1);
    OK(MPI_Graph_neighbors(graph, n - 1, 64, neighbors));
    for (int i = 0; i < count; i++)
        CHECK(neighbors[i] == i);
    OK(MPI_Comm_free(&graph));
}

/* A ring of which rank 0 alone knows all edges, and one where each knows its own. */
static void distributed(void)
{
    int n = check_size, sources[64], degrees[64], ends[64], weights[64], in, out, weighted;
    int next = (check_rank + 1) % n, before = (check_rank + n - 1) % n, from, to, win, wout;
    MPI_Comm ring;
    for (int i = 0; i < n; i++)
        sources[i] = i, degrees[i] = 1, ends[i] = (i + 1) % n, weights[i] = 100 + i;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, check_rank == 0 ? n : 0, sources, degrees, ends, weights, MPI_INFO_NULL, 0, &ring));
    OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && weighted);
    OK(MPI_Dist_graph_neighbors(ring, 1, &from, &win, 1, &to, &wout));
    CHECK(from == before && to == next && win == 100 + before && wout == 100 + check_rank);
    OK(MPI_Comm_free(&ring));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring));
    OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && !weighted);
    int got = -1;
    OK(MPI_Neighbor_allgather(&check_rank, 1, MPI_INT, &got, 1, MPI_INT, ring));
    CHECK(got == before);
    OK(MPI_Comm_free(&ring));
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    grids();
    graph();
    distributed();
    return check_end();
}
