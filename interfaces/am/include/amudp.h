/* AMUDP's calls: see am.h. */
#include <am.h>
