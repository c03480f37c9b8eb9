// A picture of numbers, as a PPM file.
#ifndef PICTURE_H
#define PICTURE_H

// Writes `width` x `height` numbers, row by row from the top, from cold for the least to hot for the greatest of them.
// On rank 0 only. Returns 0; it says what is wrong with the file, and returns -1.
int picture_write(const char *path, const double *numbers, int width, int height);

#endif
