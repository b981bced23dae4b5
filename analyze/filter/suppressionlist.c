/* SPDX-License-Identifier: MIT */
/*
 * suppressionlist.c: what common libraries keep until the process ends, on purpose. Each entry
 * allocates a bounded amount, once or once for each thing the library manages, so that it can hide
 * no leak that grows.
 */
#include "analyze/filter/suppressionlist.h"

const struct suppressionlist_item suppressionlist[] = {
    /* glibc keeps stacks of ended threads, with the vectors of their thread-local storage. */
    {"^_dl_allocate_tls", NULL},
    {"^allocate_dtv$", NULL},
    /* Buffers of stdout, stderr and others that are open at the end. */
    {"^_IO_file_doallocate$", NULL},
    /* Loaded locales, time zones and converters stay, one for each that was ever used. */
    {"^setlocale$", NULL},
    {"^_nl_", NULL},
    {"^tzset", NULL},
    {"^localtime", NULL},
    {"^__gconv_", NULL},
    /* The loader's own description of each library it has loaded. */
    {"^_dl_new_object$", NULL},
    {"^_dl_check_map_versions$", NULL},
    /* libstdc++ reserves memory for exceptions that are thrown when memory is out. It does so when
     * the loader initializes it, in a function that has no name in stripped libraries. */
    {"/libstdc++.so", "/ld-linux"},
    {"/libstdc++.so", "/ld-musl"},
    {"^__gnu_cxx::__freeres", NULL},
    /* GLib registers types and interns strings for good. */
    {"^g_type_register_", NULL},
    {"^g_type_add_interface_", NULL},
    {"^g_intern_", NULL},
    {"^g_quark_from_", NULL},
    /* fontconfig's configuration and caches, freed only by FcFini(). */
    {"^FcInit", NULL},
    {"^FcConfigParseAndLoad", NULL},
    {NULL, NULL},
};
