#!/bin/sh
# Verifies the release archives of a folder as one who has fetched them would, and unpacks them:
# try.sh PACKAGES.
set -eu
cd "$1"
fail() { echo "FAILED: $*"; exit 1; }
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
for sums in gannet-*.sha256; do
    sha256sum --quiet --check "$sums"
    name=${sums%.sha256}
    tar --extract --file "$name.tar.gz" --directory "$room"
    for file in bin/gannet share/man/man1/gannet.1 share/man/man5/gannet.yaml.5 \
        share/bash-completion/completions/gannet lib/systemd/system/gannet.service \
        share/doc/gannet/copyright; do
        [ -s "$room/$name/$file" ] || fail "$name has no $file"
    done
    "$room/$name/bin/gannet" version
    python3 - "$name.cdx.json" << 'END'
import json, sys
bill = json.load(open(sys.argv[1]))
names = {component["name"] for component in bill["components"]}
known = {component["bom-ref"] for component in bill["components"]}
known.add(bill["metadata"]["component"]["bom-ref"])
for name in ("gannet-engine", "rustls", "rusqlite"):
    assert name in names, f"the bill does not name {name}"
for need in bill["dependencies"]:
    for reference in [need["ref"], *need["dependsOn"]]:
        assert reference in known, f"the bill refers to {reference}"
for component in bill["components"]:
    assert component["licenses"], component
    assert component["name"].startswith("gannet") or component["hashes"], component
print(len(names), "packages in the bill of materials")
END
done
