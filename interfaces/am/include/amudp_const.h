/* AMUDP's constants: see am.h. */
#include <am.h>
