# Runs beside Redis: a replica that has lost its master follows the one that the Sentinels name. They tell it once, and for
# fifteen seconds after its pod was replaced perhaps its old address; then again only ten seconds after the failover
# (Redis' src/sentinel.c: SENTINEL_MIN_LINK_RECONNECT_PERIOD, "+fix-slave-config"). Until then it confirms no write.
. "$(dirname "$0")/common.sh"

pause=1
while sleep $pause; do
  pause=1
  replication=$(ask "$HERE" $REDIS_PORT INFO replication) || continue
  case $replication in
    *role:slave*master_link_status:down*master_sync_in_progress:0*) pause=0.5 ;;
    *) continue ;;
  esac
  look
  [ $ANSWERS -ge $MAJORITY ] && [ "$MASTER" != "$ME" ] || continue
  case $replication in
    *master_host:"$MASTER"*) ;;
    *) [ "$(ask "$HERE" $REDIS_PORT REPLICAOF "$MASTER" $REDIS_PORT)" = OK ] && echo "following $MASTER" ;;
  esac
done
