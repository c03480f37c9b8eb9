/*
 * Counts primes with P4's monitors: processes take blocks of numbers in turn, which p4_getsub hands out, and add what
 * they have found to a sum in shared memory. The processes of one host share it, so P4's own procgroup starts them.
 *
 *     cc -O2 primes.c -o primes $(pkg-config --cflags --libs weft-p4)
 *     echo "local 3" > primes.pg && ./primes 10000000
 */
#include <p4.h>
#include <stdlib.h>

enum { BLOCK = 10000 };

static struct board {
    p4_getsub_monitor_t blocks;
    p4_monitor_t inside;
    p4_barrier_monitor_t all;
    long primes, busiest;
} *board;

static int is_prime(long number)
{
    if (number < 4)
        return number > 1;
    if (number % 2 == 0)
        return 0;
    for (long divisor = 3; divisor * divisor <= number; divisor += 2)
        if (number % divisor == 0)
            return 0;
    return 1;
}

/* Blocks that this process has done. */
static long work(long limit)
{
    int block, processes = p4_num_total_ids(), last = (int)((limit - 1) / BLOCK);
    long found = 0, done = 0;
    p4_getsub(&board->blocks, &block, last, processes);
    while (block >= 0) {
        for (long number = (long)block * BLOCK; number < (block + 1L) * BLOCK && number < limit; number++)
            found += is_prime(number);
        done++;
        p4_getsub(&board->blocks, &block, last, processes);
    }
    p4_menter(&board->inside);
    board->primes += found;
    if (done > board->busiest)
        board->busiest = done;
    p4_mexit(&board->inside);
    return done;
}

int main(int count, char **words)
{
    p4_initenv(&count, words);
    long limit = count > 1 ? atol(words[1]) : 1000000;
    if (limit < 1 || !(board = (struct board *)p4_shmalloc(sizeof *board)))
        p4_error("primes: a number of at least 1 is wanted, and memory", 1);
    board->primes = board->busiest = 0;
    p4_getsub_init(&board->blocks);
    p4_moninit(&board->inside, 0);
    p4_barrier_init(&board->all);
    p4_create_procgroup();
    if (p4_am_i_cluster_master() && p4_num_cluster_ids() < p4_num_total_ids())
        p4_error("primes: these processes share no memory; start it with a procgroup", p4_num_total_ids());
    long blocks = work(limit);
    p4_dprintfl(1, "%ld blocks\n", blocks);
    p4_barrier(&board->all, p4_num_total_ids());
    if (p4_get_my_id() == 0)
        printf("%ld primes below %ld; the busiest of %d processes did %ld blocks of %ld\n", board->primes, limit,
               p4_num_total_ids(), board->busiest, (limit + BLOCK - 1) / BLOCK);
    return p4_wait_for_end();
}
