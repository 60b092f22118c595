# Runs at install time: fills the prefix into the unit and the configuration.
set(SPEL_BINARY "${CMAKE_INSTALL_PREFIX}/bin/spel")
set(SPEL_MODEL "${CMAKE_INSTALL_PREFIX}/share/spel/models/spel-21m")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(SPEL_ETC /etc/spel)
else()
  set(SPEL_ETC "${CMAKE_INSTALL_PREFIX}/etc/spel")
endif()
set(SPEL_CONFIG "${SPEL_ETC}/spel.json")

configure_file("${SPEL_PACKAGING}/spel.json.in" "$ENV{DESTDIR}${SPEL_CONFIG}" @ONLY)
configure_file("${SPEL_PACKAGING}/spel.service.in"
               "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/spel.service" @ONLY)
message(STATUS "Installed: ${SPEL_CONFIG}, spel.service")
