/* SPDX-License-Identifier: MIT */
/* attach.c: coming up in a program that runs, and leaving it. See attach.h. */
#define _GNU_SOURCE
#include "runtime/entry/attach.h"

#include "memtrace/attach.h"
#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/thread.h"

enum { SETTINGS = 64, FIRST_LOOK_NS = 10000000, SECOND_LOOK_NS = 100000000 };

static uint32_t attached;

int attach_is_coming(void) {
    char name[16];
    sys_thread_name(name);
    return text_equal(name, MEMTRACE_ATTACH_THREAD);
}

int attach_is_attached(void) {
    return LOAD_RELAXED(&attached) != 0;
}

static void split(const char *settings, char *array[SETTINGS + 1]) {
    size_t count = 0;
    for (; *settings != '\0' && count < SETTINGS; settings += text_length(settings) + 1) {
        array[count++] = (char *)settings;
    }
    array[count] = NULL;
}

/* Words that the loader was about to bind when they were led have been bound since. */
static void lead_all(void) {
    attach_lead();
    sys_sleep_ns(FIRST_LOOK_NS);
    attach_lead();
    sys_sleep_ns(SECOND_LOOK_NS);
    attach_lead();
}

static int attach(const char *settings) {
    char *array[SETTINGS + 1];
    uint32_t state = LOAD_ACQUIRE(&runtime.state);
    if (state != RUNTIME_ASLEEP) {
        return state == RUNTIME_OFF ? MEMTRACE_ATTACH_OVER : MEMTRACE_ATTACH_THERE;
    }
    split(settings, array);
    real_ensure();
    if (attach_prepare() != 0) {
        return MEMTRACE_ATTACH_FAILED;
    }
    STORE_RELAXED(&attached, 1u);
    if (!runtime_attach(array)) {
        return MEMTRACE_ATTACH_FAILED;
    }
    lead_all();
    return MEMTRACE_ATTACH_DONE;
}

/* The thread itself is never counted: it is not the program's. */
PUBLIC int memtrace_attach(const char *settings) {
    thread_pass_through(1);
    return attach(settings);
}

/* First nothing new comes to us, then all that came is told. */
PUBLIC int memtrace_detach(const char *unused) {
    (void)unused;
    thread_pass_through(1);
    if (!attach_is_attached()) {
        return MEMTRACE_ATTACH_NOT_OURS;
    }
    if (!runtime_is_ready()) {
        return MEMTRACE_ATTACH_OVER;
    }
    attach_put_back();
    sys_sleep_ns(FIRST_LOOK_NS); /* who has read a word is in our function soon */
    runtime_finish(MEMTRACE_STATE_ENDED);
    attach_put_back(); /* of a library that was being loaded */
    return MEMTRACE_ATTACH_DONE;
}

/* Runs after the program's exit handlers, as the handler of a preloaded runtime does. */
__attribute__((destructor)) static void at_end(void) {
    if (attach_is_attached()) {
        runtime_finish(MEMTRACE_STATE_ENDED);
    }
}
