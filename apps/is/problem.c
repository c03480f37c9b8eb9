// The places and ranks are published with the NAS parallel benchmarks; those of W and A are there said from another
// iteration on. Class P is that of "Challenging Applications on Fast Networks" (1998), for which there are none: the
// order of its keys is the check.
#include "problem.h"

static const struct problem PROBLEMS[] = {
    {'S', 1 << 16, 1 << 11, 5, {48427, 17148, 23627, 62548, 4431},
     {0, 18, 346, 64917, 65463}, {1, 1, 1, -1, -1}},
    {'W', 1 << 20, 1 << 16, 5, {357773, 934767, 875723, 898999, 404505},
     {1247, 11696, 1039987, 1043896, 1048018}, {1, 1, -1, -1, -1}},
    {'A', 1 << 23, 1 << 19, 5, {2112377, 662041, 5336171, 3642833, 4250760},
     {103, 17522, 123927, 8288933, 8388265}, {1, 1, 1, -1, -1}},
    {'B', 1 << 25, 1 << 21, 5, {41869, 812306, 5102857, 18232239, 26860214},
     {33422937, 10244, 59149, 33135281, 99}, {-1, 1, 1, -1, 1}},
    {'C', 1 << 27, 1 << 23, 5, {44172927, 72999161, 74326391, 129606274, 21736814},
     {61147, 882988, 266290, 133997595, 133525895}, {1, 1, 1, -1, -1}},
    {'P', 1 << 22, 1 << 18, 0, {0}, {0}, {0}},
};

const struct problem *problem_of(char class)
{
    const struct problem *problem = PROBLEMS;
    while (problem->class != class)
        problem++;
    return problem;
}
