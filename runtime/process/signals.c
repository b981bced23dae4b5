/* SPDX-License-Identifier: MIT */
/*
 * signals.c: our handlers, and the functions by which a program sets its own. See signals.h.
 *
 * What the program set is one word a signal, so that a handler reads it whole: its function and the
 * flags that say how to call it. The rest, mask and other flags, the kernel keeps with ours.
 */
#define _GNU_SOURCE
#include "runtime/process/signals.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/switch.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#define WORD_INFO     ((uint64_t)1 << 62) /* SA_SIGINFO: three arguments */
#define WORD_ONCE     ((uint64_t)1 << 63) /* SA_RESETHAND: SIG_DFL after the first */
#define WORD_FUNCTION (WORD_INFO - 1)

static struct {
    struct trylock lock; /* of whoever changes a word and what the kernel has with it */
    uint8_t action[SETTINGS_SIGNALS];
    uint64_t program[SETTINGS_SIGNALS];
} signals;

/* --- which ------------------------------------------------------------------------------------ */

static int signals_skip(const char **at, const char *word) {
    size_t length = text_length(word);
    if (!text_starts(*at, word)) {
        return 0;
    }
    *at += length;
    return 1;
}

static enum signal_action signals_read_action(const char **at) {
    static const char *const words[] = {"toggle:", "on:", "off:", "snapshot:", "exact:", "sample:"};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (signals_skip(at, words[i])) {
            return SIGNAL_TOGGLE + i;
        }
    }
    return SIGNAL_TOGGLE;
}

/* Those that the kernel and the C library keep for themselves, and those that tell of a fault, are
 * none to switch by. */
static int is_usable(int number) {
    return number > 0 && number < SETTINGS_SIGNALS && number != SIGKILL && number != SIGSTOP &&
           number != SIGSEGV && number != SIGBUS && number != SIGILL && number != SIGFPE &&
           number != SIGABRT && number != SIGTRAP && number != SIGCHLD &&
           (number < 32 || number >= SIGRTMIN);
}

/* A name with or without SIG, or a number. 0: none. */
static int read_signal(const char **at) {
    static const struct {
        const char *name;
        int number;
    } names[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2},   {"HUP", SIGHUP},
                 {"ALRM", SIGALRM}, {"WINCH", SIGWINCH}, {"URG", SIGURG},
                 {"IO", SIGIO},     {"PWR", SIGPWR},     {"PROF", SIGPROF}};
    uint64_t number;
    signals_skip(at, "SIG");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (signals_skip(at, names[i].name)) {
            return names[i].number;
        }
    }
    number = text_read_number(at);
    return number < SETTINGS_SIGNALS && is_usable((int)number) ? (int)number : 0;
}

int signals_parse(const char *list, struct settings_signals *out) {
    struct settings_signals read = {0};
    if (text_equal(list, "none")) {
        *out = read;
        return 0;
    }
    for (;; list++) {
        enum signal_action action = signals_read_action(&list);
        int number = read_signal(&list);
        if (number == 0 || (*list != ',' && *list != '\0')) {
            return -1;
        }
        read.action[number] = (uint8_t)action;
        if (*list == '\0') {
            *out = read;
            return 0;
        }
    }
}

/* --- when one comes --------------------------------------------------------------------------- */

static void act(int number) {
    switch ((enum signal_action)signals.action[number]) {
    case SIGNAL_TOGGLE:
        (switch_is_on() ? switch_off : switch_on)();
        break;
    case SIGNAL_ON:
        switch_on();
        break;
    case SIGNAL_OFF:
        switch_off();
        break;
    case SIGNAL_SNAPSHOT:
        switch_snapshot(0);
        return;
    case SIGNAL_EXACT:
        switch_to(MEMTRACE_MODE_EXACT, 0);
        break;
    case SIGNAL_SAMPLE:
        switch_to(MEMTRACE_MODE_SAMPLED, 0);
        break;
    case SIGNAL_NOTHING:
        return;
    }
    log_at(LOG_LEVEL_INFO, "a signal: counting is %s", switch_is_on() ? "on" : "off");
}

/* The program's own handler, if it set one. */
static void signals_pass_on(int number, siginfo_t *info, void *context) {
    uint64_t word = LOAD_RELAXED(&signals.program[number]);
    uintptr_t function = (uintptr_t)(word & WORD_FUNCTION);
    if (function == (uintptr_t)SIG_DFL || function == (uintptr_t)SIG_IGN) {
        return;
    }
    if ((word & WORD_ONCE) != 0) {
        STORE_RELAXED(&signals.program[number], (uint64_t)(uintptr_t)SIG_DFL);
    }
    if ((word & WORD_INFO) != 0) {
        ((void (*)(int, siginfo_t *, void *))function)(number, info, context);
    } else {
        ((void (*)(int))function)(number);
    }
}

static void signals_handle(int number, siginfo_t *info, void *context) {
    int saved = errno;
    act(number);
    errno = saved;
    signals_pass_on(number, info, context);
}

/* --- what the program sets -------------------------------------------------------------------- */

