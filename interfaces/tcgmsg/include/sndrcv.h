/* The older C interface of TCGMSG: upper case names, and addresses of integers. */
#ifndef SNDRCV_H_
#define SNDRCV_H_

#include "msgtypesc.h"
#include "srftoc.h"
#include "tcgmsg.h"
#include "typesf2c.h"

#ifdef __cplusplus
extern "C" {
#endif

void PBEGINF_(void);
void PBGINF_(void);
void PEND_(void);
Integer TCGREADY_(void);
Integer NODEID_(void);
Integer NNODES_(void);

void SND_(const Integer *type, void *buf, const Integer *lenbuf, const Integer *node, const Integer *sync);
void RCV_(const Integer *type, void *buf, const Integer *lenbuf, Integer *lenmes, const Integer *nodeselect,
          Integer *nodefrom, const Integer *sync);
Integer PROBE_(const Integer *type, const Integer *node);
void WAITCOM_(const Integer *node);

void SYNCH_(const Integer *type);
void BRDCST_(const Integer *type, void *buf, const Integer *lenbuf, const Integer *originator);
/* The length of op may follow; op is a C string all the same. */
void DGOP_(const Integer *type, double *x, const Integer *n, const char *op, ...);
void IGOP_(const Integer *type, Integer *x, const Integer *n, const char *op, ...);
void PFCOPY_(const Integer *type, const Integer *node0, const char *fname, int len);
void PFILECOPY_(const Integer *type, const Integer *node0, const char *fname);
Integer NXTVAL_(const Integer *mproc);

void LLOG_(void);
void STATS_(void);
void SETDBG_(const Integer *value);
Integer MTIME_(void);
double TCGTIME_(void);
double DRAND48_(void);
void SRAND48_(const Integer *seed);
Integer NICEFTN_(const Integer *ival);
void PARERR_(const Integer *code);
void Error(const char *msg, long code);

Integer MDTOB_(const Integer *n);
Integer MDTOI_(const Integer *n);
Integer MITOB_(const Integer *n);
Integer MITOD_(const Integer *n);

#ifdef __cplusplus
}
#endif

#endif
