#!/bin/bash
# spel-healthy [PORT]: is the server in this container ready? Needs nothing but bash.
port=${1:-${SPEL_PORT:-8080}}
exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
printf 'GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
IFS=' ' read -r -t 2 _ status _ <&3
[[ $status == 200 ]]
