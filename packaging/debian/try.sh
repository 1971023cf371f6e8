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

step "and back"
dpkg -P gannet-unbound
[ ! -e /usr/sbin/unbound ] || fail "links are left"
[ -e "$wanted/gannet.service" ] || fail "the service of Gannet does not come back"
[ ! -s unbound.conf ] || cmp unbound.conf /etc/unbound/unbound.conf || fail "unbound.conf has changed"

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
