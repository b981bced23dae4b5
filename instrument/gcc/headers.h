/* SPDX-License-Identifier: MIT */
/*
 * headers.h: GCC's headers in the one order that works. GCC poisons names that the standard library
 * uses, so the library comes first.
 */
#ifndef INSTRUMENT_GCC_HEADERS_H
#define INSTRUMENT_GCC_HEADERS_H

#include <cinttypes>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "instrument/no_alloc.h"
#include "instrument/pass_report.h"
#include "runtime/stack/frame_word.h"

// clang-format off
#include <gcc-plugin.h>
#include <plugin-version.h>
#include <backend.h>
#include <rtl.h>
#include <tree.h>
#include <gimple.h>
#include <gimple-iterator.h>
#include <gimple-walk.h>
#include <gimple-expr.h>
#include <gimplify.h>
#include <fold-const.h>
#include <stor-layout.h>
#include <varasm.h>
#include <cgraph.h>
#include <stringpool.h>
#include <attribs.h>
#include <tree-pass.h>
#include <context.h>
#include <memmodel.h>
#include <emit-rtl.h>
#include <cfgrtl.h>
#include <predict.h>
#include <target.h>
#include <diagnostic-core.h>
#include <opts.h>
#include <options.h>
#include <toplev.h>
#include <asan.h>
#include <sreal.h>
// clang-format on

#endif
