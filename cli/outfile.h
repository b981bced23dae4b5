/* SPDX-License-Identifier: MIT */
/*
 * outfile.h: a file that a command makes: it is there whole, under its name, or not at all. It is
 * written under a name of its own beside it and renamed; a signal that ends the command (Ctrl-C)
 * removes it.
 *
 * Called by the commands that write files. It belongs to their job: whatever cannot be had ends
 * that, and where that ends before outfile_keep(), the file is not there.
 *
 *     struct outfile *file = outfile_open(path);
 *     ... write to file->stream, or to the file named file->path ...
 *     outfile_keep(file);
 */
#ifndef CLI_OUTFILE_H
#define CLI_OUTFILE_H

#include <stdio.h>

struct outfile {
    FILE *stream;       /* what is written here */
    const char *path;   /* of the stream's file; NULL: stdout */
    const char *target; /* its name in the end; NULL: it is written in place (stdout, a device) */
    char *temporary;
};

/* path NULL or "-": stdout. A profile or a recording is not replaced by a text. */
struct outfile *outfile_open(const char *path);

/* The same for what is a recording itself and may take the place of one; it must be a file with a
 * name: not stdout, nor a device. what: "a recording". */
struct outfile *outfile_open_named(const char *path, const char *what);

/* All is written: renames. Where that fails, it is gone. A closed pipe at stdout ends the job with
 * an empty message. */
void outfile_keep(struct outfile *file);

#endif
