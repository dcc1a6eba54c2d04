# Copies the data into a file of the volume for copies, and removes the oldest of more than KEEP; on a full volume also
# others, but the newest: no later copy would succeed.
. "$(dirname "$0")/common.sh"

# A replica, if one has what its master has: the master has enough to do. One without a link to it lets nobody copy.
chosen=''
for node in $NODES; do
  case $(ask "$node" $REDIS_PORT INFO replication) in
    *role:slave*master_link_status:up*) chosen=$node && break ;;
    *role:master*) chosen=${chosen:-$node} ;;
  esac
done
if [ -z "$chosen" ]; then
  echo "no master answers, and no replica that has a link to one"
  exit 1
fi

umask 077
copy=$BACKUP/$(date -u +%Y-%m-%dT%H-%M-%SZ).rdb
REDISCLI_AUTH=$(password_of_all)
export REDISCLI_AUTH
# The names of copies are in the order of time.
set +f
# shellcheck disable=SC2046
until output=$(redis-cli -h "$chosen" -p $REDIS_PORT --user $NODES_USER --no-auth-warning $(tls_options) \
  --rdb "$copy.part" 2>&1); do
  echo "$output"
  case $output in *'short write'* | *'No space left'* | *'uota exceeded'*) ;; *) exit 1 ;; esac
  set -- "$BACKUP"/*.rdb
  [ $# -gt 1 ] || exit 1
  rm -f "$1" "$copy.part"
  echo "the volume is full: removed $1"
done
redis-check-rdb "$copy.part" > /dev/null || exit 1
mv "$copy.part" "$copy"
echo "copied $chosen to $copy"

for file in "$BACKUP"/*.rdb; do
  set -- "$BACKUP"/*.rdb
  [ $# -gt "$KEEP" ] || break
  rm -f "$file"
done
