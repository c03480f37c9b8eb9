// Every point has a random number, in the order x, y, z. The ten greatest become 1 and the ten least -1.
#include "charges.h"
#include "nas.h"
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

enum { TEN = 10 };

struct candidate {
    uint64_t number, place; // place: where in the order
};

// The ten greatest of those seen, the greatest first. For the least their numbers count from above.
struct candidates {
    struct candidate greatest[TEN], least[TEN];
};

static void consider(struct candidate *ten, struct candidate one)
{
    if (one.number <= ten[TEN - 1].number)
        return;
    int at = TEN - 1;
    for (; at > 0 && ten[at - 1].number < one.number; at--)
        ten[at] = ten[at - 1];
    ten[at] = one;
}

static void draw(const struct grid *grid, struct candidates *mine)
{
    uint64_t plane = (uint64_t)grid->n * (uint64_t)grid->n, place = (uint64_t)grid->first * plane;
    uint64_t end = place + (uint64_t)grid->planes * plane, x = nas_after(place);
    for (; place < end; place++) {
        x = nas_next(x);
        consider(mine->greatest, (struct candidate){x, place});
        consider(mine->least, (struct candidate){((uint64_t)1 << NAS_BITS) - x, place});
    }
}

static void set(struct grid *grid, uint64_t place, double value)
{
    uint64_t n = (uint64_t)grid->n;
    int z = (int)(place / n / n);
    if (z >= grid->first && z < grid->first + grid->planes)
        grid_plane(grid, z)[(place / n % n + 1) * (n + 2) + place % n + 1] = value;
}

int charges_place(struct grid *grid)
{
    struct candidates all[ranks.count], found;
    memset(all, 0, sizeof all);
    memset(&found, 0, sizeof found);
    draw(grid, &all[ranks.me]);
    ranks_gather_equal(all, sizeof found);
    for (int rank = 0; rank < (grid->is_shared ? ranks.count : 1); rank++) {
        for (int i = 0; i < TEN; i++) {
            consider(found.greatest, all[rank].greatest[i]);
            consider(found.least, all[rank].least[i]);
        }
    }
    for (int i = 0; i < TEN; i++) {
        set(grid, found.greatest[i].place, 1);
        set(grid, found.least[i].place, -1);
    }
    grid_exchange(grid);
    return (int)(found.greatest[0].place / ((uint64_t)grid->n * (uint64_t)grid->n));
}
