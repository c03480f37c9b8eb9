#include "cases.h"

#include <math.h>

const double EARTH_RADIUS = 6.37122e6, GRAVITY = 9.80616;

static const double PI = 3.14159265358979323846, OMEGA = 7.292e-5, DAY = 86400;

struct weather cases_steady(double latitude, double longitude)
{
    double tilt = PI / 4, wind = 2 * PI * EARTH_RADIUS / (12 * DAY), c = cos(latitude);
    // The sine of the latitude by the axis of the flow, which is that of the Coriolis parameter, too.
    double sine = -cos(longitude) * c * sin(tilt) + sin(latitude) * cos(tilt);
    double east = wind * (c * cos(tilt) + cos(longitude) * sin(latitude) * sin(tilt));
    double north = -wind * sin(longitude) * sin(tilt);
    double geopotential = 2.94e4 - (EARTH_RADIUS * OMEGA * wind + wind * wind / 2) * sine * sine;
    return (struct weather){east * c, north * c, geopotential, 2 * OMEGA * sine};
}

struct weather cases_wave(double latitude, double longitude)
{
    double c = cos(latitude), s = sin(latitude), c2 = c * c, turn = 7.848e-6, r = 4, a = EARTH_RADIUS;
    double east = a * turn * c + a * turn * pow(c, r - 1) * (r * s * s - c2) * cos(r * longitude);
    double north = -a * turn * r * pow(c, r - 1) * s * sin(r * longitude);
    double mean = turn / 2 * (2 * OMEGA + turn) * c2 +
                  turn * turn / 4 * pow(c, 2 * r) * ((r + 1) * c2 + (2 * r * r - r - 2) - 2 * r * r / c2);
    double once = 2 * (OMEGA + turn) * turn / ((r + 1) * (r + 2)) * pow(c, r) *
                  ((r * r + 2 * r + 2) - (r + 1) * (r + 1) * c2);
    double twice = turn * turn / 4 * pow(c, 2 * r) * ((r + 1) * c2 - (r + 2));
    double geopotential =
        GRAVITY * 8000 + a * a * (mean + once * cos(r * longitude) + twice * cos(2 * r * longitude));
    return (struct weather){east * c, north * c, geopotential, 2 * OMEGA * s};
}
