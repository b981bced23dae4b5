/* SPDX-License-Identifier: MIT */
/*
 * named.cpp: the reports of functions that allocate. See named.h.
 *
 * The pass sees the function as the front end left it, in statements with scopes. There a return is
 * one statement wherever it stands, and who leaves by an exception passes a region around the whole
 * body. After this the reports are statements like others: nothing of them depends on the machine.
 */
#include "instrument/gcc/named.h"

#include "instrument/allocators/recorded.h"
#include "instrument/allocators/wanted.h"
#include "instrument/gcc/declared.h"
#include "instrument/gcc/reach.h"
#include "instrument/gcc/settings.h"
#include "memtrace/named.h"

namespace {

/* What the reports refer to, made when the first is: kept in roots. */
enum known { RETURNS, RESIZES, LEAVES, RECORD, KNOWN };
tree known[KNOWN];

tree declare(const char *name, tree type) {
    tree function = build_fn_decl(name, type);
    declare_weak(function);
    return function;
}

/* No argument is a pointer to const: GCC warns where memory behind such a one has nothing in it. */
void make_known() {
    if (known[RETURNS]) {
        return;
    }
    known[RETURNS] = declare("memtrace_named_returns",
                             build_function_type_list(void_type_node, ptr_type_node, ptr_type_node,
                                                      size_type_node, size_type_node,
                                                      size_type_node, ptr_type_node, NULL_TREE));
    known[RESIZES] = declare("memtrace_named_resizes",
                             build_function_type_list(void_type_node, ptr_type_node, ptr_type_node,
                                                      ptr_type_node, NULL_TREE));
    known[LEAVES] =
        declare("memtrace_named_leaves",
                build_function_type_list(void_type_node, ptr_type_node, ptr_type_node, NULL_TREE));
}

/* ---- The function's struct memtrace_named ---- */

tree bytes_type(size_t size) {
    return build_array_type_nelts(char_type_node, size);
}

tree record_type() {
    if (!known[RECORD]) {
        const struct {
            const char *name;
            tree type;
        } members[] = {
            {"function", const_ptr_type_node},
            {"runtime", build_nonstandard_integer_type(64, 1)},
            {"data", bytes_type(sizeof(memtrace_named) - offsetof(memtrace_named, signature))},
        };
        tree fields = NULL_TREE;
        for (const auto &member : members) {
            tree field =
                build_decl(BUILTINS_LOCATION, FIELD_DECL, get_identifier(member.name), member.type);
            DECL_CHAIN(field) = fields; /* the last first */
            fields = field;
        }
        known[RECORD] = make_node(RECORD_TYPE);
        finish_builtin_struct(known[RECORD], "memtrace_named", fields, NULL_TREE);
    }
    return known[RECORD];
}

/* An inline function may have no body of its own to refer to. */
tree address_of(tree function) {
    const bool is_somewhere =
        !DECL_EXTERNAL(function) && !lookup_attribute("always_inline", DECL_ATTRIBUTES(function));
    return is_somewhere ? fold_convert(const_ptr_type_node, build_fold_addr_expr(function))
                        : null_pointer_node;
}

/* Its address. */
tree make_record(tree function, const wanted &it) {
    static unsigned count;
    const std::string data = wanted_data(it, settings_symbol(function));
    const std::string name = "memtrace_named." + std::to_string(count++);
    tree text = build_string(data.size(), data.data());
    TREE_TYPE(text) = bytes_type(data.size());
    const tree values[] = {address_of(function), NULL_TREE, text};
    vec<constructor_elt, va_gc> *elements = NULL;
    tree field = TYPE_FIELDS(record_type());
    for (tree value : values) {
        CONSTRUCTOR_APPEND_ELT(elements, field, value ? value : build_zero_cst(TREE_TYPE(field)));
        field = DECL_CHAIN(field);
    }
    tree record =
        build_decl(BUILTINS_LOCATION, VAR_DECL, get_identifier(name.c_str()), record_type());
    TREE_STATIC(record) = 1;
    TREE_ADDRESSABLE(record) = 1;
    TREE_USED(record) = 1;
    DECL_ARTIFICIAL(record) = 1;
    DECL_IGNORED_P(record) = 1;
    DECL_INITIAL(record) = build_constructor(record_type(), elements);
    TREE_STATIC(DECL_INITIAL(record)) = 1;
    varpool_node::finalize_decl(record);
    return build_fold_addr_expr(record);
}

/* ---- The reports ---- */

tree parameter(tree function, int place) {
    tree it = DECL_ARGUMENTS(function);
    for (int i = 0; i < place; ++i) {
        it = DECL_CHAIN(it);
    }
    return it;
}

/* Puts the reports into one function. */
class reporter {
  public:
    reporter(tree its_function, const wanted &what, const wanted_places &where)
        : function(its_function), it(what), places(where) {
    }

