#!/bin/sh
# Carries out the last stage of the container recipe in a copy of this machine that vanishes
# afterwards, with a program that is there already, and runs it as a container engine would:
# try.sh SOURCE PROGRAM EMPTY_FOLDER. Runs as root, in namespaces of its own
# (`unshare --mount --net --pid --fork`).
set -eu
source=$1
program=$2
room=$3
fail() { echo "FAILED: $*"; exit 1; }

mount -t tmpfs tmpfs "$room"
mkdir "$room/upper" "$room/work" "$room/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$room/upper,workdir=$room/work" "$room/root"
mount -t proc proc "$room/root/proc"
mount --bind /dev "$room/root/dev"
# What earlier servers of this machine have left.
rm -rf "$room/root/var/lib/gannet" "$room/root/etc/gannet" "$room/root/run/gannet"
inside() { chroot "$room/root" "$@"; }
inside userdel gannet 2> /dev/null || true

# Lines of the last stage, continued ones joined.
sed -e ':join' -e '/\\$/{N; s/\\\n/ /; b join' -e '}' "$source/packaging/container/Containerfile" \
    | awk '/^FROM /{stage=""} !/^#/ && NF {stage=stage $0 "\n"} END {printf "%s", stage}' > "$room/stage"
# A list in JSON whose words need no quotes.
words() { echo "$1" | tr -d '[]",' ; }
start=
health=
while read -r verb rest; do
    case "$verb" in
    FROM | EXPOSE | VOLUME | STOPSIGNAL) ;;
    COPY)
        case "$rest" in
        --from=build\ *) from=$program to=${rest##* } ;;
        *) from=$source/${rest% *} to=${rest##* } ;;
        esac
        install -D -m "$(stat -c %a "$from")" "$from" "$room/root$to" ;;
    RUN) inside sh -euc "$rest" < /dev/null ;;
    HEALTHCHECK) health=$(words "${rest##*CMD }") ;;
    ENTRYPOINT) start=$(words "$rest") ;;
    *) fail "the recipe has a line that is not known here: $verb $rest" ;;
    esac
done < "$room/stage"

ip link set lo up
inside $start check
chroot "$room/root" $start > "$room/log" 2>&1 &
server=$!
tries=0
until inside $health > "$room/health" 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { cat "$room/log" "$room/health"; fail "the container is never healthy"; }
    kill -0 "$server" 2> /dev/null || { cat "$room/log"; fail "the server has ended"; }
    sleep 0.1
done
user=$(awk '/^Uid:/ {print $2}' "$room/root/proc/$server/status")
[ "$user" = "$(inside id -u gannet)" ] || fail "the server runs as user $user"
kill -TERM "$server"
wait "$server" || { cat "$room/log"; fail "the server did not end well"; }
[ -e "$room/root/var/lib/gannet/main.cache" ] || { cat "$room/log"; fail "the cache was not kept"; }
echo "the container starts, answers and ends as it should"
