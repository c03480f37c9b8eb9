// The random numbers of the NAS parallel benchmarks: x becomes 5^13 x modulo 2^46, from 314159265 on. A number is the
// fraction x / 2^46. Whole numbers of 64 bits are enough, as 2^46 divides 2^64.
#ifndef NAS_H
#define NAS_H

#include <stdint.h>

enum { NAS_BITS = 46 };

#define NAS_FACTOR 1220703125u
#define NAS_SEED 314159265u

// The next one.
static inline uint64_t nas_next(uint64_t x)
{
    return NAS_FACTOR * x & (((uint64_t)1 << NAS_BITS) - 1);
}

static inline double nas_fraction(uint64_t x)
{
    return (double)(int64_t)x * 0x1p-46;
}

// The state after `steps` numbers.
static inline uint64_t nas_after(uint64_t steps)
{
    uint64_t x = NAS_SEED, factor = NAS_FACTOR;
    for (; steps > 0; steps >>= 1, factor *= factor)
        if (steps & 1)
            x *= factor;
    return x & (((uint64_t)1 << NAS_BITS) - 1);
}

#endif
