/* What may be added to the type of a TCGMSG message: what the message consists of. */
#ifndef MSGTYPES
#define MSGTYPES

#define MSGDBL 65536
#define MSGINT 131072
#define MSGCHR 262144

#endif
