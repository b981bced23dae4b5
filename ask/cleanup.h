/* SPDX-License-Identifier: MIT */
/*
 * cleanup.h: files and folders that must not outlive the command. A signal that ends it (Ctrl-C,
 * SIGTERM, SIGHUP) removes them first.
 *
 * Called by cli/outfile (unfinished output) and by source (unpacked symbols, merged runs). Any
 * thread. Signals that were ignored (nohup) or are handled by the command stay so.
 */
#ifndef ASK_CLEANUP_H
#define ASK_CLEANUP_H

/* path: a file, or a folder with all that is in it; it must stay valid until cleanup_forget().
 * Where too many are known already nothing removes it. */
void cleanup_watch(const char *path);

/* mkdtemp(), and watches it: no signal comes in between. */
char *cleanup_make_folder(char *pattern);

/* The path, as it was given, is removed, or is to stay. NULL or unknown: nothing happens. */
void cleanup_forget(const char *path);

/* Removes a file, or a folder with all that is in it. Async-signal-safe. */
void cleanup_remove(const char *path);
/* All that are watched: where the command's job has failed. Async-signal-safe. */
void cleanup_remove_all(void);

#endif
