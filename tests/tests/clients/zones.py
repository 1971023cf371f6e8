"""Takes a zone over, changes it and follows the change with dnspython; prints a line for each thing it did."""

import sys

import dns.name
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsig
import dns.tsigkeyring
import dns.update
import dns.versioned
import dns.xfr

address, port, zone_name, key_name, secret = sys.argv[1:]
port = int(port)
keyring = dns.tsigkeyring.from_text({key_name: secret})
key = dict(keyring=keyring, keyname=dns.name.from_text(key_name), keyalgorithm=dns.tsig.HMAC_SHA256)
zone = dns.versioned.Zone(zone_name)


def take(zone):
    """Takes over what the zone lacks: all of it, or the differences to its serial."""
    query, serial = dns.xfr.make_query(zone, **key)
    dns.query.inbound_xfr(address, zone, query, port=port, timeout=20)
    return dns.rdatatype.to_text(query.question[0].rdtype)


def records(zone):
    with zone.reader() as reader:
        return sum(len(rdataset) for _, rdataset in reader.iterate_rdatasets())


def update(ask):
    message = dns.update.UpdateMessage(zone_name, **key)
    return message, lambda: dns.rcode.to_text(ask(message, address, port=port, timeout=20).rcode())


print(take(zone), records(zone))

message, send = update(dns.query.tcp)
message.present("mail", "A")
message.absent("new")
message.add("new", 60, "A", "192.0.2.99")
message.delete("host-77", "A")
print("tcp", send())
# The same once more: what had to be absent is there now.
print("again", send())
message, send = update(dns.query.udp)
message.replace("host-78", 60, "TXT", '"by UDP"')
print("udp", send())
message, send = update(dns.query.tcp)
message.add("elsewhere.example.net.", 60, "A", "192.0.2.1")
print("outside", send())

before = records(zone)
print(take(zone), records(zone) - before)
fresh = dns.versioned.Zone(zone_name)
take(fresh)
with zone.reader() as followed, fresh.reader() as taken:
    same = sorted(map(str, followed.iterate_rdatasets())) == sorted(map(str, taken.iterate_rdatasets()))
    print("same", same, followed.get("new", "A")[0], followed.get("host-77", "A"))

for what, wrong in [("key", {"stranger.": secret}), ("secret", {key_name: "d3Jvbmc="})]:
    keyring = dns.tsigkeyring.from_text(wrong)
    key = dict(keyring=keyring, keyname=next(iter(keyring)), keyalgorithm=dns.tsig.HMAC_SHA256)
    try:
        take(dns.versioned.Zone(zone_name))
        print(what, "was believed")
    except dns.exception.DNSException as error:
        print(what, type(error).__name__)
