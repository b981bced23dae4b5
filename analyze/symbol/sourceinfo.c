/* SPDX-License-Identifier: MIT */
/* sourceinfo.c: see sourceinfo.h. libdw reads over the hashes, so the heads of line tables are read
 * here. What is damaged ends the reading: what was found by then counts. */
#include "analyze/symbol/sourceinfo.h"

#include "analyze/base/scope.h"
#include "analyze/read/varint.h"
#include "analyze/symbol/debugfile.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MD5_BYTES = 16 };

struct text {
    const char *bytes;
    size_t size;
};

/* What is looked for, and where names lie. */
struct search {
    const char *file;
    uint8_t md5[MD5_BYTES];
    struct text lines;     /* .debug_line */
    struct text line_text; /* .debug_line_str */
    struct text text;      /* .debug_str */
    enum sourceinfo_hash found;
};

/* One table's head. */
struct head {
    const struct search *search;
    struct varint_reader bytes;
    bool is_wide; /* offsets have 8 bytes */
    const char **folders;
    size_t folder_count;
};

/* The file with the module's debug information; false: there is none. */
static bool open_debug(const struct symbol_module *module, const char *folders,
                       struct debugfile_elf *file) {
    SCOPE(debugfile_free) struct debugfile_paths paths = {0};
    return debugfile_find(module, folders, &paths) == 0 && paths.debug != NULL &&
           debugfile_open(paths.debug, file, NULL) == 0;
}

/* ---- Values ---- */

static uint64_t table_number(struct varint_reader *bytes, size_t size) {
    uint64_t number = 0;
    const void *at = varint_get_bytes(bytes, size);
    if (at != NULL) {
        memcpy(&number, at, size);
    }
    return number;
}

static uint64_t get_offset(struct head *head) {
    return table_number(&head->bytes, head->is_wide ? 8 : 4);
}

/* A text that ends in the section; NULL: none. */
static const char *section_text(struct text section, uint64_t offset) {
    return offset < section.size &&
                   memchr(section.bytes + offset, '\0', section.size - offset) != NULL
               ? section.bytes + offset
               : NULL;
}

static const char *get_inline_text(struct varint_reader *bytes) {
    const unsigned char *text = bytes->next;
    const unsigned char *end = memchr(text, '\0', (size_t)(bytes->end - text));
    if (end == NULL) {
        *bytes->failed = true;
        return NULL;
    }
    bytes->next = end + 1;
    return (const char *)text;
}

/* One field of an entry. */
struct value {
    const char *text;
    uint64_t number;
    const uint8_t *md5;
};

static struct value get_value(struct head *head, uint64_t form) {
    struct varint_reader *bytes = &head->bytes;
    struct value value = {0};
    switch (form) {
    case DW_FORM_string:
        value.text = get_inline_text(bytes);
        break;
    case DW_FORM_line_strp:
        value.text = section_text(head->search->line_text, get_offset(head));
        break;
    case DW_FORM_strp:
        value.text = section_text(head->search->text, get_offset(head));
        break;
    case DW_FORM_udata:
        value.number = varint_get(bytes);
        break;
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
        value.number = table_number(bytes, form == DW_FORM_data1   ? 1
                                           : form == DW_FORM_data2 ? 2
                                           : form == DW_FORM_data4 ? 4
                                                                   : 8);
        break;
    case DW_FORM_data16:
        value.md5 = varint_get_bytes(bytes, MD5_BYTES);
        break;
    case DW_FORM_block:
        varint_get_bytes(bytes, varint_get(bytes));
        break;
    default: /* nobody knows how long it is */
        *bytes->failed = true;
    }
    return value;
}

/* ---- Entries: folders and files are told alike ---- */

struct entry {
    const char *name;
    uint64_t folder;
    const uint8_t *md5;
};

enum { FIELDS = 16 };
struct format {
    uint64_t what[FIELDS];
    uint64_t form[FIELDS];
    size_t count;
};

static struct format get_format(struct head *head) {
    struct format format = {.count = varint_get_byte(&head->bytes)};
    if (format.count > FIELDS) {
        *head->bytes.failed = true;
        format.count = 0;
    }
    for (size_t i = 0; i < format.count; i++) {
        format.what[i] = varint_get(&head->bytes);
        format.form[i] = varint_get(&head->bytes);
    }
    return format;
}

static struct entry get_entry(struct head *head, const struct format *format) {
    struct entry entry = {0};
    for (size_t i = 0; i < format->count; i++) {
        struct value value = get_value(head, format->form[i]);
        entry.name = format->what[i] == DW_LNCT_path ? value.text : entry.name;
        entry.folder = format->what[i] == DW_LNCT_directory_index ? value.number : entry.folder;
        entry.md5 = format->what[i] == DW_LNCT_MD5 ? value.md5 : entry.md5;
    }
    return entry;
}

/* 0, or -1: damaged, or no memory. */
static int get_folders(struct head *head) {
    struct format format = get_format(head);
    uint64_t count = varint_get(&head->bytes);
    if (*head->bytes.failed || count > (uint64_t)(head->bytes.end - head->bytes.next)) {
        return -1; /* each takes a byte at least */
    }
    head->folders = calloc(count + 1, sizeof *head->folders);
    for (uint64_t i = 0; head->folders != NULL && i < count && !*head->bytes.failed; i++) {
        head->folders[head->folder_count++] = get_entry(head, &format).name;
    }
    return head->folders != NULL && !*head->bytes.failed ? 0 : -1;
}

