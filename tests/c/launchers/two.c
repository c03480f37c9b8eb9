/* A rank that speaks PMI-2 by Slurm's library: puts a value, meets the others, and reads that of its neighbour. */
#include <slurm/pmi2.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int spawned, size, rank, appnum, length = 0, found = 0;
    char job[256], key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN], mapping[PMI2_MAX_ATTRVALUE] = "", host[64] = "";

    if (PMI2_Init(&spawned, &size, &rank, &appnum) != PMI2_SUCCESS)
        return 2;
    if (argc > 1 && strcmp(argv[1], "abort") == 0) {
        if (rank == size - 1)
            PMI2_Abort(1, "as it was asked to");
        PMI2_KVS_Fence();
        return 0;
    }
    if (PMI2_Job_GetId(job, sizeof job) != PMI2_SUCCESS)
        return 3;
    snprintf(key, sizeof key, "key-%d", rank);
    snprintf(value, sizeof value, "value of %d=x", rank);
    if (PMI2_KVS_Put(key, value) != PMI2_SUCCESS || PMI2_KVS_Fence() != PMI2_SUCCESS)
        return 4;
    snprintf(key, sizeof key, "key-%d", (rank + 1) % size);
    if (PMI2_KVS_Get(job, PMI2_ID_NULL, key, value, sizeof value, &length) != PMI2_SUCCESS)
        return 5;
    if (PMI2_Info_GetJobAttr("PMI_process_mapping", mapping, sizeof mapping, &found) != PMI2_SUCCESS)
        return 6;
    if (rank == 0 && PMI2_Info_PutNodeAttr("who", "rank 0") != PMI2_SUCCESS)
        return 7;
    if (PMI2_Info_GetNodeAttr("who", host, sizeof host, &found, 1) != PMI2_SUCCESS)
        return 8;
    printf("%d of %d: %s, %s, %s\n", rank, size, value, mapping, host);
    fflush(stdout);
    return PMI2_Finalize() == PMI2_SUCCESS ? 0 : 9;
}
