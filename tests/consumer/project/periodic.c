/* SPDX-License-Identifier: MIT */
/* Lives long enough for the periodic report that was built in. */
#include "store.h"
#include <unistd.h>

int main(void) {
    int count = store_fill();
    for (int i = 0; i < 15; i++)
        usleep(100 * 1000);
    return count == 10 ? 0 : 1;
}