    /* Its struct memtrace_named. */
    tree report() {
        gbind *bind = as_a<gbind *>(gimple_seq_first_stmt(gimple_body(function)));
        gimple_seq body = gimple_bind_body(bind);
        gimple_seq start = NULL;
        record = make_record(function, it);
        push_gimplify_context();
        if (it.allocates()) {
            keep_arguments(&start);
            report_returns(&body);
        } else {
            report_start(&start);
        }
        if (it.signature.kind == MEMTRACE_ALLOCATOR_REALLOC && flag_exceptions) {
            report_exceptions(&body);
        }
        pop_gimplify_context(NULL);
        gimple_seq_add_seq(&start, body);
        gimple_bind_set_body(bind, start);
        return TREE_OPERAND(record, 0);
    }

  private:
    /* An argument as it is now; `otherwise`, if there is none. */
    tree argument(int place, tree type, tree otherwise) {
        return place < 0 ? otherwise : fold_convert(type, parameter(function, place));
    }

    tree keep(tree value, gimple_seq *seq) {
        tree variable = create_tmp_var(TREE_TYPE(value), "memtrace");
        gimplify_and_add(build2(MODIFY_EXPR, void_type_node, variable, value), seq);
        return variable;
    }

    /* Not for who has no runtime. */
    void call(tree callee, std::initializer_list<tree> arguments, gimple_seq *seq) {
        std::vector<tree> list(arguments);
        tree is_there = build2(NE_EXPR, boolean_type_node, build_fold_addr_expr(callee),
                               build_zero_cst(build_pointer_type(TREE_TYPE(callee))));
        tree report = build_call_expr_loc_array(DECL_SOURCE_LOCATION(function), callee,
                                                (int)list.size(), list.data());
        gimplify_and_add(build3(COND_EXPR, void_type_node, is_there, report, NULL_TREE), seq);
    }

    void keep_arguments(gimple_seq *start) {
        size = keep(argument(places.size, size_type_node, size_zero_node), start);
        times = keep(argument(places.times, size_type_node, size_one_node), start);
        align = keep(argument(places.align, size_type_node, size_zero_node), start);
        if (places.pointer >= 0) {
            pointer = keep(argument(places.pointer, ptr_type_node, NULL_TREE), start);
        }
        if (it.signature.kind == MEMTRACE_ALLOCATOR_REALLOC) {
            tree room = create_tmp_var_raw(
                build_array_type_nelts(size_type_node, MEMTRACE_NAMED_KEPT), "memtrace");
            TREE_ADDRESSABLE(room) = 1;
            gimple_add_tmp_var(room);
            kept = build_fold_addr_expr(room);
            call(known[RESIZES],
                 {record, argument(places.old_block, ptr_type_node, NULL_TREE), kept}, start);
        }
    }

    void report_start(gimple_seq *start) {
        call(known[LEAVES], {record, argument(places.pointer, ptr_type_node, null_pointer_node)},
             start);
    }

