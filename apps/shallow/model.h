// The shallow water equations on a rotating sphere, in vorticity and divergence, after Hack and Jakob (1992): with the
// wind V, the vorticity zeta, the divergence delta, the geopotential phi and the Coriolis parameter f
//
//     d zeta / dt  = - div (zeta + f) V
//     d delta / dt = curl (zeta + f) V - laplacian (phi + V V / 2)
//     d phi / dt   = - div phi V
//
// in harmonics, with the products made on the grid, and steps of Runge and Kutta, of fourth order. Nothing is damped.
#ifndef MODEL_H
#define MODEL_H

#include "sphere.h"

struct model {
    struct sphere sphere;
    double *coriolis; // [latitude here][longitude]
    double *state;    // harmonics [STATE][2][count]
    double *start, *sum, *change, *results; // of a step
};

// A state at a point: the winds by the cosine of the latitude.
struct weather {
    double east, north, geopotential, coriolis;
};

// What the weather is at a latitude and a longitude.
typedef struct weather (*weather_at)(double latitude, double longitude);

// Makes a model with so many latitudes and degrees up to `most`, and starts it with the weather. Collective, as are
// all.
void model_open(struct model *model, int latitudes, int most, double radius, weather_at weather);

void model_close(struct model *model);
void model_step(struct model *model, double seconds);

// Makes the fields on the grid those of now.
void model_show(struct model *model);

#endif
