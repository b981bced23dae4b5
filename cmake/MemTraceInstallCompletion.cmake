# SPDX-License-Identifier: MIT
# The scripts by which shells complete the command, where they look for them.
install(FILES cli/completion/memtrace.bash RENAME memtrace
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES cli/completion/memtrace.zsh RENAME _memtrace
        DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES cli/completion/memtrace.fish
        DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
