# Writes the nodes' addresses into HOSTS, which is /etc/hosts where the servers run: `once`, or with no argument again and
# again. Redis and Sentinel look names up while all else of them waits, a Sentinel several times a second, and one that
# has waited for two seconds takes part in no failover for thirty ("TILT mode"). So nothing but this waits for DNS.
. "$(dirname "$0")/common.sh"

# lines_of NODE: its addresses, as DNS has them. Where DNS does not answer, those that are known; where it says that there
# are none, or the image has no getent that can be told to ask DNS alone (musl's), none: then DNS is asked as usual.
lines_of() {
  found=$(timeout 1 getent -s hosts:dns ahosts "$1" 2> /dev/null)
  case $? in
    0) printf '%s\n' "$found" | sed "s/ .*/ $1/" | sort -u ;;
    1 | 2) ;;
    *) grep " $1\$" "$HOSTS" ;;
  esac
}

write() {
  now=$(
    printf '%s\n' '127.0.0.1 localhost' '::1 localhost'
    # All at the same time, and in one order.
    for node in $NODES; do lines_of "$node" & done | sort
  )
  # In place: a file that is mounted cannot be replaced.
  [ "$now" = "$(cat "$HOSTS" 2> /dev/null)" ] || printf '%s\n' "$now" > "$HOSTS"
}

write
while [ "$1" != once ]; do
  sleep "${WATCH_SECONDS:-2}"
  write
done
