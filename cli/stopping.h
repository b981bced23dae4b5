/* SPDX-License-Identifier: MIT */
/* stopping.h: commands that go on until Ctrl-C and then put things in order. Called by attach,
 * gather and send. */
#ifndef CLI_STOPPING_H
#define CLI_STOPPING_H

#include <signal.h>

/* The signal that came after stopping_catch(); 0: none. */
extern volatile sig_atomic_t stopping_signal;

/* From here on SIGINT and SIGTERM end nothing but calls that wait. */
void stopping_catch(void);

#endif
