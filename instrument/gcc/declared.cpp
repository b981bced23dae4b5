/* SPDX-License-Identifier: MIT */
/* declared.cpp: see declared.h. */
#include "instrument/gcc/declared.h"

#include "instrument/allocators/recorded.h"
#include "instrument/gcc/settings.h"

namespace {

value_class class_of(tree type) {
    const bool is_wide = TYPE_SIZE_UNIT(type) && tree_fits_uhwi_p(TYPE_SIZE_UNIT(type)) &&
                         tree_to_uhwi(TYPE_SIZE_UNIT(type)) > UNITS_PER_WORD;
    return VOID_TYPE_P(type)                       ? value_class::NOTHING
           : POINTER_TYPE_P(type)                  ? value_class::POINTER
           : INTEGRAL_TYPE_P(type) && !is_wide     ? value_class::NUMBER
           : SCALAR_FLOAT_TYPE_P(type) && !is_wide ? value_class::FLOATING
                                                   : value_class::OTHER;
}

tree size_attribute(tree function) {
    return lookup_attribute("alloc_size", TYPE_ATTRIBUTES(TREE_TYPE(function)));
}

bool is_malloc(tree function) {
    return lookup_attribute("malloc", DECL_ATTRIBUTES(function)) != NULL_TREE;
}

/* The number of the argument at a position of the declaration; 0: it has none. */
unsigned number_of(tree function, tree position) {
    unsigned number = 0;
    tree it = DECL_ARGUMENTS(function);
    for (HOST_WIDE_INT i = tree_to_shwi(position); it; it = DECL_CHAIN(it)) {
        const value_class type = class_of(TREE_TYPE(it));
        if (type == value_class::OTHER) {
            return 0;
        }
        number += type != value_class::FLOATING;
        if (--i == 0) {
            return number;
        }
    }
    return 0;
}

} // namespace

function_shape declared_shape(tree function) {
    function_shape shape;
    for (tree it = DECL_ARGUMENTS(function); it; it = DECL_CHAIN(it)) {
        shape.parameters.push_back(
            {class_of(TREE_TYPE(it)), DECL_NAME(it) ? IDENTIFIER_POINTER(DECL_NAME(it)) : ""});
    }
    shape.result = class_of(TREE_TYPE(DECL_RESULT(function)));
    return shape;
}

bool declared_proposes(tree function) {
    return (is_malloc(function) || size_attribute(function)) &&
           recorded_source(settings_symbol(function), false) != memory_source::MALLOC;
}

wanted declared_proposal(tree function) {
    tree attribute = is_malloc(function) ? size_attribute(function) : NULL_TREE;
    tree positions = attribute ? TREE_VALUE(attribute) : NULL_TREE;
    tree second = positions ? TREE_CHAIN(positions) : NULL_TREE;
    return wanted_proposed(settings_symbol(function),
                           positions ? number_of(function, TREE_VALUE(positions)) : 0,
                           second ? number_of(function, TREE_VALUE(second)) : 0);
}

std::string declared_place(tree function) {
    expanded_location place = expand_location(DECL_SOURCE_LOCATION(function));
    return std::string(place.file ? place.file : "?") + ':' + std::to_string(place.line);
}
