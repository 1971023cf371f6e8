$TTL 3600
@ SOA ns1 hostmaster 2026010101 7200 3600 1209600 300
@ NS ns1
@ MX 10 mail
ns1 A 192.0.2.1
mail A 192.0.2.2
www CNAME mail
*.wild TXT "anything"
sub NS ns.sub
ns.sub A 192.0.2.3
