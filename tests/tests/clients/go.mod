// The client of DNSCrypt that tests call: `cargo xtask tools` builds it.
module clients

go 1.24.1

require github.com/ameshkov/dnscrypt/v2 v2.4.0
