/* TCGMSG for C over Weft. Integers are longs; buffers are counted in bytes. */
#ifndef TCGMSG_H_
#define TCGMSG_H_

#ifdef __cplusplus
extern "C" {
#endif

/* From here to there. Arguments of the program are left as they are. */
void tcg_pbegin(int argc, char **argv);
void tcg_alt_pbegin(int *argc, char ***argv);
void tcg_pbeginf(void);
void tcg_pbginf(void);
void tcg_pend(void);
long tcg_tcgready(void);
long tcg_ready(void);

long tcg_nodeid(void);
long tcg_nnodes(void);

/* Messages. With a sync of 0 they are over after tcg_waitcom (-1: with all nodes). */
void tcg_snd(long type, void *buf, long lenbuf, long node, long sync);
void tcg_rcv(long type, void *buf, long lenbuf, long *lenmes, long nodeselect, long *nodefrom, long sync);
long tcg_probe(long type, long node);
void tcg_waitcom(long node);

/* What all nodes do together. */
void tcg_synch(long type);
void tcg_brdcst(long type, void *buf, long lenbuf, long originator);
void tcg_dgop(long type, double *x, long n, const char *op);
void tcg_igop(long type, long *x, long n, const char *op);
void tcg_pfcopy(long type, long node0, const char *fname);

/* The shared counter: mproc of those who count, -mproc when this one counts no more. */
long tcg_nxtval(long mproc);

void tcg_llog(void);
void tcg_stats(void);
void tcg_setdbg(long value);
long tcg_mtime(void);
double tcg_time(void);
double tcg_drand48(void);
void tcg_srand48(long seed);
long tcg_niceftn(long ival);
void tcg_error(const char *msg, long code);
void tcg_parerr(long code);

/* Sizes: of doubles in bytes and in longs, of longs in bytes and in doubles. */
long tcg_mdtob(long n);
long tcg_mdtoi(long n);
long tcg_mitob(long n);
long tcg_mitod(long n);

#ifdef __cplusplus
}
#endif

#endif
