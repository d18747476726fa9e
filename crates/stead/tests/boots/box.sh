#!/bin/bash
# A Debian with systemd as its first process, in namespaces of its own: a machine whose power can be cut.
#
#   box.sh make DIR            makes its root, DIR/root, from Debian's packages
#   box.sh unpack DIR PROCESSOR  unpacks the packages that every Debian for that processor has, as DIR/root
#   box.sh mirror DIR NAME...  downloads packages and what they require, and makes a repository of them, /srv/mirror in it
#   box.sh install DIR NAME... installs packages
#   box.sh boot DIR            boots it, writes the id of its first process to DIR/init, and returns when it is off
#   box.sh network DIR NAME    makes a network of machines, in which whoever enters it has the address 10.77.0.1
#   box.sh attach DIR NAME ADDRESS...  connects one that is on to it
#   box.sh run DIR COMMAND...  runs a command in it
#
# Killing the first process is a power cut for everything in it. The kernel, the clock and what is flushed are those of the host.
# Its network is its own, and reaches nothing but what it is connected to.
set -euo pipefail

action=$1 dir=$2
shift 2

# What would reach the host.
dropped=-sys_time,-sys_module,-sys_rawio,-syslog,-wake_alarm

make_root() {
  local suite unit
  suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,sudo "$suite" "$dir/root.new" >"$dir/make.log" 2>&1 || {
    tail -n 1 "$dir/make.log" >&2
    return 1
  }
  # They are about hardware, or about a clock and a kernel that belong to the host.
  for unit in console-getty getty@tty1 modprobe@ systemd-firstboot systemd-modules-load systemd-remount-fs systemd-sysctl systemd-timesyncd; do
    ln -sf /dev/null "$dir/root.new/etc/systemd/system/$unit.service"
  done
  for unit in dev-hugepages dev-mqueue sys-fs-fuse-connections sys-kernel-config sys-kernel-debug sys-kernel-tracing; do
    ln -sf /dev/null "$dir/root.new/etc/systemd/system/$unit.mount"
  done
  tr -d - </proc/sys/kernel/random/uuid >"$dir/root.new/etc/machine-id"
  mv "$dir/root.new" "$dir/root"
}

unpack() {
  local suite
  suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  debootstrap --foreign --arch="$1" --variant=minbase "$suite" "$dir/root.new" && mv "$dir/root.new" "$dir/root"
}

mirror() {
  local root=$dir/root suite architecture index package name
  chroot "$root" apt-get clean
  chroot "$root" apt-get -qq update
  chroot "$root" apt-get -qq install --no-install-recommends --download-only -y "$@"
  suite=$(sed -n 's/^VERSION_CODENAME=//p' "$root/etc/os-release") architecture=$(chroot "$root" dpkg --print-architecture)
  mkdir -p "$root/srv/mirror/pool"
  index=$root/srv/mirror/dists/$suite-backports/main/binary-$architecture
  mkdir -p "$index"
  : >"$index/Packages"
  for package in "$root"/var/cache/apt/archives/*.deb; do
    # apt writes the colon of a version as %3a, which is a colon again in an address.
    name=$(basename "${package//%3a/.}")
    mv "$package" "$root/srv/mirror/pool/$name"
    package=$root/srv/mirror/pool/$name
    {
      dpkg-deb --field "$package"
      printf 'Filename: pool/%s\nSize: %s\nSHA256: %s\n\n' "$name" "$(stat -c %s "$package")" "$(sha256sum "$package" | cut -d ' ' -f 1)"
    } >>"$index/Packages"
  done
}

# What is installed starts nothing: the host's processes are seen in it.
install_packages() {
  local policy=$dir/root/usr/sbin/policy-rc.d
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  chroot "$dir/root" apt-get -qq update
  DEBIAN_FRONTEND=noninteractive chroot "$dir/root" apt-get -qq install --no-install-recommends -y "$@"
  rm "$policy"
}

# Runs as the first process of the box, and becomes its systemd.
enter() {
  local root=$dir/root init
  # The id is the one outside: /proc is still that of the host.
  read -r init _ </proc/self/stat
  mount --make-rprivate /
  mount --rbind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount -t tmpfs tmpfs "$root/tmp"
  mount --bind "$root/proc/sys" "$root/proc/sys"
  mount --bind "$dir/boot_id" "$root/proc/sys/kernel/random/boot_id"
  mount -o remount,bind,ro "$root/proc/sys"
  [ ! -e "$root/proc/sysrq-trigger" ] || mount --bind /dev/null "$root/proc/sysrq-trigger"
  echo "$init" >"$dir/init"
  ip link set lo up
  exec setpriv --bounding-set="$dropped" env -i container=box PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /lib/systemd/systemd
}

boot() {
  local mounted cgroup
  mounted=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
  cgroup=$mounted/stead-box-$$
  mkdir "$cgroup"
  cat /proc/sys/kernel/random/uuid >"$dir/boot_id"
  rm -f "$dir/init"
  # The first process and its children are in the group before its namespace is made, which then begins there.
  (
    sh -c 'echo $PPID' >"$cgroup/cgroup.procs"
    exec unshare --cgroup --pid --mount --uts --ipc --net --fork "$0" enter "$dir"
  ) </dev/null >>"$dir/console" 2>&1 &
  # In the background, since a machine that ends by a signal is nothing to report.
  wait $! 2>/dev/null || true
  find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true
}

network() {
  ip netns add "$1"
  ip -n "$1" link set lo up
  ip -n "$1" link add bridge0 type bridge
  ip -n "$1" address add 10.77.0.1/24 dev bridge0
  ip -n "$1" link set bridge0 up
}

attach() {
  local name=$1 init address
  init=$(cat "$dir/init")
  shift
  # The end here goes with the machine.
  ip -n "$name" link add "v$init" type veth peer name eth0 netns "$init"
  ip -n "$name" link set "v$init" master bridge0 up
  for address in "$@"; do nsenter --target "$init" --net ip address add "$address/24" dev eth0; done
  nsenter --target "$init" --net ip link set eth0 up
}

case $action in
make) mkdir -p "$dir" && make_root ;;
unpack) mkdir -p "$dir" && unpack "$@" >>"$dir/make.log" 2>&1 || { tail -n 1 "$dir/make.log" >&2; exit 1; } ;;
mirror) mirror "$@" >>"$dir/make.log" 2>&1 || { tail -n 1 "$dir/make.log" >&2; exit 1; } ;;
install) install_packages "$@" >>"$dir/make.log" 2>&1 || { tail -n 1 "$dir/make.log" >&2; exit 1; } ;;
boot) boot ;;
network) network "$@" ;;
attach) attach "$@" ;;
enter) enter ;;
run)
  # nsenter would stop with what it waits for when the machine is shut down; a shell does not. That one is outside: its own kill
  # would reach processes of the host.
  exec nsenter --target "$(cat "$dir/init")" --mount --uts --ipc --net --pid --cgroup --root --wd=/ --no-fork \
    setpriv --bounding-set="$dropped" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    /bin/sh -c 'cd / && env "$@"; exit $?' sh "$@"
  ;;
esac
