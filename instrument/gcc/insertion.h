/* SPDX-License-Identifier: MIT */
/* insertion.h: the pass that gives functions their frame words, and its report. */
#ifndef INSTRUMENT_GCC_INSERTION_H
#define INSTRUMENT_GCC_INSERTION_H

#include "instrument/gcc/headers.h"

rtl_opt_pass *insertion_make_pass(gcc::context *context);

/* A plugin callback: writes the unit's report. */
void insertion_end_unit(void *event_data, void *user_data);

#endif
