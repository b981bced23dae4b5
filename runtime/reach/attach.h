/* SPDX-License-Identifier: MIT */
/*
 * attach.h: being loaded into a program that runs (`memtrace attach`), by a thread that the command
 * starts in it. Nothing is preloaded then: the words of all objects that hold addresses of
 * functions that we stand in for are led to us, and `memtrace detach` puts them back.
 */
#ifndef RUNTIME_REACH_ATTACH_H
#define RUNTIME_REACH_ATTACH_H

#include "memtrace/attach.h"

/* Whether we are loaded by such a thread: then nothing starts before memtrace_attach(). */
int attach_is_coming(void);
/* Whether the command that attached collects what is counted, and writes it down. */
int attach_is_collected(void);

/* --- attach_words.c --------------------------------------------------------------------------- */

/* Finds what is to be led where. 0, or -1: no memory. */
int attach_prepare(void);
/* Leads what can be led in all objects that are loaded by now. Again: what came since. */
void attach_lead(void);
/* Puts back every word that still leads to us. */
void attach_put_back(void);

#endif
