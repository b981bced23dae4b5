/* SPDX-License-Identifier: MIT */
/* sent.c: the pages behind a recording's first block. See sent.h. */
#include "analyze/read/sent.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RAW_MOST = 1 << 18 }; /* of a page; no writer comes near */

uint64_t sent_first_page(int fd) {
    const uint64_t first = sizeof(struct memtrace_recording_header);
    struct memtrace_block_header block;
    if (block_read_at(fd, &block, sizeof block, first) != (ssize_t)sizeof block ||
        !block_plausible(&block)) {
        return 0;
    }
    return (first + block_size(&block) + MEMTRACE_SENT_PAGE - 1) / MEMTRACE_SENT_PAGE *
           MEMTRACE_SENT_PAGE;
}

/* Whether the entries go on where those before them end, and end where the page says. */
static bool sent_joins(const struct sent *sent, const struct memtrace_sent *page,
                       const struct memtrace_index_entry *entries, size_t count) {
    uint64_t at = sent->count != 0 ? sent->last.end : sizeof(struct memtrace_recording_header);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].offset != at || !block_plausible(&entries[i].block)) {
            return false;
        }
        at += block_size(&entries[i].block);
    }
    return count != 0 && at == page->end;
}

/* The page that comes next. 1; 0: there is none; -1: errno. */
static int take_page(struct sent *sent, int fd, uint64_t page, struct recording_buffer *buffer) {
    struct memtrace_block_header block;
    struct memtrace_sent head;
    const struct memtrace_index_entry *entries;
    size_t count;
    uint64_t offset = sent->first_page + page * MEMTRACE_SENT_PAGE;
    enum block_status status = block_load(fd, offset + MEMTRACE_SENT_PAGE, offset, &block, buffer);
    if (status == BLOCK_ERROR) {
        return -1;
    }
    if (status == BLOCK_NONE || block.kind != MEMTRACE_BLOCK_SENT || block.raw_size > RAW_MOST ||
        block_unpack(&block, buffer) != 0 || buffer->size < sizeof head) {
        return 0;
    }
    memcpy(&head, buffer->bytes, sizeof head);
    head.to[sizeof head.to - 1] = '\0';
    entries = (const void *)(buffer->bytes + sizeof head);
    count = (buffer->size - sizeof head) / sizeof *entries;
    if (head.page != page || !sent_joins(sent, &head, entries, count)) {
        return 0;
    }
    if (array_reserve(&sent->entries, &sent->room, sent->count + count, sizeof *entries) != 0) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(sent->entries + sent->count, entries, count * sizeof *entries);
    sent->count += count;
    sent->last = head;
    sent->last_count = count;
    return 1;
}

int sent_read(struct sent *sent, int fd) {
    SCOPE(recording_buffer_free) struct recording_buffer buffer = {0};
    int result = 1;
    sent->first_page = sent_first_page(fd);
    for (uint64_t page = 0; sent->first_page != 0 && result > 0; page++) {
        result = take_page(sent, fd, page, &buffer);
    }
    return result < 0 ? -1 : 0;
}

void sent_free(struct sent *sent) {
    free(sent->entries);
    *sent = (struct sent){0};
}
