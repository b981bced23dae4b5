/* SPDX-License-Identifier: MIT */
/* text.c: bounded text and lines to stderr. See text.h. */
#include "runtime/base/text.h"

#include "runtime/base/sys.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
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
static size_t text_unsafe_length(const unsigned char *at) {
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

/* Up to the end, or to that byte; returns where it ended. */
static const char *text_add_until(struct text *text, const char *string, unsigned char stop) {
    const unsigned char *at = (const unsigned char *)string;
    while (*at != '\0' && *at != stop) {
        size_t unsafe = text_unsafe_length(at);
        size_t length = 1;
        /* How many bytes follow the first one of a character; of what is none as well. */
        size_t most = *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc0 ? 1 : 0;
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
    text_add_until(text, string, '\0');
}

/* As the tools have it (analyze/rows/safetext.c): letters beyond ASCII mean nothing to a shell. */
static bool text_is_plain(unsigned char byte) {
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
    while (*at != '\0' && text_is_plain((unsigned char)*at)) {
        at++;
    }
    if (*at == '\0' && at != string) {
        text_add_safe(text, string);
        return;
    }
    text_add(text, "'");
    at = text_add_until(text, string, '\'');
    while (*at != '\0') {
        text_add(text, "'\\''");
        at = text_add_until(text, at + 1, '\'');
    }
    text_add(text, "'");
}

static void text_add_digits(struct text *text, uint64_t number, unsigned base, unsigned group) {
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

struct text_size text_size(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    struct text_size size;
    unsigned unit = 0;
    uint64_t whole;
    uint64_t tenths;
    while (unit < 5 && (bytes >> (10 * unit)) >= 1024) {
        unit++;
    }
    /* Rounded to the nearest tenth, without overflow up to the largest size there is. */
    whole = UINT64_C(1) << (10 * unit);
    tenths = bytes / whole * 10 + (bytes % whole * 10 + whole / 2) / whole;
    if (unit == 0) {
        text_print(size.text, sizeof size.text, "%" PRIu64 " B", bytes);
    } else {
        text_print(size.text, sizeof size.text, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10,
                   tenths % 10, units[unit]);
    }
    return size;
}

/* What stands behind a % in a format; returns what is behind that. */
static const char *text_convert(struct text *text, const char *at, va_list *list) {
    unsigned group = *at == '\'' ? 3 : 0;
    int has_prefix = *at == '#';
    int most = INT_MAX;
    int longs = 0;
    at += group != 0 || has_prefix;
    if (*at == '.') {
        most = va_arg(*list, int);
        at += 2;
    }
    for (; *at == 'l'; at++) {
        longs++;
    }
    if (*at == 's') {
        const char *string = va_arg(*list, const char *);
        size_t length = 0;
        while (length < (size_t)most && string[length] != '\0') {
            length++;
        }
        if (text->is_safe) {
            text_add_safe(text, string);
        } else {
            text_add_bytes(text, string, length);
        }
    } else if (*at == 'd') {
        int64_t number = va_arg(*list, int);
        text_add(text, number < 0 ? "-" : "");
        text_add_digits(text, (uint64_t)(number < 0 ? -number : number), 10, 0);
    } else {
        uint64_t number = longs == 0   ? va_arg(*list, unsigned)
                          : longs == 1 ? va_arg(*list, unsigned long)
                                       : va_arg(*list, unsigned long long);
        text_add(text, has_prefix ? "0x" : "");
        text_add_digits(text, number, *at == 'x' ? 16 : 10, group);
    }
    return at + 1;
}

static void text_add_list(struct text *text, const char *format, va_list *list) {
    while (*format != '\0') {
        const char *at = format;
        while (*at != '\0' && *at != '%') {
            at++;
        }
        text_add_bytes(text, format, (size_t)(at - format));
        format = *at == '%' ? text_convert(text, at + 1, list) : at;
    }
}

void text_format(struct text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    text_add_list(text, format, &list);
    va_end(list);
}

int text_print(char *buffer, size_t capacity, const char *format, ...) {
    struct text text;
    va_list list;
    text_init(&text, buffer, capacity);
    va_start(list, format);
    text_add_list(&text, format, &list);
    va_end(list);
    return text.cut ? -1 : 0;
}

void text_add_suffix(struct text *text, unsigned number) {
    if (number > 1) {
        text_format(text, ".%u", number);
    }
}

size_t text_length(const char *string) {
    size_t length = 0;
    while (string[length] != '\0') {
        length++;
    }
    return length;
}

uint64_t text_read_number(const char **at) {
    uint64_t number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number)) {
            number = UINT64_MAX; /* and so at each further digit */
        }
    }
    return number;
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

void log_at(enum log_level level, const char *format, ...) {
    char buffer[1024];
    struct text line;
    va_list list;
    if (level > highest_level) {
        return;
    }
    text_init(&line, buffer, sizeof buffer - 1); /* one place kept for the end of the line */
    line.is_safe = 1;
    text_add(&line, "memtrace: ");
    va_start(list, format);
    text_add_list(&line, format, &list);
    va_end(list);
    buffer[line.length++] = '\n';
    log_write(buffer, line.length);
}

long write_all(int fd, const void *bytes, size_t size) {
    const char *at = bytes;
    struct sys_quiet quiet;
    long result = 0;
    sys_quiet_begin(&quiet);
    while (size != 0 && result == 0) {
        long written = sys_write(fd, at, size);
        if (written > 0) {
            at += written;
            size -= (size_t)written;
        } else if (written != -EINTR) {
            result = written < 0 ? written : -EIO;
        }
    }
    sys_quiet_end(&quiet);
    return result;
}
