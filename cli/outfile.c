/* SPDX-License-Identifier: MIT */
/* outfile.c: see outfile.h. */
#include "cli/outfile.h"

#include "analyze/base/filemode.h"
#include "ask/cleanup.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct outfile *file, const char *path, struct error *error) {
    int number = errno;
    outfile_drop(file);
    return error_set(error, "cannot write %s: %s", path, strerror(number));
}

/* A device or a pipe cannot be replaced by a file. */
static bool is_special(const char *path, struct stat *status) {
    return stat(path, status) == 0 && !S_ISREG(status->st_mode);
}

/* Beside the file that a link leads to, so that the link stays. */
static int name_files(struct outfile *file, const char *path) {
    file->target = realpath(path, NULL);
    if (file->target == NULL) {
        file->target = strdup(path);
    }
    if (file->target == NULL ||
        asprintf(&file->temporary, "%s.%ld.tmp", file->target, (long)getpid()) < 0) {
        file->temporary = NULL;
        return -1;
    }
    return 0;
}

static FILE *create(const char *path, const struct stat *old) {
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
static bool is_measured(const char *path) {
    char start[sizeof "MEMTR" - 1];
    FILE *file = fopen(path, "re");
    bool is = file != NULL && fread(start, sizeof start, 1, file) == 1 &&
              memcmp(start, "MEMTR", sizeof start) == 0;
    if (file != NULL) {
        fclose(file);
    }
    return is;
}

static int open_any(struct outfile *file, const char *path, struct error *error) {
    struct stat status = {0};
    *file = (struct outfile){.stream = stdout};
    if (path == NULL || strcmp(path, "-") == 0) {
        return 0;
    }
    if (is_special(path, &status)) {
        file->path = path;
        file->stream = fopen(path, "we");
        return file->stream != NULL ? 0 : fail(file, path, error);
    }
    if (name_files(file, path) != 0) {
        return fail(file, path, error);
    }
    unlink(file->temporary); /* of a process that had our number and was killed */
    cleanup_watch(file->temporary);
    file->path = file->temporary;
    file->stream = create(file->temporary, &status);
    return file->stream != NULL ? 0 : fail(file, path, error);
}

int outfile_open(struct outfile *file, const char *path, struct error *error) {
    struct stat status;
    if (path != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode) && is_measured(path)) {
        return error_set(error, "%s is a profile or a recording: name another --output", path);
    }
    return open_any(file, path, error);
}

/* 0, or -1: what was written did not all get there. */
static int close_stream(struct outfile *file) {
    FILE *stream = file->stream;
    bool bad = ferror(stream) != 0;
    file->stream = NULL;
    if (stream == stdout) {
        return fflush(stdout) != 0 || bad ? -1 : 0;
    }
    return fclose(stream) != 0 || bad ? -1 : 0;
}

/* Writing may have failed long ago, and something else since. */
static bool is_of_writing(int number) {
    return number == ENOSPC || number == EDQUOT || number == EFBIG || number == EPIPE;
}

static void forget(struct outfile *file) {
    cleanup_forget(file->temporary);
    free(file->temporary);
    free(file->target);
    *file = (struct outfile){0};
}

int outfile_keep(struct outfile *file, struct error *error) {
    const char *name = file->target != NULL ? file->target : file->path;
    char shown[4096];
    snprintf(shown, sizeof shown, "%s", name != NULL ? name : "the output");
    if (close_stream(file) != 0) {
        if (name == NULL && errno == EPIPE) {
            outfile_drop(file);
            return error_set(error, "%s", "");
        }
        errno = is_of_writing(errno) ? errno : EIO;
        return fail(file, shown, error);
    }
    if (file->target != NULL && rename(file->temporary, file->target) != 0) {
        return fail(file, shown, error);
    }
    forget(file);
    return 0;
}

int outfile_open_named(struct outfile *file, const char *path, const char *what,
                       struct error *error) {
    if (open_any(file, path, error) != 0) {
        return -1;
    }
    if (file->target == NULL) {
        outfile_drop(file);
        return error_set(error, "%s cannot hold %s: name a file", path, what);
    }
    return 0;
}

int outfile_end(struct outfile *file, int result, struct error *error) {
    if (result != 0) {
        outfile_drop(file);
    } else {
        result = outfile_keep(file, error);
    }
    if (result != 0 && error->message[0] != '\0') {
        cli_error("%s", error->message);
    }
    return result == 0 ? CLI_OK : CLI_FAILURE;
}

void outfile_drop(struct outfile *file) {
    if (file->stream != NULL && file->stream != stdout) {
        fclose(file->stream);
    }
    if (file->temporary != NULL) {
        unlink(file->temporary);
    }
    forget(file);
}
