# Starts a Sentinel. What it rewrites is for its own run; what outlasts it is the name of the master and its epoch, which
# lie beside the data (watch.sh).
. "$(dirname "$0")/common.sh"

look
known_epoch=0 known_master=${NODES%% *}
if [ -s "$MEMORY" ]; then
  read -r known_epoch known_master < "$MEMORY"
fi
if [ $EPOCH -lt "$known_epoch" ] || [ -z "$MASTER" ]; then
  EPOCH=$known_epoch MASTER=$known_master
fi

identity() {
  printf '%s' "$1" | sha1sum | cut -c 1-40
}

umask 077
{
  listen_on $SENTINEL_PORT
  password=$(password_of_all)
  cat << CONF
dir $RUN
aclfile $USERS/sentinel.acl
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel announce-ip $ME
sentinel announce-port $SENTINEL_PORT
sentinel sentinel-user $NODES_USER
sentinel sentinel-pass $password
sentinel myid $(identity "$ME")
sentinel monitor $MASTER_NAME $MASTER $REDIS_PORT 2
sentinel auth-user $MASTER_NAME $NODES_USER
sentinel auth-pass $MASTER_NAME $password
sentinel down-after-milliseconds $MASTER_NAME $DOWN_AFTER
sentinel failover-timeout $MASTER_NAME $FAILOVER_TIMEOUT
sentinel parallel-syncs $MASTER_NAME 1
sentinel config-epoch $MASTER_NAME $EPOCH
sentinel current-epoch $EPOCH
CONF
  for node in $NODES; do
    # All Sentinels are known from the start, so that one that is alone has no majority.
    [ "$node" = "$ME" ] || echo "sentinel known-sentinel $MASTER_NAME $node $SENTINEL_PORT $(identity "$node")"
    # Where there have been data, a master that comes back without them must not be the only one that is known.
    [ "$node" = "$MASTER" ] || [ "$EPOCH" -eq 0 ] || echo "sentinel known-replica $MASTER_NAME $node $REDIS_PORT"
  done
} > "$RUN/sentinel.conf"

sh "$(dirname "$0")/watch.sh" sentinel &
exec redis-server "$RUN/sentinel.conf" --sentinel
