/* SPDX-License-Identifier: MIT */
/*
 * outfile.h: a file that a command makes: it is there whole, under its name, or not at all. It is
 * written under a name of its own beside it and renamed; a signal that ends the command (Ctrl-C)
 * removes it.
 *
 * Called by the commands that write files. One at a time.
 *
 *     struct outfile file;
 *     if (outfile_open(&file, path, &error) != 0) ...
 *     ... write to file.stream, or to the file named file.path ...
 *     return outfile_end(&file, result, &error);
 */
#ifndef CLI_OUTFILE_H
#define CLI_OUTFILE_H

#include "analyze/base/error.h"

#include <stdbool.h>
#include <stdio.h>

struct outfile {
    FILE *stream;     /* what is written here */
    const char *path; /* of the stream's file; NULL: stdout */
    char *target;     /* its name in the end; NULL: it is written in place (stdout, a device) */
    char *temporary;
};

/* path NULL or "-": stdout. A profile or a recording is not replaced by a text. 0 or -1. */
int outfile_open(struct outfile *file, const char *path, struct error *error);

/* The same for what is a recording itself and may take the place of one; it must be a file with a
 * name: not stdout, nor a device. what: "a recording". */
int outfile_open_named(struct outfile *file, const char *path, const char *what,
                       struct error *error);

/* All is written: renames. 0, or -1: it could not be written, and is gone. A closed pipe at stdout
 * is -1 with an empty message. */
int outfile_keep(struct outfile *file, struct error *error);

/* The end of it: keeps what `result` 0 says is whole, drops anything else. CLI_OK, or CLI_FAILURE
 * after the line in error was printed (none, if there is none). */
int outfile_end(struct outfile *file, int result, struct error *error);

/* It shall not be. */
void outfile_drop(struct outfile *file);

#endif
