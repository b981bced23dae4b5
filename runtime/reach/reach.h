/* SPDX-License-Identifier: MIT */
/* reach.h: what the modules of this room know of each other, and process/runtime.c of them. */
#ifndef RUNTIME_REACH_REACH_H
#define RUNTIME_REACH_REACH_H

/* --- attach.c: being loaded into a program that runs (`memtrace attach`), by a thread that the
 * command starts in it --------------------------------------------------------------------------
 */

/* Whether we are loaded by such a thread: then nothing starts before memtrace_attach(). */
int attach_is_coming(void);
/* Whether the command that attached collects what is counted, and writes it down. */
int attach_is_collected(void);

/* --- loader.c: which objects are loaded, for who looks at the profile: a library that no call path
 * goes through may have an allocator of its own -------------------------------------------------
 */

/* Notes in the profile what has been loaded since. Takes the loader's lock: at the start, at the
 * end, and where the program itself calls the loader. */
void loader_note_objects(void);

/* --- rebind.c: words of loaded objects that are led to us. For attach.c and loader.c ------------
 */

/* Where we are attached. Finds what is to be led where: 0, or -1: no memory. */
int rebind_prepare(void);
/* Leads what can be led in all objects that are loaded by now. Again: what came since. */
void rebind_lead(void);
/* Puts back every word that still leads to us. */
void rebind_put_back(void);

/* MEMTRACE_INJECT. Rewrites what can be rewritten in all objects that are loaded by now. Takes the
 * loader's lock. */
void rebind_inject(void);
/* Whether it makes no difference to the loader that we open `file` (NULL: the program) for the code
 * at `caller`: no run path of the caller's is searched or named. */
int rebind_may_open(const char *file, const void *caller);

#endif
