/* SPDX-License-Identifier: MIT */
#include "store.h"

int main(void) {
    return store_fill() == 10 ? 0 : 1;
}
