/* SPDX-License-Identifier: MIT */
/* greedy.c: allocates and touches memory until somebody ends it, or there is none: 5. */
#include "../programs/subjects/subject.h"

#include <stdlib.h>

int main(void) {
    for (;;) {
        char *block = malloc(1 << 20);
        if (block == NULL) {
            return 5;
        }
        memset(block, 1, 1 << 20);
        keep(block);
    }
}
