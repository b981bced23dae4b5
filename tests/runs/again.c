/* SPDX-License-Identifier: MIT */
/* again.c TIMES: a block of 1,000,000 + TIMES bytes; then it becomes itself by exec, until TIMES is
 * 0. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
    int times = count > 1 ? atoi(arguments[1]) : 0;
    char *volatile kept = malloc(1000000 + (size_t)times);
    char left[16];
    snprintf(left, sizeof left, "%d", times - 1);
    if (times > 0) {
        execl(arguments[0], arguments[0], left, (char *)NULL);
    }
    return kept == NULL;
}
