/* SPDX-License-Identifier: MIT */
/*
 * control_fuzz.c: libFuzzer's target: what a receiver says that wants to control the program of a
 * recording, in any order with what the sender, the program and its collector do meanwhile. The
 * region is that of this process. Whatever comes: each control that is taken gets one answer; the
 * program is asked for nothing but what there is; marks are bounded and safe for a terminal; and
 * where control is not allowed not a byte of the region changes. tests/fuzz/run runs it.
 */
#include "stream/controlled.h"

#include "analyze/rows/safetext.h"
#include "collect/orphan.h"
#include "memtrace/sampled.h"
#include "tests/unit/region_build.h"

static struct region_build *build;
static int recording;

/* Nobody is to be started, and nothing asks for it. */
bool orphan_is(const char *region) {
    (void)region;
    abort();
}
void orphan_start(const char *region) {
    (void)region;
    abort();
}

static void require(bool is_so) {
    if (!is_so) {
        abort();
    }
}

static void require_safe(const char *text, size_t room) {
    char copy[PROGRAMASK_TEXT];
    require(room <= sizeof copy && strnlen(text, room) < room);
    strcpy(copy, text);
    require(strcmp(make_safe(copy), text) == 0);
}

static void remove_build(void) {
    region_build_free(build);
}

static void start(void) {
    struct memtrace_recording_header header = {.pid = (uint32_t)getpid()};
    char path[160];
    build = region_build_new(1, 0);
    atexit(remove_build);
    setenv("MEMTRACE_REGION_DIR", build->folder, 1);
    header.process_start_ticks = build->header->process_start_ticks;
    snprintf(path, sizeof path, "%s/sent.mtr", build->folder);
    recording = open(path, O_RDWR | O_CREAT, 0600);
    require(write(recording, &header, sizeof header) == sizeof header);
}

static void check_region(void) {
    const struct memtrace_asked_marks *marks = memtrace_asked_marks_in(build->segments[0]);
    uint64_t control = build->header->control;
    uint64_t mean = control & ((UINT64_C(1) << MEMTRACE_CONTROL_MEAN_BITS) - 1);
    uint64_t mode = control >> MEMTRACE_CONTROL_MODE_SHIFT & 15;
    require(mode <= MEMTRACE_MODE_ON && (mode == MEMTRACE_MODE_SAMPLED) == (mean != 0));
    require(marks->asked - marks->taken <= MEMTRACE_ASKED_MARKS);
    for (int i = 0; i < MEMTRACE_ASKED_MARKS; i++) {
        require_safe(marks->text[i], MEMTRACE_ASKED_MARK_BYTES);
    }
}

static void follow(uint8_t how) {
    struct memtrace_asked_marks *marks = memtrace_asked_marks_in(build->segments[0]);
    uint64_t control = build->header->control;
    uint32_t mode = control >> MEMTRACE_CONTROL_MODE_SHIFT & 15;
    if ((how & 1) != 0) {
        build->header->mode = mode == MEMTRACE_MODE_ON ? MEMTRACE_MODE_EXACT : mode;
        build->recording->sample_bytes =
            control & ((UINT64_C(1) << MEMTRACE_CONTROL_MEAN_BITS) - 1);
        build->header->control_done = control;
    }
    if ((how & 2) != 0) {
        marks->taken = marks->asked;
    }
    if ((how & 4) != 0) {
        build->recording->state = how >> 4 & 7;
    }
}

/* A control frame of these bytes, as they would come; its size. */
static size_t take(struct controlled *controlled, const uint8_t *data, size_t size,
                   uint64_t *number, bool *is_asked) {
    uint8_t bytes[WIRE_SMALL_MOST];
    struct wire_frame frame;
    size_t length = size < 300 ? size : 300;
    wire_put_control(bytes, ++*number, &(struct programask_wish){0});
    bytes[4] = (uint8_t)length;
    bytes[5] = (uint8_t)(length >> 8);
    memcpy(bytes + WIRE_HEADER, data, length);
    if (wire_parse(bytes, WIRE_HEADER + length, &frame) <= 0) {
        --*number;
    } else if (controlled_take(controlled, &frame) == 0) {
        require(!*is_asked);
        *is_asked = true;
    } else {
        --*number;
    }
    return length;
}

static void answer(struct controlled *controlled, uint64_t number, bool *is_asked, bool allowed) {
    uint8_t bytes[WIRE_SMALL_MOST];
    struct programask_answer said;
    struct wire_frame frame;
    size_t size = controlled_put(controlled, bytes);
    if (size != 0) {
        require(*is_asked && wire_parse(bytes, size, &frame) == (long)size);
        require(frame.type == WIRE_ANSWER && frame.offset == number);
        require(wire_read_answer(&frame, &said) == 0 && (allowed || !said.is_done));
        require_safe(said.text, sizeof said.text);
        *is_asked = false;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned char before[MEMTRACE_HEADER_SIZE];
    struct controlled controlled = {.is_allowed = size != 0 && data[0] % 4 != 0};
    uint64_t number = 0;
    uint64_t now_ns = 0;
    bool is_asked = false;
    if (build == NULL) {
        start();
    }
    controlled.fd = recording;
    memset(memtrace_asked_marks_in(build->segments[0]), 0, sizeof(struct memtrace_asked_marks));
    build->recording->state = MEMTRACE_RECORD_WANTED;
    memcpy(before, build->bytes, sizeof before);
    for (size_t at = 1; at + 1 < size; at += 2) {
        uint8_t how = data[at + 1];
        switch (data[at] % 5) {
        case 0:
            at += take(&controlled, data + at + 2, how < size - at - 2 ? how : size - at - 2,
                       &number, &is_asked);
            break;
        case 1:
            controlled_look(&controlled, now_ns += how * UINT64_C(1000000));
            break;
        case 2:
            if (controlled.is_allowed) {
                follow(how);
            }
            break;
        case 3:
            answer(&controlled, number, &is_asked, controlled.is_allowed);
            break;
        default:
            controlled_forget(&controlled);
            is_asked = false;
        }
        check_region();
    }
    controlled_forget(&controlled);
    require(controlled.is_allowed || memcmp(before, build->bytes, sizeof before) == 0);
    build->header->control = build->header->control_done = 0;
    return 0;
}
