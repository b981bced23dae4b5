# SPDX-License-Identifier: MIT
# The memtrace command for devices (MEMTRACE_TOOLS=agent): which sources it has. What reads DWARF, asks in SQL, draws or
# reports stays out, and with it all libraries but libelf, zlib, zstd, yajl and OpenSSL. Where files named *none.c stand
# beside others they take their place. Included by the root; used where sources are listed, and by tests/agent, which
# links the same command from what the whole build has made already.

# MEMTRACE_AGENT: whether the command is that one.
function(memtrace_choose_tools)
    string(TOLOWER "${MEMTRACE_TOOLS}" tools)
    set(MEMTRACE_AGENT OFF PARENT_SCOPE)
    if(tools STREQUAL "agent")
        set(MEMTRACE_AGENT ON PARENT_SCOPE)
    elseif(tools STREQUAL "all")
        set(MEMTRACE_TOOLS ON PARENT_SCOPE)
    elseif(NOT tools MATCHES "^(on|off|yes|no|true|false|y|n|1|0)$")
        message(FATAL_ERROR "MEMTRACE_TOOLS=${MEMTRACE_TOOLS}: it is all (or ON), agent, or OFF.")
    endif()
endfunction()

# memtrace_without_patching(LIST): of collect, without what decodes instructions.
function(memtrace_without_patching list)
    set(sources "${${list}}")
    list(FILTER sources EXCLUDE REGEX "/(allocators/allocators|allocfind|allocplan|allocprocess|patch[a-z]+)\\.c$")
    set(${list} "${sources}" PARENT_SCOPE)
endfunction()

# memtrace_agent_sources(LIST): leaves what the agent has of the sources of a folder (analyze, ask, collect, cli).
function(memtrace_agent_sources list)
    set(sources "${${list}}")
    # analyze
    list(FILTER sources EXCLUDE REGEX "/analyze/(blocks|export|filter|import|query|report)/")
    list(FILTER sources EXCLUDE REGEX "/symbol/(codefile|symbol|symbolcache|dwarffile|dwarfpackage|demangle|sourceinfo)\\.c$")
    # ask
    list(FILTER sources EXCLUDE REGEX "/ask/(answer|filters|filtervalue|runregions|source)\\.c$")
    # collect
    list(FILTER sources EXCLUDE REGEX "/transform/(anonymize|importer|merge|recordwriter|strip|transform)\\.c$")
    list(FILTER sources EXCLUDE REGEX "/(attachwalk|leftout|recordslices|allocrecorded)\\.c$")
    memtrace_without_patching(sources)
    # cli: no page, no reports, no files written anew
    list(FILTER sources EXCLUDE REGEX
         "/cli/(allocators|budget|check|diff|export|extract|flags|gather|info|outfile|query|reading|replay|report|rewriting|serve|symbolize|top)\\.c$")
    set(${list} "${sources}" PARENT_SCOPE)
endfunction()

# memtrace_whole_sources(LIST): the others, of the whole command.
function(memtrace_whole_sources list)
    set(sources "${${list}}")
    list(FILTER sources EXCLUDE REGEX "/(attachwalknone|symbolnone|filtersnone|leftoutnone|recordslicesnone)\\.c$")
    set(${list} "${sources}" PARENT_SCOPE)
endfunction()
