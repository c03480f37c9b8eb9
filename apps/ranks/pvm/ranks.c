// Ranks are siblings, as `weft run -n 4` makes them. A task that has none spawns them: as many as the word after
// `--tasks` says, which is taken out of the command line.
#include "ranks.h"

#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIDS = 1, SWAP, TRADE, GATHER };

struct ranks ranks;

static int *tids;

// The number after `--tasks`; 1 without it.
static int tasks_wanted(int *count, char **words)
{
    for (int i = 1; i + 1 < *count; i++) {
        if (strcmp(words[i], "--tasks") != 0)
            continue;
        int wanted = atoi(words[i + 1]);
        if (wanted < 1) {
            fprintf(stderr, "%s: --tasks %s: allowed is a whole number from 1\n", words[0], words[i + 1]);
            exit(2);
        }
        memmove(&words[i], &words[i + 2], (size_t)(*count - i - 1) * sizeof *words);
        *count -= 2;
        return wanted;
    }
    return 1;
}

// In the first task: starts the others with the same command line, and tells them who is who when all are there.
static void spawn(int wanted, char **words)
{
    tids = ranks_memory((size_t)wanted * sizeof *tids);
    tids[0] = pvm_mytid();
    ranks.count = wanted;
    if (wanted > 1 && pvm_spawn(words[0], words + 1, PvmTaskDefault, "", wanted - 1, tids + 1) != wanted - 1) {
        fprintf(stderr, "%s: not all of %d tasks could be spawned\n", words[0], wanted);
        ranks_abort();
    }
    for (int rank = 1; rank < wanted; rank++)
        pvm_recv(tids[rank], TIDS);
    pvm_initsend(PvmDataRaw);
    pvm_pkint(tids, wanted, 1);
    for (int rank = 1; rank < wanted; rank++)
        pvm_send(tids[rank], TIDS);
}

// In the others: says that this one is there.
static void hear_from_parent(void)
{
    int bytes, tag, from;
    pvm_initsend(PvmDataRaw);
    pvm_send(pvm_parent(), TIDS);
    pvm_bufinfo(pvm_recv(pvm_parent(), TIDS), &bytes, &tag, &from);
    ranks.count = bytes / (int)sizeof *tids;
    tids = ranks_memory((size_t)bytes);
    pvm_upkint(tids, ranks.count, 1);
}

void ranks_begin(int *count, char ***words)
{
    int *siblings, me = pvm_mytid();
    int wanted = tasks_wanted(count, *words);
    pvm_setopt(PvmAutoErr, 2); // the first call that fails ends the task
    if (pvm_parent() > 0) {
        hear_from_parent();
    } else if ((ranks.count = pvm_siblings(&siblings)) > 1) {
        tids = ranks_memory((size_t)ranks.count * sizeof *tids);
        memcpy(tids, siblings, (size_t)ranks.count * sizeof *tids);
    } else {
        spawn(wanted, *words);
    }
    while (tids[ranks.me] != me)
        ranks.me++;
}

void ranks_end(void)
{
    ranks_meet();
    pvm_exit();
}

void ranks_abort(void)
{
    for (int rank = 0; tids && rank < ranks.count; rank++)
        if (rank != ranks.me && tids[rank] > 0)
            pvm_kill(tids[rank]);
    pvm_exit();
    exit(1);
}

static void send(int to, int tag, const void *data, size_t length)
{
    if (length > 0)
        pvm_psend(tids[to], tag, (char *)data, (int)length, PVM_BYTE);
}

static void receive(int from, int tag, void *data, size_t length)
{
    int tid, tag_found, bytes;
    if (length > 0)
        pvm_precv(tids[from], tag, data, (int)length, PVM_BYTE, &tid, &tag_found, &bytes);
}

// Sends and receives. A long message goes straight into the memory of who waits for it already, so every other rank
// along the way receives first. Where that does not come out even the message is copied: pvm_psend waits for nobody.
static void exchange(int tag, int to, const void *out, size_t out_length, int from, void *in, size_t in_length)
{
    int distance = (to - ranks.me + ranks.count) % ranks.count;
    if (2 * distance > ranks.count)
        distance = ranks.count - distance;
    int is_first = distance == 0 || ranks.me / distance % 2 == 0;
    if (is_first)
        send(to, tag, out, out_length);
    receive(from, tag, in, in_length);
    if (!is_first)
        send(to, tag, out, out_length);
}

void ranks_swap(int to, const void *out, size_t out_length, int from, void *in, size_t in_length)
{
    exchange(SWAP, to, out, out_length, from, in, in_length);
}

void ranks_trade(const void *out, const size_t *out_starts, void *in, const size_t *in_starts)
{
    const char *from_here = out;
    char *to_here = in;
    size_t length = out_starts[ranks.me + 1] - out_starts[ranks.me];
    if (in_starts[ranks.me + 1] > in_starts[ranks.me])
        memcpy(to_here + in_starts[ranks.me], from_here + out_starts[ranks.me], length);
    for (int step = 1; step < ranks.count; step++) {
        int to = (ranks.me + step) % ranks.count, from = (ranks.me + ranks.count - step) % ranks.count;
        exchange(TRADE, to, from_here + out_starts[to], out_starts[to + 1] - out_starts[to], from,
                 to_here + in_starts[from], in_starts[from + 1] - in_starts[from]);
    }
}

void ranks_gather(void *all, const size_t *starts)
{
    char *bytes = all;
    for (int step = 1; step < ranks.count; step++) {
        int to = (ranks.me + step) % ranks.count, from = (ranks.me + ranks.count - step) % ranks.count;
        exchange(GATHER, to, bytes + starts[ranks.me], starts[ranks.me + 1] - starts[ranks.me], from,
                 bytes + starts[from], starts[from + 1] - starts[from]);
    }
}