/* As frames name it: the first folder is where the unit was compiled. */
static bool sourceinfo_is_file(const struct head *head, const struct entry *entry) {
    const char *folder = entry->folder < head->folder_count ? head->folders[entry->folder] : NULL;
    const char *first = head->folder_count != 0 ? head->folders[0] : NULL;
    char *path = NULL;
    bool is_same;
    if (entry->name == NULL) {
        return false;
    }
    if (entry->name[0] == '/' || folder == NULL) {
        path = strdup(entry->name);
    } else if (asprintf(&path, "%s%s%s/%s", folder[0] != '/' && first != NULL ? first : "",
                        folder[0] != '/' && first != NULL ? "/" : "", folder, entry->name) < 0) {
        path = NULL;
    }
    if (path == NULL) {
        return false;
    }
    symbol_shorten_path(path);
    is_same = strcmp(path, head->search->file) == 0;
    free(path);
    return is_same;
}

static void look_at_files(struct head *head, struct search *search) {
    struct format format = get_format(head);
    uint64_t count = varint_get(&head->bytes);
    for (uint64_t i = 0; i < count && !*head->bytes.failed && search->found != SOURCEINFO_SAME;
         i++) {
        struct entry entry = get_entry(head, &format);
        if (entry.md5 != NULL && sourceinfo_is_file(head, &entry)) {
            search->found = memcmp(entry.md5, search->md5, sizeof search->md5) == 0
                                ? SOURCEINFO_SAME
                                : SOURCEINFO_OTHER;
        }
    }
}

/* ---- Tables ---- */

/* `bytes`: of one table, behind its length. */
static void look_at_table(struct search *search, struct varint_reader bytes, bool is_wide) {
    struct head head = {.search = search, .bytes = bytes, .is_wide = is_wide};
    uint64_t lengths;
    if (table_number(&head.bytes, 2) != 5) {
        return; /* earlier versions have no hashes */
    }
    table_number(&head.bytes, 2); /* sizes of addresses and of segments */
    get_offset(&head);            /* how long the head is */
    table_number(&head.bytes, 5); /* how its program counts */
    lengths = varint_get_byte(&head.bytes);
    varint_get_bytes(&head.bytes, lengths != 0 ? lengths - 1 : 0);
    if (!*head.bytes.failed && get_folders(&head) == 0) {
        look_at_files(&head, search);
    }
    free(head.folders);
}

static void look_at_tables(struct search *search) {
    bool failed = false;
    struct varint_reader all = {.next = (const unsigned char *)search->lines.bytes,
                                .end =
                                    (const unsigned char *)search->lines.bytes + search->lines.size,
                                .failed = &failed};
    while (all.next != all.end && !failed && search->found != SOURCEINFO_SAME) {
        uint64_t length = table_number(&all, 4);
        bool is_wide = length == UINT32_MAX;
        bool is_damaged = false;
        struct varint_reader table = {.failed = &is_damaged};
        length = is_wide ? table_number(&all, 8) : length;
        table.next = varint_get_bytes(&all, length);
        if (table.next != NULL) {
            table.end = table.next + length;
            look_at_table(search, table, is_wide);
        }
    }
}

static void find_sections(struct search *search, Elf *elf) {
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    const char *name;
    while ((section = debugfile_next_section(elf, section, &header, &name)) != NULL) {
        struct text *to = strcmp(name, ".debug_line") == 0       ? &search->lines
                          : strcmp(name, ".debug_line_str") == 0 ? &search->line_text
                          : strcmp(name, ".debug_str") == 0      ? &search->text
                                                                 : NULL;
        const Elf_Data *data;
        if (to == NULL || header.sh_type == SHT_NOBITS ||
            ((header.sh_flags & SHF_COMPRESSED) != 0 && elf_compress(section, 0, 0) < 0)) {
            continue;
        }
        data = elf_rawdata(section, NULL);
        if (data != NULL && data->d_buf != NULL) {
            *to = (struct text){data->d_buf, data->d_size};
        }
    }
}

enum sourceinfo_hash sourceinfo_compare(const struct symbol_module *module, const char *folders,
                                        const char *file, const void *text, size_t size) {
    struct search search = {.file = file};
    struct debugfile_elf debug;
    if (EVP_Digest(text, size, search.md5, NULL, EVP_md5(), NULL) ==
            1 && /* some machines forbid it */
        open_debug(module, folders, &debug)) {
        find_sections(&search, debug.elf);
        look_at_tables(&search);
        debugfile_close(&debug);
    }
    return search.found;
}

/* ---- Folders ---- */

bool sourceinfo_visit_folders(const struct symbol_module *module, const char *folders,
                              bool (*take)(void *context, const char *folder), void *context) {
    const char *before = "";
    bool is_taken = false;
    struct debugfile_elf debug;
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    Dwarf *dwarf;
    if (!open_debug(module, folders, &debug)) {
        return false;
    }
    dwarf = dwarf_begin_elf(debug.elf, DWARF_C_READ, NULL);
    while (dwarf != NULL && !is_taken &&
           dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
        Dwarf_Attribute attribute;
        const char *folder = dwarf_formstring(dwarf_attr(&die, DW_AT_comp_dir, &attribute));
        if (folder != NULL && strcmp(folder, before) != 0) {
            is_taken = take(context, folder);
            before = folder;
        }
    }
    dwarf_end(dwarf);
    debugfile_close(&debug);
    return is_taken;
}
