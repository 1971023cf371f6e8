#!/bin/sh
# Installs, upgrades and purges the packages of a folder in a copy of this machine that vanishes
# afterwards: try.sh PACKAGES EMPTY_FOLDER. Runs as root, in a mount namespace of its own
# (`unshare --mount`).
set -eu
packages=$1
room=$2

mount -t tmpfs tmpfs "$room"
mkdir "$room/upper" "$room/work" "$room/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$room/upper,workdir=$room/work" "$room/root"
mount -t proc proc "$room/root/proc"
mount --bind /dev "$room/root/dev"
mkdir "$room/root/packages"
cp "$packages"/*.deb "$room/root/packages"
cat > "$room/root/packages/steps" << 'END'
set -eu
export DEBIAN_FRONTEND=noninteractive
# Where no other server has the ports.
alone() { unshare --net sh -c "ip link set lo up; $*"; }
# Starts the service's program with what the service gives it, and has it answer.
serves() {
    alone '/usr/sbin/unbound -d -p 2> /packages/log & server=$!
        tries=0
        until dig +short +tries=1 +timeout=1 @127.0.0.1 localhost A | grep -qx 127.0.0.1; do
            kill -0 $server && [ $((tries += 1)) -lt 60 ] || exit 1
            sleep 0.2
        done
        sed -n "s/^Uid:\t\([0-9]*\).*/\1/p" /proc/$server/status > /packages/user
        kill $server
        wait $server || true' || { cat log; fail "the server does not answer"; }
    [ "$(cat user)" = "$(id -u unbound)" ] || { cat log; fail "the server is the user $(cat user)"; }
}
# Puts an installed package together again: there is no other way to it without a network.
repacked() {
    mkdir -p "again/$1/DEBIAN"
    dpkg-query -L "$1" | while read -r path; do
        # /lib may be a link.
        if [ -d "$path" ]; then
            mkdir -p "again/$1$path"
        elif [ -e "$path" ]; then
            cp -a "$path" "again/$1$path"
        fi
    done
    for script in preinst postinst prerm postrm conffiles; do
        [ ! -e "/var/lib/dpkg/info/$1.$script" ] || cp "/var/lib/dpkg/info/$1.$script" "again/$1/DEBIAN/$script"
    done
    dpkg-query -s "$1" | sed '/^Status:/d; /^Conffiles:/,/^[^ ]/{/^Conffiles:/d; /^ /d}' > "again/$1/DEBIAN/control"
    dpkg-deb --build "again/$1" "again/$1.deb" > /dev/null
}
step() { echo "--- $*"; }
fail() { echo "FAILED: $*"; exit 1; }
files() { find /etc /usr /var/lib ! -path '/var/lib/dpkg/*' ! -path '/var/lib/systemd/*' ! -path '/etc/rc*.d/*' | sort; }
wanted=/etc/systemd/system/multi-user.target.wants
cd /packages
# What earlier servers of this machine have left.
rm -rf /var/lib/gannet /etc/gannet

step "the program and its service"
files > before
dpkg -i gannet_*.deb
[ "$(stat -c '%U %a' /var/lib/gannet)" = "gannet 750" ] || fail "the directory of the state"
[ -e "$wanted/gannet.service" ] || fail "the service is not enabled"
gannet version
gannet check
zcat /usr/share/man/man1/gannet.1.gz > /dev/null
echo 'server: {}' > /etc/gannet/gannet.yaml
echo kept > /var/lib/gannet/state

step "an upgrade"
dpkg -i gannet_*.deb
[ "$(cat /var/lib/gannet/state)" = kept ] || fail "the state is gone"
[ -e /etc/gannet/gannet.yaml ] || fail "the configuration is gone"

step "in the place of Unbound"
theirs=
if [ "$(dpkg-query -W -f '${db:Status-Status}' unbound 2> /dev/null)" = installed ]; then
    theirs=unbound
    repacked unbound
fi
if [ -e /etc/unbound/unbound.conf ]; then
    echo '# of the operator' >> /etc/unbound/unbound.conf
    cp /etc/unbound/unbound.conf unbound.conf
else
    : > unbound.conf
fi
dpkg -i gannet-unbound_*.deb
for program in unbound unbound-checkconf unbound-control unbound-control-setup unbound-anchor unbound-host; do
    [ "$(readlink -f "$(command -v $program)")" = /usr/bin/gannet ] || fail "$program is not Gannet"
done
[ ! -s unbound.conf ] || cmp unbound.conf /etc/unbound/unbound.conf || fail "unbound.conf has changed"
[ -e "$wanted/gannet-unbound.service" ] || fail "the service is not enabled"
[ "$(basename "$(readlink /etc/systemd/system/unbound.service)")" = gannet-unbound.service ] || fail "unbound is no name of the service"
[ ! -e "$wanted/gannet.service" ] || fail "two services want one port"
[ -s /var/lib/unbound/root.key ] || fail "there is no anchor of the root"
unbound-checkconf
unbound -V
[ "$(unbound-checkconf -o username)" = unbound ] || fail "the user is not unbound"
serves
[ "$(stat -c %U /var/lib/unbound/root.key /var/lib/unbound/gannet | sort -u)" = unbound ] || fail "the state is not the user's"

step "an upgrade in the place of Unbound"
echo kept > /var/lib/unbound/gannet/kept
dpkg -i gannet-unbound_*.deb
[ "$(cat /var/lib/unbound/gannet/kept)" = kept ] || fail "the state is gone"
[ ! -s unbound.conf ] || cmp unbound.conf /etc/unbound/unbound.conf || fail "unbound.conf has changed"
[ -e "$wanted/gannet-unbound.service" ] || fail "the service is not enabled"
[ ! -e "$wanted/gannet.service" ] || fail "two services want one port"
serves

step "and back"
dpkg -P gannet-unbound
[ ! -e /usr/sbin/unbound ] || fail "links are left"
[ ! -e /var/lib/unbound/gannet ] || fail "state is left"
[ -e "$wanted/gannet.service" ] || fail "the service of Gannet does not come back"
[ ! -s unbound.conf ] || cmp unbound.conf /etc/unbound/unbound.conf || fail "unbound.conf has changed"

if [ -n "$theirs" ]; then
    step "Unbound has its place again"
    dpkg -i again/unbound.deb
    [ "$(readlink -f /usr/sbin/unbound)" = /usr/sbin/unbound ] || fail "unbound is not Unbound"
    /usr/sbin/unbound -V | grep -q Linked || fail "unbound is not Unbound"
    cmp unbound.conf /etc/unbound/unbound.conf || fail "unbound.conf has changed"
    unbound-checkconf
    serves
    dpkg -r unbound
fi

step "nothing is left"
dpkg -P gannet
# Programs of Unbound are gone with its package; its configuration is not.
files > after
comm -13 before after | grep -v '/unbound' > left || true
[ ! -s left ] || { cat left; fail "files are left"; }
comm -23 before after | grep '/etc/unbound' > lost || true
[ ! -s lost ] || { cat lost; fail "configuration of Unbound is gone"; }
echo "the packages come and go as they should"
END
exec chroot "$room/root" sh /packages/steps
