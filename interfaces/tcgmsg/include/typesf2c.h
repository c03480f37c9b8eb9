/* What C calls the types of Fortran: an INTEGER of eight bytes, or of four where TCGMSG_INTEGER is 4. */
#ifndef TYPESF2C_H
#define TYPESF2C_H

#if defined(TCGMSG_INTEGER) && TCGMSG_INTEGER == 4
typedef int Integer;
typedef int Logical;
#else
typedef long Integer;
typedef long Logical;
#endif
typedef float Real;
typedef double DoublePrecision;

#ifndef FATR
#define FATR
#endif

#endif
