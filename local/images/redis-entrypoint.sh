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

# Its own image has a Redis that is built to answer other pods where nothing is said of protected-mode. This one is the
# distribution's, and is told so; not Sentinel, which answers anyway, and not where it prints something and ends.
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
