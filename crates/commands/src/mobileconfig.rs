//! `gannet mobileconfig`: a profile that makes Apple devices use an encrypted transport.

use std::fmt::Write as _;
use std::process::ExitCode;

use crate::cli::{EncryptedProtocol, MobileconfigArgs};
use crate::out;

/// Runs `gannet mobileconfig`.
pub fn run(args: &MobileconfigArgs) -> ExitCode {
    if !args.path.starts_with('/') {
        out::complain(&format!(
            "\"{}\" is not the path of a request: expected one such as /dns-query",
            args.path
        ));
        return out::negative();
    }
    let mut random = [0; 32];
    if let Err(error) = getrandom::fill(&mut random) {
        out::complain(&format!("no random numbers: {error}"));
        return out::negative();
    }
    out::print(&profile(args, random));
    out::FINE
}

/// Returns the profile (Apple's "DNS Settings" payload, `com.apple.dnsSettings.managed`).
fn profile(args: &MobileconfigArgs, random: [u8; 32]) -> String {
    let server = escaped(&args.server);
    let (protocol, name) = match args.protocol {
        EncryptedProtocol::Https => ("HTTPS", "DNS over HTTPS"),
        EncryptedProtocol::Tls => ("TLS", "DNS over TLS"),
    };
    let mut settings = format!("<key>DNSProtocol</key><string>{protocol}</string>");
    // Writing to a string cannot fail.
    let _ = match args.protocol {
        EncryptedProtocol::Https => {
            let path = escaped(&args.path);
            write!(settings, "<key>ServerURL</key><string>https://{server}{path}</string>")
        }
        EncryptedProtocol::Tls => write!(settings, "<key>ServerName</key><string>{server}</string>"),
    };
    if !args.addresses.is_empty() {
        settings.push_str("<key>ServerAddresses</key><array>");
        for address in &args.addresses {
            let _ = write!(settings, "<string>{address}</string>");
        }
        settings.push_str("</array>");
    }
    let (first, second) = random.split_at(16);
    let (outer, inner) = (uuid(first), uuid(second));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\"><dict>\n\
         <key>PayloadContent</key><array><dict>\n\
         <key>DNSSettings</key><dict>{settings}</dict>\n\
         <key>PayloadDisplayName</key><string>{name}: {server}</string>\n\
         <key>PayloadIdentifier</key><string>com.apple.dnsSettings.managed.{inner}</string>\n\
         <key>PayloadType</key><string>com.apple.dnsSettings.managed</string>\n\
         <key>PayloadUUID</key><string>{inner}</string>\n\
         <key>PayloadVersion</key><integer>1</integer>\n\
         </dict></array>\n\
         <key>PayloadDescription</key><string>Asks {server} for names, over {protocol}.</string>\n\
         <key>PayloadDisplayName</key><string>{server}</string>\n\
         <key>PayloadIdentifier</key><string>{server}.{outer}</string>\n\
         <key>PayloadRemovalDisallowed</key><false/>\n\
         <key>PayloadType</key><string>Configuration</string>\n\
         <key>PayloadUUID</key><string>{outer}</string>\n\
         <key>PayloadVersion</key><integer>1</integer>\n\
         </dict></plist>\n"
    )
}

/// Returns a random UUID (RFC 9562 §5.4) of 16 octets.
fn uuid(random: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, &octet) in random.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let octet = match at {
            6 => octet & 0x0f | 0x40,
            8 => octet & 0x3f | 0x80,
            _ => octet,
        };
        let _ = write!(text, "{octet:02X}");
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(protocol: EncryptedProtocol) -> MobileconfigArgs {
        let addresses = vec!["192.0.2.53".parse().expect("an address")];
        let (server, path) = ("dns.example.org".to_owned(), "/dns-query".to_owned());
        MobileconfigArgs { server, protocol, path, addresses }
    }

    #[test]
    fn a_profile_says_how_to_reach_the_server() {
        let https = profile(&args(EncryptedProtocol::Https), [7; 32]);
        assert!(
            https.contains("<key>ServerURL</key><string>https://dns.example.org/dns-query</string>"),
            "{https}"
        );
        assert!(
            https.contains("<key>ServerAddresses</key><array><string>192.0.2.53</string></array>"),
            "{https}"
        );
        let tls = profile(&args(EncryptedProtocol::Tls), [7; 32]);
        assert!(tls.contains("<key>DNSProtocol</key><string>TLS</string>"), "{tls}");
        assert!(tls.contains("<key>ServerName</key><string>dns.example.org</string>"), "{tls}");
        assert!(!tls.contains("ServerURL"), "{tls}");
    }

    #[test]
    fn identifiers_are_random_uuids() {
        let random: Vec<u8> = (0..16).collect();
        assert_eq!(uuid(&random), "00010203-0405-4607-8809-0A0B0C0D0E0F");
    }
}
