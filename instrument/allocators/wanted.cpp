/* SPDX-License-Identifier: MIT */
/* wanted.cpp: see wanted.h. The parser and the names are those of --alloc. */
#include "instrument/allocators/wanted.h"

extern "C" {
#include "collect/allocators/allocmatch.h"
#include "collect/allocators/allocspec.h"
}
#include "memtrace/named.h"

#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <deque>

namespace {

struct list {
    allocspecs specs = {};
    std::deque<wanted> items; /* as many, in the same order */
    bool is_auto = false;
};

/* Never freed: the compiler ends with it. */
list &all() {
    static list *only = new list();
    return *only;
}

char *demangle(const char *symbol) {
    int status;
    return strncmp(symbol, "_Z", 2) == 0 ? abi::__cxa_demangle(symbol, nullptr, nullptr, &status)
                                         : nullptr;
}

/* As programmers write it, without its parameters. */
std::string plain_name(const std::string &symbol) {
    char *text = demangle(symbol.c_str());
    std::string name = text != nullptr ? std::string(text, allocmatch_length(text)) : symbol;
    free(text);
    return name;
}

/* What has a meaning only where a whole process is looked at. */
bool is_for_units(const allocspec &spec, std::string &why) {
    if (spec.set != nullptr) {
        why = '"' + std::string(spec.set) +
              "\": ready-made sets are for programs that are there already (memtrace run --alloc): "
              "name its functions";
        return false;
    }
    if (spec.object != nullptr) {
        why = '"' + std::string(spec.text) +
              "\": where a function is built, its object is the one that is being built: leave \"" +
              spec.object + "!\" out";
        return false;
    }
    if (strncmp(spec.symbol, "0x", 2) == 0) {
        why = '"' + std::string(spec.text) +
              "\": where a function is built, it has a name, and no address yet";
        return false;
    }
    return true;
}

/* Of a signature: what a number is said to be. */
struct claim {
    const char *what;
    unsigned number;
    int wanted_places::*place;
    bool is_pointer; /* else a number; what is a pointer may be declared as a number */
    bool is_written; /* the function writes there */
};

/* "its argument 1 (size)": compilers forget names. */
std::string describe(unsigned number, const function_shape::parameter &parameter) {
    const std::string name = parameter.name.empty() ? "" : " (" + parameter.name + ")";
    return "its argument " + std::to_string(number) + name;
}

/* The parameter with this number among those that count. False: there is none, see `why`. */
bool find(const claim &it, const function_shape &shape, int &place, std::string &why) {
    unsigned count = 0;
    for (size_t i = 0; i < shape.parameters.size(); ++i) {
        const auto &parameter = shape.parameters[i];
        if (parameter.type == value_class::OTHER) {
            why = describe(count + 1, parameter) +
                  " is neither a number nor a pointer, so those from there on have no numbers";
            return false;
        }
        count += parameter.type != value_class::FLOATING;
        if (count == it.number) {
            place = (int)i;
            return true;
        }
    }
    why = "it has " + std::to_string(count) + " argument" + (count == 1 ? "" : "s");
    return false;
}

bool fits(const claim &it, const function_shape &shape, int &place, std::string &why) {
    if (it.number == 0) {
        return true;
    }
    bool is_right = find(it, shape, place, why);
    if (is_right) {
        const auto &parameter = shape.parameters[(size_t)place];
        const std::string which = describe(it.number, parameter) + " is ";
        if (!it.is_pointer && parameter.type == value_class::POINTER) {
            why = which + "a pointer, not a number";
            is_right = false;
        } else if (it.is_written && parameter.type != value_class::POINTER) {
            why = which + "no pointer to where a block's address could be written";
            is_right = false;
        }
    }
    if (!is_right) {
        why = std::string(it.what) + '=' + std::to_string(it.number) + ": " + why;
    }
    return is_right;
}

bool result_fits(const wanted &it, value_class result, std::string &why) {
    if (!it.allocates()) {
        return true;
    }
    const bool is_number = result == value_class::NUMBER;
    if (it.signature.pointer != 0 ? is_number : is_number || result == value_class::POINTER) {
        return true;
    }
    why = result == value_class::NOTHING ? "it returns nothing"
          : it.signature.pointer != 0    ? "it returns no number that could tell whether it failed"
                                         : "it returns no pointer";
    return false;
}

} // namespace

bool wanted_add(const std::string &text, std::string &why) {
    list &list = all();
    error error;
    const size_t before = list.specs.count;
    if (text == "auto") {
        list.is_auto = true;
        return true;
    }
    if (allocspec_add(&list.specs, text.c_str(), &error) != 0) {
        why = error.message;
        return false;
    }
    for (size_t i = before; i < list.specs.count; ++i) {
        const allocspec &spec = list.specs.items[i];
        if (!is_for_units(spec, why)) {
            return false;
        }
        list.items.push_back({spec.text, spec.signature, spec.pool, !spec.is_pattern});
    }
    return true;
}

bool wanted_is_empty() {
    return all().items.empty() && !all().is_auto;
}

bool wanted_is_auto() {
    return all().is_auto;
}

wanted wanted_proposed(const std::string &symbol, unsigned size, unsigned times) {
    wanted it = {};
    if (size != 0 && size <= MEMTRACE_ALLOCATOR_NUMBERS && times <= MEMTRACE_ALLOCATOR_NUMBERS) {
        it.signature.size = (uint8_t)size;
        it.signature.times = (uint8_t)times;
        it.text = plain_name(symbol) + "(size=" + std::to_string(size) +
                  (times != 0 ? '*' + std::to_string(times) : "") + ")=alloc";
    }
    return it;
}

const wanted *wanted_find(const std::string &symbol) {
    const list &list = all();
    for (size_t i = 0; i < list.items.size(); ++i) {
        if (allocmatch_symbol(&list.specs.items[i], symbol.c_str(), demangle)) {
            return &list.items[i];
        }
    }
    return nullptr;
}

std::vector<std::string> wanted_texts() {
    std::vector<std::string> texts;
    for (const wanted &it : all().items) {
        texts.push_back(it.text);
    }
    return texts;
}

std::string wanted_pool(const wanted &it, const std::string &symbol) {
    if (it.signature.is_heap) {
        return "";
    }
    return (it.pool.empty() ? plain_name(symbol) : it.pool).substr(0, MEMTRACE_SITE_NAME - 1);
}

bool wanted_fits(const wanted &it, const function_shape &shape, wanted_places &places,
                 std::string &why) {
    const memtrace_allocator_signature &is = it.signature;
    const claim claims[] = {
        {"size", is.size, &wanted_places::size, false, false},
        {"size", is.times, &wanted_places::times, false, false},
        {"align", is.align, &wanted_places::align, false, false},
        {"old", is.old_block, &wanted_places::old_block, true, false},
        {"ptr", is.pointer, &wanted_places::pointer, true, it.allocates()},
    };
    for (const claim &claim : claims) {
        if (!fits(claim, shape, places.*claim.place, why)) {
            return false;
        }
    }
    return result_fits(it, shape.result, why);
}

std::string wanted_data(const wanted &it, const std::string &symbol) {
    memtrace_named named = {};
    named.signature = it.signature;
    wanted_pool(it, symbol).copy(named.pool, MEMTRACE_SITE_NAME - 1);
    const char *start = reinterpret_cast<const char *>(&named.signature);
    return std::string(start, reinterpret_cast<const char *>(&named + 1));
}
