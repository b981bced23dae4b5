/* SPDX-License-Identifier: MIT */
/* text.c: bounded text and lines to stderr. See text.h. */
#include "runtime/base/text.h"

#include "runtime/base/sys.h"

#include <errno.h>
#include <stdbool.h>

void text_init(struct text *text, char *buffer, size_t capacity) {
    *text = (struct text){.start = buffer, .capacity = capacity};
    buffer[0] = '\0';
}

void text_add_bytes(struct text *text, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (text->length + 1 >= text->capacity) {
            text->cut = 1;
            break;
        }
        text->start[text->length++] = bytes[i];
    }
    text->start[text->length] = '\0';
}

void text_add(struct text *text, const char *string) {
    text_add_bytes(text, string, text_length(string));
}

/* The bytes of the character at `at` that no terminal should get; 0: it may have it. The same as in
 * the tools (analyze/rows/safetext.c): C0, DEL, C1, separators of lines, marks and overrides of
 * the direction of writing. */
static size_t unsafe_length(const unsigned char *at) {
    if (at[0] < ' ' || at[0] == 0x7f) {
        return 1;
    }
    if ((at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f) || (at[0] == 0xd8 && at[1] == 0x9c)) {
        return 2;
    }
    if (at[0] == 0xe2 && at[1] == 0x80 &&
        (at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae))) {
        return 3;
    }
    return at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9 ? 3 : 0;
}

/* How many bytes follow the first one of a character; of what is none as well. */
static size_t following(unsigned char first) {
    return first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
}

/* Up to the end, or to that byte; returns where it ended. */
static const char *add_safe_until(struct text *text, const char *string, unsigned char stop) {
    const unsigned char *at = (const unsigned char *)string;
    while (*at != '\0' && *at != stop) {
        size_t unsafe = unsafe_length(at);
        size_t length = 1;
        size_t most = following(*at);
        while (unsafe == 0 && length <= most && (at[length] & 0xc0) == 0x80) {
            length++;
        }
        if (unsafe != 0 || (length == 1 && *at >= 0x80)) { /* alone it is C1, or nothing */
            text_add(text, "?");
        } else {
            text_add_bytes(text, (const char *)at, length);
        }
        at += unsafe != 0 ? unsafe : length;
    }
    return (const char *)at;
}

void text_add_safe(struct text *text, const char *string) {
    add_safe_until(text, string, '\0');
}

/* As the tools have it (analyze/rows/safetext.c): letters beyond ASCII mean nothing to a shell. */
static bool is_plain(unsigned char byte) {
    static const char plain[] = "_-+=./,:@%";
    if (byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
        (byte >= 'a' && byte <= 'z')) {
        return true;
    }
    for (size_t i = 0; i < sizeof plain - 1; i++) {
        if (byte == (unsigned char)plain[i]) {
            return true;
        }
    }
    return false;
}

void text_add_shell_word(struct text *text, const char *string) {
    const char *at = string;
    while (*at != '\0' && is_plain((unsigned char)*at)) {
        at++;
    }
    if (*at == '\0' && at != string) {
        text_add_safe(text, string);
        return;
    }
    text_add(text, "'");
    at = add_safe_until(text, string, '\'');
    while (*at != '\0') {
        text_add(text, "'\\''");
        at = add_safe_until(text, at + 1, '\'');
    }
    text_add(text, "'");
}

static void add_digits(struct text *text, uint64_t number, unsigned base, unsigned group) {
    char digits[32];
    size_t at = sizeof digits;
    unsigned count = 0;
    do {
        if (group != 0 && count != 0 && count % group == 0) {
            digits[--at] = ',';
        }
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
        count++;
    } while (number != 0);
    text_add_bytes(text, digits + at, sizeof digits - at);
}

void text_add_number(struct text *text, uint64_t number) {
    add_digits(text, number, 10, 0);
}

void text_add_grouped(struct text *text, uint64_t number) {
    add_digits(text, number, 10, 3);
}

void text_add_hex(struct text *text, uint64_t number) {
    text_add(text, "0x");
    add_digits(text, number, 16, 0);
}

