/* Processes of a job with an endpoint each, as AMUDP starts them.
 *
 * A rank of `weft run -n N program arguments` is a worker. A program that was started by hand, as
 * `program N spawnfn arguments`, becomes that job: AMUDP_SPMDStartup does not return there. */
#ifndef WEFT_AMUDP_SPMD_H
#define WEFT_AMUDP_SPMD_H

#include <am.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How AMUDP would start workers. All of these stand for `weft run`. */
typedef int (*amudp_spawnfn_t)(int processes, int argc, char **argv, char **environment);
typedef struct {
  char abbrev;
  const char *desc;
  amudp_spawnfn_t fnptr;
} amudp_spawnfn_desc_t;
extern const amudp_spawnfn_desc_t AMUDP_Spawnfn_Desc[];
extern int AMUDP_SPMDLocalSpawn(int processes, int argc, char **argv, char **environment);
extern int AMUDP_SPMDSshSpawn(int processes, int argc, char **argv, char **environment);
extern int AMUDP_SPMDCustomSpawn(int processes, int argc, char **argv, char **environment);

/* Makes a bundle and an endpoint that is mapped in all processes, with a tag of its own. `processes` 0: the number is the
 * first argument; `spawnfn` NULL: its letter is the next one. `job` gets a number that is the same in all processes. */
extern int AMUDP_SPMDStartup(int *argc, char ***argv, int processes, int depth, amudp_spawnfn_t spawnfn, uint64_t *job,
                             eb_t *bundle, ep_t *ep);
extern int AMUDP_SPMDIsWorker(char **argv);
extern int AMUDP_SPMDNumProcs(void);
extern int AMUDP_SPMDMyProc(void);
extern void AMUDP_SPMDSetProc(int rank);

/* Waits for all, and polls meanwhile. */
extern int AMUDP_SPMDBarrier(void);
/* Each process's `length` bytes go to all of them, by rank. */
extern int AMUDP_SPMDAllGather(void *source, void *gathered, size_t length);
extern int AMUDP_SPMDHandleControlTraffic(int *serviced);
extern const char *AMUDP_SPMDgetenvMaster(const char *name);
extern const char *AMUDP_check_env_prefix(const char *prefix);

/* Ends all processes of the job: each when it polls next. */
extern int AMUDP_SPMDExit(int code);
typedef void (*amudp_exitcallback_t)(int);
extern int AMUDP_SPMDSetExitCallback(amudp_exitcallback_t callback);
extern void (*AMUDP_SPMDkillmyprocess)(int code);

#ifdef __cplusplus
}
#endif

#define AMX_SPMDgetenvMaster AMUDP_SPMDgetenvMaster
#define AMX_SPMDBarrier AMUDP_SPMDBarrier
#define AMX_SPMDNumProcs AMUDP_SPMDNumProcs
#define AMX_SPMDMyProc AMUDP_SPMDMyProc
#define AMX_SPMDExit AMUDP_SPMDExit
#define AMX_SPMDSetExitCallback AMUDP_SPMDSetExitCallback
#define AMX_SPMDkillmyprocess AMUDP_SPMDkillmyprocess
#define AMX_SPMDIsWorker AMUDP_SPMDIsWorker
#define AMX_SPMDAllGather AMUDP_SPMDAllGather
#define AMX_SPMDStartup(argc, argv, depth, job, bundle, ep) AMUDP_SPMDStartup(argc, argv, 0, depth, NULL, job, bundle, ep)

#endif
