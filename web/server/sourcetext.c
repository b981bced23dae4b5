/* SPDX-License-Identifier: MIT */
/* sourcetext.c: see sourcetext.h. */
#include "web/server/sourcetext.h"

#include "analyze/base/job.h"
#include "analyze/symbol/sourceinfo.h"
#include "web/server/sourcefolders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Where it is ---- */

static const char *place_of(const struct sourcetext_wish *wish, bool *is_mapped) {
    for (size_t i = 0; i < wish->map_count; i++) {
        const char *equals = strchr(wish->maps[i], '=');
        size_t length = equals != NULL ? (size_t)(equals - wish->maps[i]) : 0;
        if (length != 0 && strncmp(wish->file, wish->maps[i], length) == 0) {
            *is_mapped = true;
            return job_text("%s%s", equals + 1, wish->file + length);
        }
    }
    return wish->file;
}

/* What lies there are no sources, whatever a recording says. */
static bool is_kernels(const char *path) {
    static const char *const folders[] = {"/proc/", "/sys/", "/dev/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (strncmp(path, folders[i], strlen(folders[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- Its bytes ---- */

static uint64_t ns_of(struct timespec time) {
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static struct sourcetext refuse_text(enum sourcetext_state state, const char *note) {
    return (struct sourcetext){.state = state, .note = note};
}

/* Whether it was written after what was compiled from it. */
static bool is_newer(const struct sourcetext_wish *wish, uint64_t written_ns) {
    struct stat module;
    if (wish->module[0] == '/' && stat(wish->module, &module) == 0) {
        return written_ns > ns_of(module.st_mtim);
    }
    return wish->start_ns != 0 && written_ns > wish->start_ns;
}

/* What the debug information says of the contents counts more than times do. */
static void judge(const struct sourcetext_wish *wish, uint64_t written_ns,
                  struct sourcetext *text) {
    const struct symbol_module module = {wish->module, wish->build_id, wish->build_id_size};
    enum sourceinfo_hash hash =
        sourceinfo_compare(&module, wish->debug_folders, wish->file, text->text, text->size);
    if (hash == SOURCEINFO_OTHER) {
        text->state = SOURCETEXT_DIFFERS;
        text->note = "The file is not the one that was compiled: lines may have moved.";
    } else if (hash == SOURCEINFO_UNKNOWN && is_newer(wish, written_ns)) {
        text->state = SOURCETEXT_NEWER;
        text->note = "The file was changed after the program was built: lines may have moved.";
    }
}

/* What is open, whatever the path led by. */
static bool is_allowed(int fd, const struct stat *status, const struct sourcetext_wish *wish,
                       bool is_mapped) {
    char link[64];
    char path[PATH_MAX];
    ssize_t size;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, path, sizeof path - 1);
    if (size <= 0) {
        return false;
    }
    path[size] = '\0';
    return path[0] == '/' && !is_kernels(path) &&
           sourcefolders_allow(wish, path, status, is_mapped);
}

static struct sourcetext read_open(FILE *file, const struct sourcetext_wish *wish, bool is_mapped) {
    struct sourcetext text = {.state = SOURCETEXT_CURRENT};
    struct stat stat;
    if (fstat(fileno(file), &stat) != 0 || !S_ISREG(stat.st_mode)) {
        return refuse_text(SOURCETEXT_FORBIDDEN, "This is not a regular file.");
    }
    if (!is_allowed(fileno(file), &stat, wish, is_mapped)) {
        return refuse_text(SOURCETEXT_FORBIDDEN,
                           wish->only_named
                               ? "Where others than this machine may ask, only files below the "
                                 "folders of --sources and --source-map are shown."
                               : "The file is outside of what belongs to the program. `memtrace "
                                 "serve --sources FOLDER` shows what lies below a folder.");
    }
    if (stat.st_size > SOURCETEXT_MOST) {
        return refuse_text(SOURCETEXT_FORBIDDEN, "The file has more than 8 MiB.");
    }
    text.text = job_alloc((size_t)stat.st_size + 1);
    text.size = fread(text.text, 1, (size_t)stat.st_size, file);
    if (memchr(text.text, '\0', text.size) != NULL) {
        return refuse_text(SOURCETEXT_FORBIDDEN, "This is not text.");
    }
    judge(wish, ns_of(stat.st_mtim), &text);
    return text;
}

static void close_text(void *file) {
    fclose(file);
}

struct sourcetext sourcetext_read(const struct sourcetext_wish *wish) {
    bool is_mapped = false;
    const char *path = place_of(wish, &is_mapped);
    FILE *file;
    int fd;
    if (path[0] != '/' || is_kernels(path)) {
        return refuse_text(path[0] == '/' ? SOURCETEXT_FORBIDDEN : SOURCETEXT_MISSING, NULL);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return refuse_text(SOURCETEXT_MISSING, errno == EACCES
                                                   ? "The file may not be read."
                                                   : "The file is not on this machine.");
    }
    file = fdopen(fd, "re");
    if (file == NULL) {
        close(fd);
        job_fail_memory();
    }
    job_undo(close_text, file);
    return read_open(file, wish, is_mapped);
}

/* ---- Its language ---- */

const char *sourcetext_language(const char *file) {
    static const struct ending {
        const char *ending;
        const char *language;
    } endings[] = {
        {".c", "c"},         {".h", "cpp"},       {".cc", "cpp"},        {".cpp", "cpp"},
        {".cxx", "cpp"},     {".C", "cpp"},       {".c++", "cpp"},       {".hh", "cpp"},
        {".hpp", "cpp"},     {".hxx", "cpp"},     {".h++", "cpp"},       {".inl", "cpp"},
        {".ipp", "cpp"},     {".tcc", "cpp"},     {".tpp", "cpp"},       {".rs", "rust"},
        {".go", "go"},       {".d", "d"},         {".zig", "zig"},       {".py", "python"},
        {".swift", "swift"}, {".f90", "fortran"}, {".f", "fortran"},     {".F90", "fortran"},
        {".java", "java"},   {".kt", "kotlin"},   {".js", "javascript"}, {".ts", "typescript"},
        {".s", "asm"},       {".S", "asm"},       {".m", "objectivec"},  {".mm", "objectivec"},
        {".adb", "ada"},     {".pas", "delphi"},  {".hs", "haskell"},    {".ml", "ocaml"},
        {".nim", "nim"},     {".cr", "crystal"},  {".cu", "cpp"},        {".lua", "lua"},
    };
    const char *slash = strrchr(file, '/');
    const char *dot = strrchr(slash != NULL ? slash : file, '.');
    for (size_t i = 0; dot != NULL && i < sizeof endings / sizeof endings[0]; i++) {
        if (strcmp(dot, endings[i].ending) == 0) {
            return endings[i].language;
        }
    }
    /* C++'s own headers have no ending */
    return dot == NULL && strstr(file, "/include/c++/") != NULL ? "cpp" : "text";
}
