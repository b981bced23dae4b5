/* SPDX-License-Identifier: MIT */
/* beside_resolved.c: calls what beside_resolver.c has, from another library. */
#include <stdio.h>
#include <stdlib.h>

int resolved(void);

int main(void) {
    free(malloc(10));
    printf("%d\n", resolved());
    return 0;
}