    /* Where the function writes the block's address there is one if it returns 0. */
    tree block_of(tree result) {
        if (!pointer) {
            return fold_convert(ptr_type_node, result);
        }
        tree any = build_pointer_type_for_mode(ptr_type_node, VOIDmode, true);
        tree is_there =
            build2(EQ_EXPR, boolean_type_node, result, build_zero_cst(TREE_TYPE(result)));
        tree block = build2(MEM_REF, ptr_type_node, pointer, build_zero_cst(any));
        return build3(COND_EXPR, ptr_type_node, is_there, block, null_pointer_node);
    }

    void report_block(tree block, tree block_size, gimple_seq *seq) {
        call(known[RETURNS], {record, block, block_size, times, align, kept}, seq);
    }

    static tree at_statement(gimple_stmt_iterator *at, bool *is_done, walk_stmt_info *info) {
        greturn *leave = dyn_cast<greturn *>(gsi_stmt(*at));
        *is_done = false;
        if (leave && gimple_return_retval(leave)) {
            reporter *self = static_cast<reporter *>(info->info);
            gimple_seq seq = NULL;
            self->report_block(self->block_of(gimple_return_retval(leave)), self->size, &seq);
            for (gimple_stmt_iterator i = gsi_start(seq); !gsi_end_p(i); gsi_next(&i)) {
                gimple_set_location(gsi_stmt(i), gimple_location(leave));
            }
            gsi_insert_seq_before(at, seq, GSI_SAME_STMT);
        }
        return NULL_TREE;
    }

    void report_returns(gimple_seq *body) {
        walk_stmt_info info = {};
        info.info = this;
        walk_gimple_seq_mod(body, at_statement, NULL, &info);
    }

    /* It has not got what it wanted: no block. */
    void report_exceptions(gimple_seq *body) {
        gimple_seq failed = NULL;
        report_block(null_pointer_node, size_one_node, &failed);
        gimple *region = gimple_build_try(*body, failed, GIMPLE_TRY_CATCH);
        *body = NULL;
        gimple_seq_add_stmt(body, region);
    }

    tree function;
    const wanted &it;
    const wanted_places &places;
    tree record = NULL_TREE;
    tree size = NULL_TREE, times = NULL_TREE, align = NULL_TREE, pointer = NULL_TREE;
    tree kept = null_pointer_node;
};

/* ---- What attributes propose ---- */

/* By DECL_UID of the function. */
struct proposal {
    wanted what;
    unsigned record; /* DECL_UID of its struct memtrace_named; 0: it has none */
};
std::unordered_map<unsigned, proposal> proposals;

/* ---- The pass over functions ---- */

/* With the function's place. What a pattern fits by chance is left alone, too. */
void complain(tree function, const wanted &it, const std::string &why) {
    const char *text = "MemTrace: %qs does not fit %qD: %s";
    if (it.is_certain) {
        error_at(DECL_SOURCE_LOCATION(function), text, it.text.c_str(), function, why.c_str());
    } else {
        warning_at(DECL_SOURCE_LOCATION(function), 0, text, it.text.c_str(), function, why.c_str());
    }
}

const pass_data named_pass_data = {
    GIMPLE_PASS, "memtrace-named", OPTGROUP_NONE, TV_NONE, PROP_gimple_any, 0, 0, 0, 0,
};

class named_pass : public gimple_opt_pass {
  public:
    named_pass(gcc::context *context) : gimple_opt_pass(named_pass_data, context) {
    }

    unsigned int execute(function *fun) final override {
        const wanted *it = wanted_find(settings_symbol(fun->decl));
        if (it) {
            handle(fun->decl, *it);
        } else if (declared_proposes(fun->decl)) {
            propose(fun->decl);
        }
        return 0;
    }

  private:
    static void handle(tree function, const wanted &it) {
        wanted_places places;
        std::string why;
        if (!wanted_fits(it, declared_shape(function), places, why)) {
            complain(function, it, why);
        } else if (lookup_attribute("naked", DECL_ATTRIBUTES(function))) {
            complain(function, it, "it is naked");
        } else {
            make_known();
            reporter(function, it, places).report();
            recorded_found(it.text, settings_symbol(function), declared_place(function));
        }
    }

