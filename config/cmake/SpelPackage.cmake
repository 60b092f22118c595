# What `cmake --install` lays out, and the Debian package `cpack` makes of it.
#
#   PREFIX/bin/spel                          the program
#   PREFIX/share/spel/models/spel-21m/       the shipped model
#   PREFIX/share/doc/spel/copyright          the licence
#   PREFIX/lib/systemd/system/spel.service   the unit
#   PREFIX/etc/spel/spel.json                the configuration; /etc/spel where PREFIX is /usr

include(GNUInstallDirs)

# Only the program is installed: no need to build the tests first.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

install(TARGETS spel RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/engine/models/spel-21m"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/spel/models")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/spel"
        RENAME copyright)
# The paths in these two depend on the prefix, which is known when they are installed.
install(CODE "set(SPEL_PACKAGING \"${PROJECT_SOURCE_DIR}/config/packaging\")")
install(SCRIPT "${PROJECT_SOURCE_DIR}/config/packaging/install.cmake")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME spel)
set(CPACK_PACKAGE_VENDOR SPEL)
set(CPACK_PACKAGE_CONTACT "SPEL maintainers <maintainers@spel.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
# With DESTDIR, so that /etc is /etc and not /usr/etc.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/config/packaging/conffiles")
include(CPack)
