/* SPDX-License-Identifier: MIT */
/*
 * reach.cpp: which functions of the unit may reach an allocator. See reach.h.
 *
 * A function may if it calls something unknown, or a function of the unit that may. We start with
 * those that do the former and go backwards along the calls until nothing changes, so recursion
 * needs no case of its own. A function of the unit counts only if the linker cannot take another in
 * its place: one that was optimised otherwise may still allocate.
 */
#include "instrument/gcc/reach.h"

#include "instrument/gcc/machine.h"
#include "instrument/gcc/settings.h"

namespace {

struct summary {
    std::string reason; /* empty: never allocates */
    std::vector<cgraph_node *> callers;
};

/* By DECL_UID: those of the unit, aliases included. Nodes come and go, declarations stay. */
std::unordered_map<unsigned, std::string> reasons;

/* A name of the table counts if the declaration is the library's: a program may have a `log`. */
bool is_librarys(tree function, const std::string &symbol) {
    return fndecl_built_in_p(function) || DECL_IN_SYSTEM_HEADER(function) || symbol[0] == '_';
}

/* GCC's own builtins that are no library function: their code is in line. */
bool is_inline_builtin(tree function, const std::string &symbol) {
    return fndecl_built_in_p(function) && symbol.compare(0, 10, "__builtin_") == 0 &&
           !fndecl_built_in_p(function, BUILT_IN_APPLY);
}

/* A function that is not of this unit. */
std::string reach_of_external(tree function) {
    const std::string symbol = settings_symbol(function);
    if (settings_no_alloc(function) || is_inline_builtin(function, symbol) ||
        (no_alloc_listed(symbol) && is_librarys(function, symbol))) {
        return "";
    }
    return "calls " + symbol;
}

/* Its statements can be read. (Copies that were inlined are read where they went.) */
bool has_code(cgraph_node *node) {
    return !node->inlined_to && (node->thunk || node->has_gimple_body_p());
}

/* The definition that a call of `node` runs for certain; NULL: not known here. */
cgraph_node *definition_of(cgraph_node *node) {
    enum availability availability;
    if (node->ifunc_resolver || node->dispatcher_function) {
        return NULL;
    }
    cgraph_node *target = node->ultimate_alias_target(&availability);
    bool certain = availability >= AVAIL_AVAILABLE && node->binds_to_current_def_p() &&
                   target->binds_to_current_def_p() && !target->ifunc_resolver;
    return certain && has_code(target) ? target : NULL;
}

/* Calls of a runtime that may allocate will be added after us, which the insertion will see: those
 * of sanitizers, transactions, checked virtual tables. */
bool is_checked(tree function) {
    return sanitize_flags_p(~0u, function) || flag_sanitize_coverage || flag_tm ||
           flag_vtable_verify;
}

/* Reads one unit's functions. */
class reader {
  public:
    void read(cgraph_node *node) {
        summaries[node];
        if (node->thunk) {
            call(node, node->callees->callee);
            return;
        }
        if (is_checked(node->decl)) {
            reach(node, "a call added later");
        }
        node->get_body();
        basic_block block;
        FOR_EACH_BB_FN(block, DECL_STRUCT_FUNCTION(node->decl)) {
            for (gimple_stmt_iterator i = gsi_start_bb(block); !gsi_end_p(i); gsi_next(&i)) {
                statement(node, gsi_stmt(i));
            }
        }
    }

    /* Hands reasons to the callers until nothing changes. */
    void propagate() {
        while (!reaching.empty()) {
            cgraph_node *node = reaching.back();
            reaching.pop_back();
            for (cgraph_node *caller : summaries[node].callers) {
                reach(caller, settings_symbol(node->decl));
            }
        }
    }

    const std::string &reason(cgraph_node *node) {
        return summaries[node].reason;
    }

  private:
    void reach(cgraph_node *node, const std::string &reason) {
        if (summaries[node].reason.empty() && !reason.empty()) {
            summaries[node].reason = reason;
            reaching.push_back(node);
        }
    }

    void call(cgraph_node *caller, cgraph_node *callee) {
        if (settings_no_alloc(callee->decl)) {
            return;
        }
        cgraph_node *definition = definition_of(callee);
        if (definition) {
            summaries[definition].callers.push_back(caller);
        } else if (callee->definition) {
            reach(caller, settings_symbol(callee->decl)); /* may be replaced */
        } else {
            reach(caller, reach_of_external(callee->decl));
        }
    }

    void statement(cgraph_node *node, gimple *stmt) {
        if (gasm *text = dyn_cast<gasm *>(stmt)) {
            reach(node, reach_of_asm(gimple_asm_string(text)));
        } else if (is_a<gresx *>(stmt)) {
            reach(node, "_Unwind_Resume");
        } else if (is_a<gcall *>(stmt) && !gimple_call_internal_p(stmt)) {
            tree function = gimple_call_fndecl(stmt);
            if (function) {
                call(node, cgraph_node::get_create(function));
            } else {
                reach(node, "indirect call");
            }
        }
    }

    std::unordered_map<cgraph_node *, summary> summaries;
    std::vector<cgraph_node *> reaching;
};

class reach_pass : public simple_ipa_opt_pass {
  public:
    reach_pass(gcc::context *context);

    unsigned int execute(function *) final override {
        reader unit;
        cgraph_node *node;
        FOR_EACH_DEFINED_FUNCTION(node) {
            if (!node->alias && has_code(node)) {
                unit.read(node);
            }
        }
        unit.propagate();
        FOR_EACH_DEFINED_FUNCTION(node) {
            cgraph_node *definition = definition_of(node);
            reasons[DECL_UID(node->decl)] =
                definition ? unit.reason(definition) : settings_symbol(node->decl);
        }
        return 0;
    }
};

const pass_data reach_pass_data = {
    SIMPLE_IPA_PASS, "memtrace-reach", OPTGROUP_NONE, TV_NONE, 0, 0, 0, 0, 0,
};

reach_pass::reach_pass(gcc::context *context) : simple_ipa_opt_pass(reach_pass_data, context) {
}

} // namespace

simple_ipa_opt_pass *reach_make_pass(gcc::context *context) {
    return new reach_pass(context);
}

std::string reach_of(tree function) {
    if (settings_no_alloc(function)) {
        return "";
    }
    auto found = reasons.find(DECL_UID(function));
    if (found == reasons.end()) {
        return reach_of_external(function);
    }
    return found->second.empty() ? "" : "calls " + settings_symbol(function);
}

std::string reach_of_symbol(const char *symbol) {
    const std::string name = targetm.strip_name_encoding(symbol);
    /* What the loader allocates there is the runtime's business (no_alloc.h). */
    return name == "__tls_get_addr" || no_alloc_listed(name) ? "" : "calls " + name;
}

std::string reach_of_asm(const char *text) {
    return machine_asm_leaves(text) ? "asm" : "";
}