    /* Whether it is to report is seen when all of the unit is: until then it does. */
    static void propose(tree function) {
        proposal it = {declared_proposal(function), 0};
        wanted_places places;
        std::string why;
        if (wanted_is_auto() && !it.what.text.empty() &&
            wanted_fits(it.what, declared_shape(function), places, why)) {
            make_known();
            it.record = DECL_UID(reporter(function, it.what, places).report());
        }
        proposals[DECL_UID(function)] = it;
    }
};

/* ---- The record of the unit ---- */

void look_into(cgraph_node *node, std::unordered_set<cgraph_node *> &seen, memory_origin &found) {
    if (!seen.insert(node).second) {
        return;
    }
    if (node->indirect_calls) {
        found.add(memory_source::UNKNOWN, "an indirect call");
    }
    for (cgraph_edge *edge = node->callees; edge; edge = edge->next_callee) {
        cgraph_node *callee = edge->callee->ultimate_alias_target();
        if (callee->has_gimple_body_p()) {
            look_into(callee, seen, found);
        } else if (!TREE_THIS_VOLATILE(callee->decl)) { /* what never returns brings no memory */
            const std::string symbol = settings_symbol(callee->decl);
            found.add(recorded_source(symbol, reach_of(callee->decl).empty()), symbol);
        }
    }
}

/* The reports of a function go: they are asked for no more. */
void silence(function *fun, unsigned record) {
    basic_block block;
    FOR_EACH_BB_FN(block, fun) {
        for (gimple_stmt_iterator i = gsi_start_bb(block); !gsi_end_p(i); gsi_next(&i)) {
            gcall *call = dyn_cast<gcall *>(gsi_stmt(i));
            if (call && gimple_call_fndecl(call) == known[RETURNS] &&
                DECL_UID(TREE_OPERAND(gimple_call_arg(call, 0), 0)) == record) {
                gimple_stmt_iterator before = gsi_last_bb(single_pred(block));
                gimple_cond_make_false(as_a<gcond *>(gsi_stmt(before)));
            }
        }
    }
}

const pass_data record_pass_data = {
    SIMPLE_IPA_PASS, "memtrace-record", OPTGROUP_NONE, TV_NONE, 0, 0, 0, 0, 0,
};

class record_pass : public simple_ipa_opt_pass {
  public:
    record_pass(gcc::context *context) : simple_ipa_opt_pass(record_pass_data, context) {
    }

    unsigned int execute(function *) final override {
        cgraph_node *node;
        FOR_EACH_FUNCTION_WITH_GIMPLE_BODY(node) {
            auto found = proposals.find(DECL_UID(node->decl));
            if (found != proposals.end()) {
                judge(node, found->second);
            }
        }
        const std::string text = recorded_assembly();
        if (!text.empty()) {
            symtab->finalize_toplevel_asm(build_string(text.size(), text.data()));
        }
        return 0;
    }

  private:
    static void judge(cgraph_node *node, const proposal &it) {
        const std::string symbol = settings_symbol(node->decl);
        const std::string place = declared_place(node->decl);
        std::unordered_set<cgraph_node *> seen;
        memory_origin found;
        look_into(node, seen, found);
        recorded_proposal(symbol, place, it.what.text, found);
        if (it.record == 0) {
            return;
        }
        if (found.kind == memory_source::OWN) {
            recorded_found("auto", symbol, place);
        } else {
            silence(DECL_STRUCT_FUNCTION(node->decl), it.record);
        }
    }
};

const ggc_root_tab roots[] = {
    {known, KNOWN, sizeof known[0], gt_ggc_mx_tree_node, gt_pch_nx_tree_node},
    LAST_GGC_ROOT_TAB,
};

} // namespace

simple_ipa_opt_pass *named_make_record_pass(gcc::context *context) {
    return new record_pass(context);
}

gimple_opt_pass *named_make_pass(gcc::context *context) {
    return new named_pass(context);
}

const ggc_root_tab *named_roots() {
    return roots;
}
