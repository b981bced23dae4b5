/* SPDX-License-Identifier: MIT */
/*
 * allocatorsnone.c: in place of allocators.c and what it stands on, where there is no Zydis, and on
 * other machines than x86-64.
 */
#include "collect/allocators/allocators.h"

static int allocators_refuse(struct error *error) {
    return error_set(error, "functions can be followed by name only on x86-64, where MemTrace was "
                            "built with Zydis (libzydis-dev)");
}

int allocators_plan(const struct allocators_request *request, struct error *error) {
    (void)request;
    return allocators_refuse(error);
}

int allocators_list(const struct allocators_listing *listing, struct error *error) {
    (void)listing;
    return allocators_refuse(error);
}
