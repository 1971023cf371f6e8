"""Asks over every encrypted transport that dnspython has (QUIC by aioquic) and prints a line for each answer."""

import sys

import dns.message
import dns.query
import dns.rcode

address, name, trusted, tls, https, quic = sys.argv[1:]
url = f"https://{name}:{https}/dns-query"


def over_https(query, version):
    return dns.query.https(query, url, timeout=20, bootstrap_address=address, verify=trusted, http_version=version)


transports = {
    "tls": lambda query: dns.query.tls(query, address, 20, int(tls), server_hostname=name, verify=trusted),
    "https1": lambda query: over_https(query, dns.query.HTTPVersion.HTTP_1),
    "https2": lambda query: over_https(query, dns.query.HTTPVersion.HTTP_2),
    "https3": lambda query: over_https(query, dns.query.HTTPVersion.HTTP_3),
    "https-get": lambda query: dns.query.https(
        query, url, timeout=20, bootstrap_address=address, verify=trusted, post=False
    ),
    "quic": lambda query: dns.query.quic(query, address, 20, int(quic), server_hostname=name, verify=trusted),
}
for transport, ask in transports.items():
    for qtype in ["A", "TXT"]:
        # Padding is asked for, as clients that encrypt do.
        query = dns.message.make_query("example.org", qtype, use_edns=0, pad=128)
        reply = ask(query)
        records = " ".join(str(record) for rrset in reply.answer for record in rrset)
        print(transport, qtype, dns.rcode.to_text(reply.rcode()), len(reply.answer), records[:40])
