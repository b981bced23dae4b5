/* SPDX-License-Identifier: MIT */
/* options.cpp: the pass's options. */
#include "instrument/clang/options.h"

#include "instrument/allocators/wanted.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/CommandLine.h>

#include <cstdlib>

using namespace llvm;

namespace {

using name_list = cl::list<std::string>;

name_list *no_alloc;
name_list *exclude_functions;
name_list *exclude_files;
name_list *allocators;

name_list *register_list(StringRef name, StringRef description, StringRef values) {
    return new name_list(name, cl::desc(description), cl::value_desc(values), cl::CommaSeparated);
}

std::string take(char *text) {
    const std::string string = text == nullptr ? "" : text;
    free(text);
    return string;
}

bool names(const name_list &list, const Function &function) {
    if (list.empty()) {
        return false;
    }
    const std::string linker_name = function.getName().str();
    std::string base_name = linker_name;
    std::string scoped_name = linker_name;
    ItaniumPartialDemangler demangler;
    if (!demangler.partialDemangle(linker_name.c_str())) {
        base_name = take(demangler.getFunctionBaseName(nullptr, nullptr));
        scoped_name = take(demangler.getFunctionName(nullptr, nullptr));
    }
    return any_of(list, [&](const std::string &name) {
        return name == linker_name || name == base_name || name == scoped_name;
    });
}

} // namespace

void options_register() {
    /* Never freed: the compiler keeps pointers to them to its end. */
    no_alloc = register_list("memtrace-no-alloc", "Functions that never allocate", "f,g");
    exclude_functions =
        register_list("memtrace-exclude-functions", "Functions to leave out", "f,g");
    exclude_files = register_list("memtrace-exclude-files", "Parts of paths of files to leave out",
                                  "part,part");
    allocators = new name_list("memtrace-allocators", cl::desc("A function that allocates"),
                               cl::value_desc("specification")); /* its commas are its own */
}

bool options_no_alloc(const Function &function) {
    return names(*no_alloc, function);
}

bool options_excluded(const Function &function) {
    if (names(*exclude_functions, function)) {
        return true;
    }
    unsigned line;
    const std::string file = options_source(function, &line);
    return any_of(*exclude_files,
                  [&](const std::string &part) { return file.find(part) != std::string::npos; });
}

bool options_read_allocators(std::string &why) {
    static bool is_read = false;
    if (!is_read) {
        is_read = true;
        for (const std::string &one : *allocators) {
            if (!wanted_add(one, why)) {
                return false;
            }
        }
    }
    return true;
}

std::string options_source(const Function &function, unsigned *line) {
    const DISubprogram *subprogram = function.getSubprogram();
    if (subprogram == nullptr) {
        *line = 0;
        return function.getParent()->getSourceFileName();
    }
    *line = subprogram->getLine();
    return subprogram->getFilename().str();
}
