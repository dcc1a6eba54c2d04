# Runs beside the server of its container, `redis` or `sentinel`: gives it users and passwords that have changed, and
# remembers who the master is.
. "$(dirname "$0")/common.sh"

server=$1
case $server in
  redis) own_port=$REDIS_PORT ;;
  sentinel) own_port=$SENTINEL_PORT ;;
esac

# ACL LOAD would close every connection (seen with Redis 7.0): each user is set anew instead.
set_users() {
  while read -r _ name rules; do
    [ "$(ask "$HERE" $own_port "ACL SETUSER $name reset $rules")" = OK ] || return 1
  done < "$USERS/$server.acl"
  there=$(ask "$HERE" $own_port ACL USERS) || return 1
  for name in $there; do
    grep -q "^user $name " "$USERS/$server.acl" || ask "$HERE" $own_port ACL DELUSER "$name" > /dev/null || return 1
  done
}

# What this server shows to others. Fails while not all take the newest.
set_password() {
  password=$(password_of_all)
  if [ "$server" = redis ]; then
    [ "$(ask "$HERE" $own_port CONFIG SET masterauth "$password")" = OK ] || return 1
  else
    [ "$(ask "$HERE" $own_port SENTINEL SET "$MASTER_NAME" auth-pass "$password")" = OK ] || return 1
    [ "$(ask "$HERE" $own_port SENTINEL CONFIG SET sentinel-pass "$password")" = OK ] || return 1
  fi
  [ "$password" = "$(head -n 1 "$USERS/passwords")" ]
}

# The master is remembered once this Sentinel sees it: from then on there may be data.
watch_master() {
  said=$(ask "$HERE" $own_port SENTINEL MASTER "$MASTER_NAME") || return 0
  [ "$(field flags "$said")" = master ] || return 0
  if [ "$(field down-after-milliseconds "$said")" != "$DOWN_AFTER" ]; then
    ask "$HERE" $own_port SENTINEL SET "$MASTER_NAME" down-after-milliseconds "$DOWN_AFTER" > /dev/null
  fi
  epoch=$(field config-epoch "$said")
  now="$((epoch > 0 ? epoch : 1)) $(field ip "$said")"
  if [ "$now" != "$(cat "$MEMORY" 2> /dev/null)" ]; then
    echo "$now" > "$MEMORY.new" && mv "$MEMORY.new" "$MEMORY"
  fi
}

# A certificate that was renewed. Redis reads it anew; a Sentinel cannot, so it starts again.
set_certificate() {
  if [ "$server" = redis ]; then
    [ "$(ask "$HERE" $own_port CONFIG SET tls-cert-file "$TLS/tls.crt")" = OK ]
  else
    kill "$PPID"
  fi
}

certificate() {
  [ -z "$TLS" ] || cat "$TLS/tls.crt" "$TLS/tls.key" "$TLS/ca.crt" | cksum
}

# A mounted Secret changes as a whole: all its files at once.
seen() {
  cat "$USERS/passwords" "$USERS/$server.acl" | cksum
}

# The server has read the files as they are, but perhaps not all others have.
done_with=''
started_with=$(certificate)
while sleep "${WATCH_SECONDS:-5}"; do
  now=$(seen)
  if [ "$now" != "$done_with" ] && set_users && set_password; then
    done_with=$now
  fi
  now=$(certificate)
  if [ "$now" != "$started_with" ] && set_certificate; then
    started_with=$now
  fi
  [ "$server" = redis ] || watch_master
done
