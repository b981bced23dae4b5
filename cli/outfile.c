/* SPDX-License-Identifier: MIT */
/* outfile.c: see outfile.h. */
#include "cli/outfile.h"

#include "analyze/base/filemode.h"
#include "analyze/base/job.h"
#include "ask/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *outfile_create(const char *path, const struct stat *old) {
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, filemode());
    FILE *stream = NULL;
    if (descriptor >= 0) {
        /* Who may read the file that is replaced may read the new one. A right to run as its owner
         * or group was given to what stood in the old one. */
        if (old->st_mode != 0 && fchmod(descriptor, old->st_mode & 0777) != 0) {
            close(descriptor);
            return NULL;
        }
        stream = fdopen(descriptor, "w");
        if (stream == NULL) {
            close(descriptor);
        }
    }
    return stream;
}

/* Whether it is a profile or a recording, which all begin alike. */
static bool outfile_is_measured(const char *path) {
    char start[sizeof "MEMTR" - 1];
    FILE *file = fopen(path, "re");
    bool is = file != NULL && fread(start, sizeof start, 1, file) == 1 &&
              memcmp(start, "MEMTR", sizeof start) == 0;
    if (file != NULL) {
        fclose(file);
    }
    return is;
}

/* What is not kept shall not be. */
static void outfile_drop(void *what) {
    struct outfile *file = what;
    if (file->stream != NULL && file->stream != stdout) {
        fclose(file->stream);
    }
    if (file->temporary != NULL) {
        unlink(file->temporary);
        cleanup_forget(file->temporary);
    }
}

static noreturn void outfile_fail(const char *path) {
    job_fail("cannot write %s: %s", path, strerror(errno));
}

static struct outfile *outfile_open_any(const char *path) {
    struct stat status = {0};
    struct outfile *file = job_alloc(sizeof *file);
    bool is_stdout = path == NULL || strcmp(path, "-") == 0;
    /* A device or a pipe cannot be replaced by a file. */
    bool is_special = !is_stdout && stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    file->stream = is_stdout ? stdout : NULL;
    if (is_special) {
        file->path = path;
    } else if (!is_stdout) {
        /* Beside the file that a link leads to, so that the link stays. */
        char *target = realpath(path, NULL);
        file->target = job_take(target != NULL ? target : strdup(path));
        file->path = file->temporary = job_text("%s.%ld.tmp", file->target, (long)getpid());
        unlink(file->temporary); /* of a process that had our number and was killed */
        cleanup_watch(file->temporary);
    }
    job_undo(outfile_drop, file); /* before the names are freed */
    if (!is_stdout) {
        file->stream = is_special ? fopen(path, "we") : outfile_create(file->temporary, &status);
    }
    if (file->stream == NULL) {
        outfile_fail(path);
    }
    return file;
}

struct outfile *outfile_open(const char *path) {
    struct stat status;
    if (path != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
        outfile_is_measured(path)) {
        job_fail("%s is a profile or a recording: name another --output", path);
    }
    return outfile_open_any(path);
}

struct outfile *outfile_open_named(const char *path, const char *what) {
    struct outfile *file = outfile_open_any(path);
    if (file->target == NULL) {
        job_fail("%s cannot hold %s: name a file", path, what);
    }
    return file;
}

void outfile_keep(struct outfile *file) {
    const char *name = file->target != NULL ? file->target : file->path;
    FILE *stream = file->stream;
    bool bad = ferror(stream) != 0;
    file->stream = NULL;
    bad |= stream == stdout ? fflush(stdout) != 0 : fclose(stream) != 0;
    if (bad && name == NULL && errno == EPIPE) {
        job_fail("%s", "");
    }
    if (bad) {
        /* Writing may have failed long ago, and something else since. */
        bool is_of_writing = errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EPIPE;
        errno = is_of_writing ? errno : EIO;
        outfile_fail(name != NULL ? name : "the output");
    }
    if (file->target != NULL && rename(file->temporary, file->target) != 0) {
        outfile_fail(name);
    }
    cleanup_forget(file->temporary);
    file->temporary = NULL;
}