void text_add_size(struct text *text, uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    unsigned unit = 0;
    uint64_t whole;
    uint64_t tenths;
    if (bytes < 1024) {
        text_add_number(text, bytes);
        text_add(text, " B");
        return;
    }
    while (unit < 5 && (bytes >> (10 * unit)) >= 1024) {
        unit++;
    }
    /* Rounded to the nearest tenth, without overflow up to the largest size there is. */
    whole = UINT64_C(1) << (10 * unit);
    tenths = bytes / whole * 10 + (bytes % whole * 10 + whole / 2) / whole;
    text_add_number(text, tenths / 10);
    text_add(text, ".");
    text_add_number(text, tenths % 10);
    text_add(text, " ");
    text_add(text, units[unit]);
}

size_t text_length(const char *string) {
    size_t length = 0;
    while (string[length] != '\0') {
        length++;
    }
    return length;
}

int text_equal(const char *a, const char *b) {
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

int text_starts(const char *string, const char *prefix) {
    while (*prefix != '\0' && *string == *prefix) {
        string++;
        prefix++;
    }
    return *prefix == '\0';
}

int text_holds(const char *string, const char *part) {
    while (*string != '\0' && !text_starts(string, part)) {
        string++;
    }
    return text_starts(string, part);
}

void text_copy(char *to, size_t capacity, const char *from) {
    struct text text;
    text_init(&text, to, capacity);
    text_add(&text, from);
}

const char *text_base_name(const char *path) {
    const char *base = path;
    for (; *path != '\0'; path++) {
        if (*path == '/') {
            base = path + 1;
        }
    }
    return base;
}

static enum log_level highest_level = LOG_LEVEL_WARNING;

void log_set_level(enum log_level level) {
    highest_level = level;
}

static struct {
    dev_t device;
    ino_t inode;
    uint8_t is_noted, is_open;
} first_stderr;

void log_note_stderr(void) {
    struct stat status;
    if (first_stderr.is_noted) {
        return;
    }
    first_stderr.is_open = sys_fstat(2, &status) == 0;
    if (first_stderr.is_open) {
        first_stderr.device = status.st_dev;
        first_stderr.inode = status.st_ino;
    }
    first_stderr.is_noted = 1;
}

/* Where a filter does not let us look it is taken to be what it was. */
int log_has_stderr(void) {
    struct stat status;
    long result = sys_fstat(2, &status);
    if (!first_stderr.is_noted || result == -EPERM) {
        return 1;
    }
    return result == 0 && first_stderr.is_open && status.st_dev == first_stderr.device &&
           status.st_ino == first_stderr.inode;
}

void log_write(const char *text, size_t size) {
    if (log_has_stderr()) {
        write_all(2, text, size);
    }
}

void log_at(enum log_level level, const char *a, const char *b, const char *c) {
    char buffer[1024];
    struct text line;
    if (level > highest_level) {
        return;
    }
    text_init(&line, buffer, sizeof buffer - 1); /* one place kept for the end of the line */
    text_add(&line, "memtrace: ");
    text_add_safe(&line, a);
    text_add_safe(&line, b != NULL ? b : "");
    text_add_safe(&line, c != NULL ? c : "");
    buffer[line.length++] = '\n';
    log_write(buffer, line.length);
}

void log_line(const char *a, const char *b, const char *c) {
    log_at(LOG_LEVEL_WARNING, a, b, c);
}

void log_error(const char *a, const char *b, const char *c) {
    log_at(LOG_LEVEL_ERROR, a, b, c);
}

static long write_loud(int fd, const char *at, size_t size) {
    while (size != 0) {
        long written = sys_write(fd, at, size);
        if (written == -EINTR) {
            continue;
        }
        if (written <= 0) {
            return written < 0 ? written : -EIO;
        }
        at += written;
        size -= (size_t)written;
    }
    return 0;
}

long write_all(int fd, const void *bytes, size_t size) {
    struct sys_quiet quiet;
    long result;
    sys_quiet_begin(&quiet);
    result = write_loud(fd, bytes, size);
    sys_quiet_end(&quiet);
    return result;
}
