/* The upper case names of TCGMSG for C: functions that are called as Fortran does, with addresses of integers.
   Those are longs; or ints, where TCGMSG_INTEGER is defined as 4. */
#ifndef SRFTOC_H_
#define SRFTOC_H_

#if defined(TCGMSG_INTEGER) && TCGMSG_INTEGER == 4
#define SND_ snd_
#define RCV_ rcv_
#define WAITCOM_ waitcom_
#define PROBE_ probe_
#define BRDCST_ brdcst_
#define DGOP_ tcgmsg4_dgop
#define IGOP_ tcgmsg4_igop
#define SYNCH_ synch_
#define NXTVAL_ nxtval_
#define PFCOPY_ pfcopy_
#define PFILECOPY_ pfilecopy_
#define SETDBG_ setdbg_
#define NICEFTN_ niceftn_
#define SRAND48_ srand48_
#define PARERR_ parerr_
#define MDTOB_ mdtob_
#define MDTOI_ mdtoi_
#define MITOB_ mitob_
#define MITOD_ mitod_
#else
#define SND_ tcgmsg8_snd_
#define RCV_ tcgmsg8_rcv_
#define WAITCOM_ tcgmsg8_waitcom_
#define PROBE_ tcgmsg8_probe_
#define BRDCST_ tcgmsg8_brdcst_
#define DGOP_ tcgmsg8_dgop
#define IGOP_ tcgmsg8_igop
#define SYNCH_ tcgmsg8_synch_
#define NXTVAL_ tcgmsg8_nxtval_
#define PFCOPY_ tcgmsg8_pfcopy_
#define PFILECOPY_ tcgmsg8_pfilecopy_
#define SETDBG_ tcgmsg8_setdbg_
#define NICEFTN_ tcgmsg8_niceftn_
#define SRAND48_ tcgmsg8_srand48_
#define PARERR_ tcgmsg8_parerr_
#define MDTOB_ tcgmsg8_mdtob_
#define MDTOI_ tcgmsg8_mdtoi_
#define MITOB_ tcgmsg8_mitob_
#define MITOD_ tcgmsg8_mitod_
#endif

#define PBEGINF_ pbeginf_
#define PBGINF_ pbginf_
#define PEND_ pend_
#define NODEID_ nodeid_
#define NNODES_ nnodes_
#define TCGREADY_ tcgready_
#define TCGTIME_ tcgtime_
#define MTIME_ mtime_
#define DRAND48_ drand48_
#define LLOG_ llog_
#define STATS_ stats_
#define PBEGIN_ tcg_pbegin
#define ERROR_ Error

#endif
