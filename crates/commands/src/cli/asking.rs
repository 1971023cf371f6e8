//! Arguments of the commands that ask: `query`, `probe`, `explain`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use wire::NameBuf;

use super::{LocalArgs, RemoteArgs, parse_seconds};

/// Arguments of `query`.
#[derive(Args, Debug)]
pub struct QueryArgs {
    /// A name or an address, a type [default: A, for an address PTR], `@` with a server, and
    /// options with a plus sign.
    #[arg(value_name = "NAME [TYPE] [@SERVER] [+OPTION]...", required = true, num_args = 1..=64)]
    pub words: Vec<String>,
    /// The server's port.
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Ask over IPv4 only.
    #[arg(short = '4', conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Ask over IPv6 only.
    #[arg(short = '6')]
    pub ipv6: bool,
    /// Ask from this address of the machine.
    #[arg(short, long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// Sign the query with this key (TSIG), and accept only replies signed with it. Other users can
    /// see it while the command runs; `-k` is safer.
    #[arg(short = 'y', long, value_name = "[ALGORITHM:]NAME:SECRET", conflicts_with = "key_file")]
    pub key: Option<String>,
    /// Sign the query with the first key of this file, as `tsig-keygen` writes it.
    #[arg(short = 'k', long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Use TCP; the same as `+tcp`.
    #[arg(long)]
    pub tcp: bool,
    /// Request DNSSEC records (DO); the same as `+dnssec`.
    #[arg(long)]
    pub dnssec: bool,
    /// Disable validation by the server (CD); the same as `+cd`.
    #[arg(long)]
    pub no_check: bool,
    /// Request no recursion (RD clear); the same as `+norecurse`.
    #[arg(long)]
    pub no_recurse: bool,
    /// The timeout of each of three attempts, of a connection's reply, or of each message of a
    /// transfer [default: 2, for transfers 10].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub timeout: Option<Duration>,
    /// Print the data of the answer alone; the same as `+short`.
    #[arg(long, conflicts_with = "json")]
    pub short: bool,
    /// The server that is asked if none is named, and how results are printed.
    #[command(flatten)]
    pub remote: LocalArgs,
}

/// What `query --help` says of servers and options.
pub(super) const QUERY_HELP: &str = "\
Servers:
  @192.0.2.1, @192.0.2.1:5353, @[2001:db8::1]:53, @ns.example.org
  @tcp://…, @tls://192.0.2.1#dns.example.org, @https://dns.example.org/dns-query, @h3://…, @quic://…, @sdns://…

Options (most can be switched off again with +no…):
  +tcp  +tls  +https[=/PATH]  +h3[=/PATH]  +quic        what carries the query
  +tls-hostname=NAME  +tls-ca=FILE  +tls-pin=HASH       what the server must prove; otherwise a certificate for the name or address
  +insecure                                             that it proves nothing
  +dnssec (+do)  +cd  +ad  +norecurse                   flags
  +subnet=PREFIX  +nsid  +expire  +keepalive            EDNS options
  +cookie[=HEX]  +padding[=OCTETS]  +ednsopt=CODE[:HEX]
  +bufsize=OCTETS  +noedns                              the largest reply over UDP; no EDNS at all
  +ignore                                               show a truncated reply, do not ask again over TCP
  +timeout=SECONDS  +tries=NUMBER  +short               as --timeout; attempts; as --short
  +noidnin  +[no]idnout  +noidn                         names outside ASCII: not converted when asked, or when shown

Examples:
  gannet query example.org MX @192.0.2.1 +dnssec
  gannet query example.org AXFR @192.0.2.1 -k xfr.key
  gannet query example.org IXFR=2026080101 @192.0.2.1
  gannet query example.org @tls://127.0.0.1 +tls-ca=certificate.pem +tls-hostname=dns.example.org

Exit codes: 0 NOERROR or a whole transfer; 1 another response code, no reply, a broken transfer, a reply whose signature
does not hold; 2 wrong usage.";

/// Arguments of `probe`.
#[derive(Args, Debug)]
pub struct ProbeArgs {
    /// The server: an address, `tls://`, `https://` and so on, a DNS stamp, or a mapping in braces.
    #[arg(value_name = "UPSTREAM")]
    pub upstream: String,
    /// Have the running server measure it: one of its configuration, and for admins any other.
    #[arg(long)]
    pub running: bool,
    /// The query name; further queries use random names below it.
    #[arg(long, value_name = "NAME", default_value = "example.com")]
    pub name: NameBuf,
    /// A name with valid signatures.
    #[arg(long, value_name = "NAME", default_value = "example.com")]
    pub signed: NameBuf,
    /// A name with invalid signatures.
    #[arg(long, value_name = "NAME", default_value = "dnssec-failed.org")]
    pub bogus: NameBuf,
    /// Queries to send one after the other [default: 20; by the running server 5, and 20 at most].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub count: Option<u16>,
    /// How long to wait for each reply.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "2")]
    pub timeout: Duration,
    /// How long to wait for an idle connection to be closed [default: 15].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub idle: Option<Duration>,
    /// The running server, and how results are printed.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A name or an address, and a type [default: A, for an address PTR].
    #[arg(value_name = "NAME [TYPE]", required = true, num_args = 1..=2)]
    pub words: Vec<String>,
    /// The client's address [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS")]
    pub client: Option<IpAddr>,
    /// The listener, by its name [default: the first].
    #[arg(long, value_name = "NAME")]
    pub listener: Option<String>,
    /// The query comes over TCP.
    #[arg(long)]
    pub tcp: bool,
    /// The client asks for DNSSEC records too (DO).
    #[arg(long)]
    pub dnssec: bool,
    /// Follow this configuration instead of the running server; no query is sent.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The running server, and how results are printed.
    #[command(flatten)]
    pub remote: RemoteArgs,
}
