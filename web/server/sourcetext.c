/* SPDX-License-Identifier: MIT */
/* sourcetext.c: see sourcetext.h. */
#include "web/server/sourcetext.h"

#include "analyze/base/job.h"
#include "analyze/symbol/sourceinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * ---- Which files may be shown ----
 *
 * Debug information is foreign text: it may name any file of this machine. Shown is what lies below
 * a folder that the user named (--sources, --source-map). Where only this machine can ask, also
 * what looks like source code by its name, may be read by everybody or is the user's own, and lies
 * below /usr, below a folder where the module was compiled, or in the same project as that, the
 * module or the file that is served.
 */

/* Whether the path leads below the folder, which has no slash at its end. */
static bool is_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static bool sourcetext_is_named(const struct sourcetext_wish *wish, const char *path,
                                bool is_mapped) {
    for (size_t i = 0; i < wish->folder_count; i++) {
        char folder[PATH_MAX];
        if (realpath(wish->folders[i], folder) != NULL &&
            (strcmp(folder, "/") == 0 || is_below(path, folder))) {
            return true;
        }
    }
    for (size_t i = 0; is_mapped && i < wish->map_count; i++) {
        const char *equals = strchr(wish->maps[i], '=');
        char place[PATH_MAX];
        if (equals != NULL && realpath(equals + 1, place) != NULL &&
            (is_below(path, place) || strcmp(path, place) == 0)) {
            return true;
        }
    }
    return false;
}

/* Where others than one project's files lie, too: nothing is shown because of one of these. */
static bool is_shared(const char *folder) {
    static const char *const shared[] = {
        "/",      "/bin", "/boot", "/dev",  "/etc",     "/home",    "/lib",      "/lib64",
        "/media", "/mnt", "/opt",  "/proc", "/root",    "/run",     "/sbin",     "/srv",
        "/sys",   "/tmp", "/usr",  "/var",  "/var/tmp", "/var/lib", "/usr/local"};
    const char *home = getenv("HOME");
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        if (strcmp(folder, shared[i]) == 0) {
            return true;
        }
    }
    return (home != NULL && strcmp(folder, home) == 0) ||
           (is_below(folder, "/home") && strchr(folder + sizeof "/home", '/') == NULL);
}

static bool begins_project(const char *folder) {
    static const char *const marks[] = {
        ".git",      ".hg",      ".svn",       "CMakeLists.txt", "meson.build", "configure.ac",
        "configure", "Makefile", "Cargo.toml", "build.zig",      "WORKSPACE",   "MODULE.bazel"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        char path[PATH_MAX];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, marks[i]) < sizeof path &&
            access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the path is in the folder's project: below the outermost folder around it that looks like
 * the beginning of one; of none, below the folder itself. */
static bool is_in_project(void *context, const char *name) {
    const char *asked = context;
    char project[PATH_MAX];
    char folder[PATH_MAX];
    if (name[0] != '/' || realpath(name, folder) == NULL || is_shared(folder)) {
        return false;
    }
    strcpy(project, folder);
    for (char *slash = folder + strlen(folder); slash != NULL; slash = strrchr(folder, '/')) {
        *slash = '\0';
        if (folder[0] == '\0' || is_shared(folder)) {
            break;
        }
        if (begins_project(folder)) {
            strcpy(project, folder);
        }
    }
    return is_below(asked, project);
}

static bool is_in_project_of(const char *asked, const char *file) {
    char path[PATH_MAX];
    char *slash;
    if (file == NULL || realpath(file, path) == NULL || (slash = strrchr(path, '/')) == path) {
        return false;
    }
    *slash = '\0';
    return is_in_project((void *)(uintptr_t)asked, path);
}

/* path: where the file is, without links. is_mapped: --source-map led there. */
static bool sourcetext_allow(const struct sourcetext_wish *wish, const char *path,
                             const struct stat *status, bool is_mapped) {
    const struct symbol_module module = {wish->module, wish->build_id, wish->build_id_size};
    if (sourcetext_is_named(wish, path, is_mapped)) {
        return true;
    }
    if (wish->only_named || strcmp(sourcetext_language(path), "text") == 0 ||
        ((status->st_mode & S_IROTH) == 0 && status->st_uid != geteuid())) {
        return false;
    }
    return is_below(path, "/usr") || is_in_project_of(path, wish->served) ||
           (wish->module[0] == '/' && is_in_project_of(path, wish->module)) ||
           sourceinfo_visit_folders(&module, wish->debug_folders, is_in_project,
                                    (void *)(uintptr_t)path);
}

/* ---- Where it is ---- */

static const char *sourcetext_place_of(const struct sourcetext_wish *wish, bool *is_mapped) {
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
static void sourcetext_judge(const struct sourcetext_wish *wish, uint64_t written_ns,
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
static bool sourcetext_is_allowed(int fd, const struct stat *status,
                                  const struct sourcetext_wish *wish, bool is_mapped) {
    char link[64];
    char path[PATH_MAX];
    ssize_t size;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, path, sizeof path - 1);
    if (size <= 0) {
        return false;
    }
    path[size] = '\0';
    return path[0] == '/' && !is_kernels(path) && sourcetext_allow(wish, path, status, is_mapped);
}

static struct sourcetext read_open(FILE *file, const struct sourcetext_wish *wish, bool is_mapped) {
    struct sourcetext text = {.state = SOURCETEXT_CURRENT};
    struct stat stat;
    if (fstat(fileno(file), &stat) != 0 || !S_ISREG(stat.st_mode)) {
        return refuse_text(SOURCETEXT_FORBIDDEN, "This is not a regular file.");
    }
    if (!sourcetext_is_allowed(fileno(file), &stat, wish, is_mapped)) {
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
    sourcetext_judge(wish, ns_of(stat.st_mtim), &text);
    return text;
}

static void close_text(void *file) {
    fclose(file);
}

struct sourcetext sourcetext_read(const struct sourcetext_wish *wish) {
    bool is_mapped = false;
    const char *path = sourcetext_place_of(wish, &is_mapped);
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
