/* SPDX-License-Identifier: MIT */
/* soak_library.c: frames of a library that soak.cpp loads and unloads; built as several. */
#include "subject.h"

#include <stdlib.h>

__attribute__((visibility("default"))) long library_run(int depth, long (*callback)(void *argument),
                                                        void *argument);
long library_run(int depth, long (*callback)(void *argument), void *argument) {
    char frame[16 + 16 * NUMBER];
    keep(frame);
    long result = depth == 0 ? callback(argument) : library_run(depth - 1, callback, argument) + 1;
    void *block = malloc(40);
    keep(block);
    free(block);
    keep(frame);
    return result;
}
