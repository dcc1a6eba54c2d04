#!/bin/sh
# Starts what a container of Redis is for, as the entrypoint of Redis' own image does (redis/docker-library-redis).
set -e

# Options or a file alone are redis-server's.
case "$1" in
  -* | *.conf) set -- redis-server "$@" ;;
esac

# root is only for taking the volume over.
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  find . ! -user redis -exec chown redis {} +
  exec setpriv --reuid=redis --regid=redis --clear-groups -- "$0" "$@"
fi

# The Redis of Redis' own image answers other pods if protected-mode is not set. The distribution's needs the option. It
# is not passed to Sentinel, which answers anyway, nor to commands that print something and end.
if [ "$1" = redis-server ]; then
  case " $* " in
    *" --sentinel "* | *" --protected-mode "*) ;;
    " redis-server -v "* | " redis-server --version "* | " redis-server -h "* | " redis-server --help "*) ;;
    *)
      if [ ! -f "$2" ]; then
        shift
        set -- redis-server --protected-mode no "$@"
      elif ! grep -q '^[[:space:]]*protected-mode' "$2"; then
        file=$2
        shift 2
        set -- redis-server "$file" --protected-mode no "$@"
      fi
      ;;
  esac
fi

if [ "$(umask)" = 0022 ]; then
  umask 0077
fi
exec "$@"
