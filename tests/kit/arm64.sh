#!/bin/sh
# The suite's core and a sample of the attacks on Linux for arm64, at level `portable`: `make arm64` starts this. A root
# of Debian's packages is made once in the cache folder, with an environment of its own; qemu runs what is in it.
set -eu
need="mmdebstrap arch-test qemu-user-static binfmt-support git"
for command in mmdebstrap arch-test git unshare; do
	if ! command -v $command >/dev/null; then
		echo "$command is missing: sudo apt install $need" >&2
		exit 1
	fi
done
if ! arch-test arm64 >/dev/null; then
	echo "The kernel starts no program for arm64: sudo apt install $need" >&2
	echo "In a container also: sudo mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc; sudo update-binfmts --enable" >&2
	exit 1
fi

if [ "$(id -u)" != 0 ]; then
	echo "It mounts and changes its root: sudo make arm64" >&2
	exit 1
fi
# What is mounted, and every process, ends with this script.
[ -n "${INSIDE-}" ] || INSIDE=1 exec unshare --mount --pid --fork --kill-child sh "$0" "$@"

began=$(date +%s)
root="${XDG_CACHE_HOME:-$HOME/.cache}/knapper/arm64"
if [ ! -e "$root/knapper" ]; then
	echo "A root of Debian's packages, once: some minutes."
	rm -rf "$root"
	mkdir -p "$root"
	mmdebstrap --quiet --mode=root --arch=arm64 --variant=minbase --include=python3-venv,ca-certificates,git,make \
		"$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root"
	mkdir "$root/knapper"
fi
cp -L /etc/resolv.conf "$root/etc/"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
find "$root/knapper" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
git ls-files -z | xargs -0 cp --parents --preserve=timestamps --target-directory "$root/knapper"

chroot "$root" env HOME=/root KNAPPER_SANDBOX_LEVEL=portable sh -eu -c '
	cd /knapper
	make .venv/.dev
	.venv/bin/python -m knapper doctor | head -12
	.venv/bin/python -m pytest -n 2 -q -rs --color=no -m "not slow and not model and not page" "$@"
' sh "$@" || failed=$?
echo "arm64, below qemu: $((($(date +%s) - began) / 60)) minutes."
exit ${failed-0}
