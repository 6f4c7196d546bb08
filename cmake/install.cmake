# Where things go: the usual places, or inside the Python package for a wheel.

get_property(programs GLOBAL PROPERTY RUEDA_PROGRAMS)

file(GLOB man_pages CONFIGURE_DEPENDS docs/man/*.[1-9])

function(install_man_pages folder)
    foreach(page IN LISTS man_pages)
        string(REGEX REPLACE ".*\\.([1-9])$" "\\1" section ${page})
        install(FILES ${page} DESTINATION ${folder}/man${section})
    endforeach()
endfunction()

if(SKBUILD)
    install(TARGETS rueda_shared LIBRARY DESTINATION rueda/lib)
    install(FILES include/rueda/rueda.h DESTINATION rueda/include/rueda)
    if(programs)
        install(TARGETS ${programs} RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR})
    endif()
    # Beside the programs of an environment, where man(1) looks.
    install_man_pages(${SKBUILD_DATA_DIR}/share/man)
    return()
endif()

install(TARGETS rueda_shared EXPORT rueda
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES include/rueda/rueda.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rueda)
if(programs)
    install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Relative to the file itself, so that "cmake --install --prefix" stays true.
file(RELATIVE_PATH pc_to_prefix
     /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/rueda.pc.in rueda.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rueda.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# For find_package(rueda) of CMake: the target rueda::rueda.
set_target_properties(rueda_shared PROPERTIES EXPORT_NAME rueda)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(rueda-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(EXPORT rueda NAMESPACE rueda:: FILE rueda-config.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rueda)
install(FILES ${PROJECT_BINARY_DIR}/rueda-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rueda)

install_man_pages(${CMAKE_INSTALL_MANDIR})
