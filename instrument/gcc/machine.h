/* SPDX-License-Identifier: MIT */
/* machine.h: what the pass must know of the machine that the compiler makes code for; one of
 * machine_*.cpp is built into the plugin of each compiler. */
#ifndef INSTRUMENT_GCC_MACHINE_H
#define INSTRUMENT_GCC_MACHINE_H

#include <string>

/* Why no code for this machine can have frame words, with the options at hand; NULL: it can. */
const char *machine_unfit();

/* Makes the word %0 fresh, in the form that runtime/machine finds (machine_find_store). */
std::string machine_store_text();

/* Whether inline assembly may leave for other code: by call, jump or return. */
bool machine_asm_leaves(const std::string &text);

#endif
