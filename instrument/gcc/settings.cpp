/* SPDX-License-Identifier: MIT */
/* settings.cpp: the plugin's arguments and attributes. See settings.h. */
#include "instrument/gcc/settings.h"

#include "instrument/allocators/wanted.h"

namespace {

std::unordered_set<std::string> no_alloc_functions;
std::unordered_set<std::string> excluded_functions;
std::vector<std::string> excluded_files;

/* The parts of a list a,b,c. */
std::vector<std::string> split(const std::string &list) {
    std::vector<std::string> parts;
    for (size_t start = 0; start <= list.size();) {
        size_t end = std::min(list.find(',', start), list.size());
        if (end > start) {
            parts.push_back(list.substr(start, end - start));
        }
        start = end + 1;
    }
    return parts;
}

/* The name of a namespace or of a type; NULL: it has none. */
const char *scope_name(tree scope) {
    tree name = TYPE_P(scope) ? TYPE_IDENTIFIER(scope) : DECL_NAME(scope);
    return name ? IDENTIFIER_POINTER(name) : NULL;
}

std::string plain_name(tree function) {
    return DECL_NAME(function) ? IDENTIFIER_POINTER(DECL_NAME(function)) : "";
}

/* As in the source, with its scopes: ns::tree::walk. */
std::string scoped_name(tree function) {
    std::string name = plain_name(function);
    for (tree scope = DECL_CONTEXT(function);
         scope && (TYPE_P(scope) || TREE_CODE(scope) == NAMESPACE_DECL);
         scope = TYPE_P(scope) ? TYPE_CONTEXT(scope) : DECL_CONTEXT(scope)) {
        if (scope_name(scope)) {
            name = std::string(scope_name(scope)) + "::" + name;
        }
    }
    return name;
}

/* By the linker's name or by that of the source: `_ZN4tree4walkEv` or `tree::walk`. */
bool named(const std::unordered_set<std::string> &names, tree function) {
    return !names.empty() &&
           (names.count(settings_symbol(function)) != 0 || names.count(scoped_name(function)) != 0);
}

bool in_excluded_file(tree function) {
    const char *file = DECL_SOURCE_FILE(function);
    for (const std::string &part : excluded_files) {
        if (file && strstr(file, part.c_str())) {
            return true;
        }
    }
    return false;
}

bool has_attribute(tree function, const char *name) {
    return lookup_attribute(name, DECL_ATTRIBUTES(function)) != NULL_TREE;
}

tree only_on_functions(tree *node, tree name, tree, int, bool *add_no_attributes) {
    if (TREE_CODE(*node) != FUNCTION_DECL) {
        warning(OPT_Wattributes, "attribute %qE is for functions", name);
        *add_no_attributes = true;
    }
    return NULL_TREE;
}

/* One in each option, whose commas are its own. GCC cuts values that have an = in them, so they are
 * read where it has options as they were given. */
bool read_allocators(const plugin_name_args *info) {
    const std::string start = std::string(info->base_name) + "-allocators=";
    for (unsigned i = 0; i < save_decoded_options_count; ++i) {
        const cl_decoded_option &option = save_decoded_options[i];
        std::string why;
        if (option.opt_index == OPT_fplugin_arg_ &&
            strncmp(option.arg, start.c_str(), start.size()) == 0 &&
            !wanted_add(option.arg + start.size(), why)) {
            error("plugin %qs: allocators: %s", info->base_name, why.c_str());
            return false;
        }
    }
    return true;
}

attribute_spec no_alloc_attribute = {"memtrace_no_alloc", 0,   0, true, false, false, false,
                                     only_on_functions,   NULL};

} // namespace

bool settings_read(const plugin_name_args *info) {
    for (int i = 0; i < info->argc; ++i) {
        const std::string key = info->argv[i].key;
        const std::vector<std::string> names =
            split(info->argv[i].value ? info->argv[i].value : "");
        if (key == "allocators") {
            continue; /* read_allocators() */
        }
        if (key == "no-alloc") {
            no_alloc_functions.insert(names.begin(), names.end());
        } else if (key == "exclude-functions") {
            excluded_functions.insert(names.begin(), names.end());
        } else if (key == "exclude-files") {
            excluded_files.insert(excluded_files.end(), names.begin(), names.end());
        } else {
            error(
                "plugin %qs: no option %qs; there are no-alloc, exclude-functions, exclude-files, "
                "allocators",
                info->base_name, key.c_str());
            return false;
        }
    }
    return read_allocators(info);
}

void settings_register_attributes() {
    register_attribute(&no_alloc_attribute);
}

std::string settings_symbol(tree function) {
    return targetm.strip_name_encoding(IDENTIFIER_POINTER(DECL_ASSEMBLER_NAME(function)));
}

bool settings_no_alloc(tree function) {
    return has_attribute(function, no_alloc_attribute.name) || named(no_alloc_functions, function);
}

const char *settings_excluded(tree function) {
    for (const char *attribute : {"no_instrument_function", "naked", "interrupt"}) {
        if (has_attribute(function, attribute)) {
            return attribute;
        }
    }
    if (settings_no_alloc(function)) {
        return "memtrace_no_alloc";
    }
    return named(excluded_functions, function) || in_excluded_file(function) ? "excluded by option"
                                                                             : NULL;
}
