# SPDX-License-Identifier: MIT
# uifiles.cmake: cmake -DFROM=web/ui/dist -DEXTRA=schemas.json=web/schemas.json -DTO=BASE -P uifiles.cmake
# Makes BASE.S, which holds the files of a folder as they are, and BASE.c, a table of them.
file(GLOB_RECURSE files LIST_DIRECTORIES false "${FROM}/*")
list(SORT files)
set(places "")
foreach(file IN LISTS files)
    file(RELATIVE_PATH path "${FROM}" "${file}")
    # The page with a place for its data is no page of the server: no address begins without a slash.
    if(NOT path STREQUAL "onefile.html")
        set(path "/${path}")
    endif()
    list(APPEND places "${path}=${file}")
endforeach()
list(APPEND places ${EXTRA})

set(types
    html "text/html; charset=utf-8" js "text/javascript; charset=utf-8" css "text/css; charset=utf-8"
    svg image/svg+xml png image/png json application/json woff2 font/woff2 txt "text/plain; charset=utf-8"
    map application/json)
set(data "/* Made by uifiles.cmake. */\n.section .rodata\n")
set(declared "")
set(rows "")
set(number 0)
foreach(place IN LISTS places)
    string(REGEX MATCH "^([^=]*)=(.*)$" all "${place}")
    set(path "${CMAKE_MATCH_1}")
    set(file "${CMAKE_MATCH_2}")
    string(REGEX MATCH "[^.]*$" ending "${path}")
    list(FIND types "${ending}" at)
    if(at EQUAL -1)
        message(FATAL_ERROR "${file}: no media type is known for .${ending}")
    endif()
    math(EXPR at "${at} + 1")
    list(GET types ${at} type)
    set(hashed false)
    if(path MATCHES "-[0-9A-Za-z]+\\.[a-z0-9]+$")
        set(hashed true)
    endif()
    string(APPEND data ".global uifile_${number}\n.hidden uifile_${number}\n.balign 16\nuifile_${number}:\n"
           ".incbin \"${file}\"\n.global uifile_${number}_end\n.hidden uifile_${number}_end\n"
           "uifile_${number}_end:\n.byte 0\n")
    file(SIZE "${file}" size)
    string(APPEND declared "extern const unsigned char uifile_${number}[];\n")
    string(APPEND rows "    {\"${path}\", uifile_${number}, ${size}, \"${type}\", ${hashed}},\n")
    math(EXPR number "${number} + 1")
endforeach()
string(APPEND data ".section .note.GNU-stack,\"\",@progbits\n")
file(WRITE "${TO}.S" "${data}")
file(WRITE "${TO}.c" "/* Made by uifiles.cmake. */\n#include \"web/server/uifiles.h\"\n${declared}"
     "const struct uifile uifiles_table[] = {\n${rows}    {0},\n};\nconst size_t uifiles_count = ${number};\n")
