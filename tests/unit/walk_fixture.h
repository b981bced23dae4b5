/* SPDX-License-Identifier: MIT */
/* walk_fixture.h: what a walk needs, for the thread that runs the tests. */
#ifndef TESTS_UNIT_WALK_FIXTURE_H
#define TESTS_UNIT_WALK_FIXTURE_H

#include "runtime/stack/walk.h"

#include "tests/unit/space_fixture.h"

#include <pthread.h>

static struct space *space;
static struct context_tree tree;
static struct modules modules;
static struct rules rules;
static struct walk_world world = {.tree = &tree, .rules = &rules};
static struct walker walker;

static int open_world(void **state) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    (void)state;
    space = world.space = space_fixture_open();
    context_init(&tree, space, UINT32_MAX);
    module_init(&modules, space, "/proc/self/exe");
    rule_init(&rules, &modules, &tree.areas);
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    return walk_init(&walker, (uintptr_t)low, (uintptr_t)low + size);
}

static int close_world(void **state) {
    (void)state;
    walk_free(&walker);
    space_fixture_close(space);
    return 0;
}

#endif