/* Also without SA_SIGINFO: as an old function may have told it to the program. */
static int signals_has_ours(const struct sigaction *action) {
    return action->sa_sigaction == signals_handle;
}

static uint64_t signals_word(const struct sigaction *action) {
    uint64_t word = (uintptr_t)action->sa_handler;
    if (signals_has_ours(action)) { /* saved by a way that we do not see, and given back */
        return (uintptr_t)SIG_DFL;
    }
    word |= (action->sa_flags & SA_SIGINFO) != 0 ? WORD_INFO : 0;
    return word | ((action->sa_flags & (int)SA_RESETHAND) != 0 ? WORD_ONCE : 0);
}

/* What the kernel is told, where the program wants `action`. */
static struct sigaction ours_for(const struct sigaction *action) {
    struct sigaction ours = {.sa_flags = SA_RESTART | SA_ONSTACK};
    if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN &&
        !signals_has_ours(action)) {
        ours.sa_mask = action->sa_mask;
        ours.sa_flags = action->sa_flags & ~(int)SA_RESETHAND;
    }
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = signals_handle;
    return ours;
}

/* What the program is shown, where the kernel has our handler. */
static void signals_show(struct sigaction *kernel, uint64_t word) {
    uintptr_t function = (uintptr_t)(word & WORD_FUNCTION);
    if (!signals_has_ours(kernel)) {
        return;
    }
    if (function == (uintptr_t)SIG_DFL || function == (uintptr_t)SIG_IGN) {
        *kernel = (struct sigaction){.sa_handler = (void (*)(int))function};
        return;
    }
    kernel->sa_handler = (void (*)(int))function;
    kernel->sa_flags &= (word & WORD_INFO) != 0 ? ~0 : ~SA_SIGINFO;
    kernel->sa_flags |= (word & WORD_ONCE) != 0 ? (int)SA_RESETHAND : 0;
}

/* For a signal that does something: the word and the kernel's entry change together. */
static int signals_set_both(int number, const struct sigaction *action, struct sigaction *old) {
    uint64_t before = LOAD_RELAXED(&signals.program[number]);
    struct sigaction wanted;
    struct sigaction kernel;
    int result;
    /* A child of vfork has the kernel's table for itself, but our words are its parent's. */
    int is_vforked =
        runtime.alive != NULL && *runtime.alive != 0 && runtime.space.header->pid != sys_getpid();
    if (action == NULL || is_vforked) {
        result = real.sigaction(number, action, &kernel);
    } else {
        wanted = ours_for(action);
        STORE_RELAXED(&signals.program[number], signals_word(action));
        result = real.sigaction(number, &wanted, &kernel);
    }
    if (result == 0 && old != NULL) {
        *old = kernel;
        signals_show(old, before);
    }
    return result;
}

static int does_something(int number) {
    return number > 0 && number < SETTINGS_SIGNALS && signals.action[number] != SIGNAL_NOTHING;
}

static int signals_set(int number, const struct sigaction *action, struct sigaction *old) {
    struct sys_signals mask = sys_block_signals(); /* a handler in between would see halves */
    int locked = sys_take(&signals.lock);
    int result = signals_set_both(number, action, old);
    if (locked) {
        trylock_release(&signals.lock);
    }
    sys_restore_signals(mask);
    return result;
}

PUBLIC int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    real_ensure();
    return does_something(number) ? signals_set(number, action, old)
                                  : real.sigaction(number, action, old);
}

PUBLIC int __sigaction(int number, const struct sigaction *action, struct sigaction *old)
    __attribute__((alias("sigaction"), nothrow, leaf));

typedef void (*handler_function)(int);

/* signal() for a signal of ours. */
static handler_function set_simply(int number, handler_function handler, int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    struct sigaction old;
    if ((flags & SA_RESTART) != 0) {
        sigaddset(&action.sa_mask, number);
    }
    return signals_set(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

PUBLIC handler_function signal(int number, handler_function handler) {
    real_ensure();
    return does_something(number) ? set_simply(number, handler, SA_RESTART)
                                  : real.signal(number, handler);
}

PUBLIC handler_function ssignal(int number, handler_function handler)
    __attribute__((alias("signal"), nothrow, leaf));

PUBLIC handler_function bsd_signal(int number, handler_function handler)
    __attribute__((alias("signal"), nothrow, leaf));

PUBLIC handler_function sysv_signal(int number, handler_function handler) {
    real_ensure();
    return does_something(number) ? set_simply(number, handler, (int)(SA_RESETHAND | SA_NODEFER))
                                  : real.sysv_signal(number, handler);
}

/* What signal() is in programs built for strict standards. */
PUBLIC handler_function __sysv_signal(int number, handler_function handler)
    __attribute__((alias("sysv_signal"), nothrow, leaf));

/* --- at the start ----------------------------------------------------------------------------- */

void signals_start(const struct settings_signals *wanted) {
    struct sigaction now;
    for (int number = 1; number < SETTINGS_SIGNALS; number++) {
        if (wanted->action[number] != SIGNAL_NOTHING && real.sigaction(number, NULL, &now) == 0) {
            signals.action[number] = wanted->action[number];
            sigaction(number, &now, NULL);
        }
    }
}
