//! What a person reads who started the server without a configuration.

use std::net::SocketAddr;

/// Returns exactly three lines: where it answers and why there, how to try it, how to go on.
pub(crate) fn greeting(listeners: &[SocketAddr], why_not_53: Option<&str>, upstreams: &[String]) -> String {
    let port = listeners.first().map_or(53, SocketAddr::port);
    let addresses: Vec<String> = listeners.iter().map(|at| at.ip().to_string()).collect();
    let reason = why_not_53.map(|reason| format!(" (port 53 {reason})")).unwrap_or_default();
    let asks = match upstreams {
        [] => "finds answers by itself".to_owned(),
        some => format!("asks {}", some.join(", ")),
    };
    format!(
        "gannet answers this machine on {}, port {port}{reason}, and {asks}.\n\
         Try it:         gannet query example.org\n\
         Make it yours:  gannet config default > gannet.yaml, change it, then gannet run -c gannet.yaml\n",
        addresses.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_has_three_lines_and_says_why_not_53() {
        let listeners = ["127.0.0.1:5300".parse().unwrap(), "[::1]:5300".parse().unwrap()];
        let text = greeting(&listeners, Some("is taken by dnsmasq (process 7)"), &["192.0.2.53".into()]);
        assert_eq!(text.lines().count(), 3);
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "gannet answers this machine on 127.0.0.1 and ::1, port 5300 (port 53 is taken by dnsmasq (process 7)), \
             and asks 192.0.2.53."
        );
    }
}
