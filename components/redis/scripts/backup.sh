# Copies the data into a file of the volume for copies, and removes the oldest of more than KEEP.
. "$(dirname "$0")/common.sh"

# A replica, if there is one: the master has enough to do.
chosen=''
for node in $NODES; do
  case $(ask "$node" $REDIS_PORT INFO replication) in
    *role:slave*) chosen=$node && break ;;
    *role:master*) chosen=${chosen:-$node} ;;
  esac
done
if [ -z "$chosen" ]; then
  echo "no node answers"
  exit 1
fi

umask 077
copy=$BACKUP/$(date -u +%Y-%m-%dT%H-%M-%SZ).rdb
REDISCLI_AUTH=$(password_of_all)
export REDISCLI_AUTH
# shellcheck disable=SC2046
redis-cli -h "$chosen" -p $REDIS_PORT --user $NODES_USER --no-auth-warning $(tls_options) --rdb "$copy.part" || exit 1
redis-check-rdb "$copy.part" > /dev/null || exit 1
mv "$copy.part" "$copy"
echo "copied $chosen to $copy"

# Their names are in the order of time.
set +f
for file in "$BACKUP"/*.rdb; do
  set -- "$BACKUP"/*.rdb
  [ $# -gt "$KEEP" ] || break
  rm -f "$file"
done
