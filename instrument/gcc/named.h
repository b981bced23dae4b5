/* SPDX-License-Identifier: MIT */
/*
 * named.h: functions that allocate and are named by the user report by themselves
 * (memtrace/named.h). A pass over each function before anything is done to it: what is put in is
 * part of its body, wherever that is inlined later.
 */
#ifndef INSTRUMENT_GCC_NAMED_H
#define INSTRUMENT_GCC_NAMED_H

#include "instrument/gcc/headers.h"

gimple_opt_pass *named_make_pass(gcc::context *context);

/* A pass over the unit, after the first has seen its functions: judges those whose attributes say
 * that they allocate, and writes what was found into the object. */
simple_ipa_opt_pass *named_make_record_pass(gcc::context *context);

/* What the pass keeps from one function to the next, for the collector of the compiler's garbage.
 */
const ggc_root_tab *named_roots();

#endif
