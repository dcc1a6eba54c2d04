# Puts the keys of a copy, RESTORE or the newest, back into Redis, each as it was then. Keys that are not in it stay.
. "$(dirname "$0")/common.sh"

set +f
copy=$BACKUP/$RESTORE
if [ -z "$RESTORE" ]; then
  for file in "$BACKUP"/*.rdb; do copy=$file; done
fi
set -f
if [ ! -f "$copy" ]; then
  echo "there is no copy $copy"
  exit 1
fi

target=${NODES%% *}
if [ -n "$MASTER_NAME" ]; then
  look
  target=$MASTER
fi
password=$(password_of_all)

# A server of this Job's own reads the copy, and sends its keys on. It listens on a Unix socket alone.
cp "$copy" "$RUN/dump.rdb" || exit 1
# Named without its folder, as the kernel takes no more than 107 characters.
cd "$RUN" || exit 1
socket=redis.sock
{
  printf '%s\n' "port 0" "unixsocket $socket" "dir $RUN" 'save ""' "appendonly no"
  [ -z "$TLS" ] || printf '%s\n' "tls-cluster yes" "tls-ca-cert-file $TLS/ca.crt" "tls-cert-file $TLS/tls.crt" \
    "tls-key-file $TLS/tls.key"
} > "$RUN/restore.conf"
redis-server "$RUN/restore.conf" > "$RUN/log" 2>&1 &
own() {
  redis-cli -s "$socket" "$@"
}
until [ "$(own PING 2> /dev/null)" = PONG ]; do
  kill -0 $! 2> /dev/null || { cat "$RUN/log"; exit 1; }
  sleep 0.2
done

failed=0 done=0
for key in $(own --scan); do
  said=$(printf 'MIGRATE %s %s %s 0 60000 COPY REPLACE AUTH2 %s %s\n' \
    "$target" $REDIS_PORT "$key" $NODES_USER "$password" | own)
  case $said in
    OK | NOKEY) done=$((done + 1)) ;;
    *) failed=$((failed + 1)) && echo "$key: $said" ;;
  esac
done
own SHUTDOWN NOSAVE
echo "restored $done keys of $copy on $target, $failed could not be"
[ $failed -eq 0 ]
