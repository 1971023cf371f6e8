//! Programs of others that read the statistics, as their users set them up: each shows what the
//! server counted.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;

use testkit::eventually;

use super::*;
use crate::harness::is_root;

/// Starts a server that has answered three queries, and one with NXDOMAIN.
fn counted(control: &Control) -> Running {
    let running = Running::start(control, " extended-statistics: yes\n statistics-cumulative: yes\n", "");
    for _ in 0..3 {
        running.ask("www.static.example");
    }
    assert_eq!(running.ask("none.static.example").0, NXDOMAIN);
    running
}

/// What it counted, in Unbound's words.
const COUNTED: [(&str, f64); 8] = [
    ("total.num.queries", 4.0),
    ("total.num.cachehits", 4.0),
    ("total.num.cachemiss", 0.0),
    ("num.query.type.A", 4.0),
    ("num.query.flags.RD", 4.0),
    ("num.query.tcp", 0.0),
    ("num.answer.rcode.NOERROR", 3.0),
    ("num.answer.rcode.NXDOMAIN", 1.0),
];

/// Puts ours where a program looks for `unbound-control`.
fn control_program(running: &Running) -> std::path::PathBuf {
    let program = running.server.place.path("unbound-control");
    // Whoever runs it may not get to where it was built.
    let built = env!("CARGO_BIN_EXE_gannet");
    fs::hard_link(built, &program).or_else(|_| fs::copy(built, &program).map(drop)).expect("a program");
    program
}

/// Its plug-in runs `unbound-control stats_noreset`.
#[test]
fn telegraf_gathers_what_was_counted() {
    let running = counted(&Control::Certificates);
    let file = running.server.place.write(
        "telegraf.conf",
        &format!(
            "[agent]\n omit_hostname = true\n skip_processors_after_aggregators = true\n\
             [[inputs.unbound]]\n binary = \"{}\"\n config_file = \"{}\"\n timeout = \"{}s\"\n\
             thread_as_tag = true\n histogram = true\n",
            control_program(&running).display(),
            running.conf(),
            PATIENCE.as_secs()
        ),
    );
    let (code, shown, said) =
        text(&Command::new(testkit::tool("bin/telegraf")).arg(&file).output().expect("telegraf runs"));
    assert_eq!(code, 0, "{said}");
    // `> MEASUREMENT,TAG=VALUE FIELD=VALUE,FIELD=VALUE TIME`
    let mut series: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    for line in shown.lines().filter_map(|line| line.strip_prefix("> ")) {
        let (name, rest) = line.split_once(' ').expect("a measurement");
        let fields = rest.split(' ').next().expect("fields").split(',');
        let fields = fields.filter_map(|field| field.split_once('='));
        let fields = fields.map(|(key, value)| (key, value.parse().expect("a number")));
        series.entry(name).or_default().extend(fields);
    }
    let all = &series["unbound"];
    for (key, value) in COUNTED {
        assert_eq!(all.get(&*key.replace('.', "_")), Some(&value), "{key}: {shown}");
    }
    assert_eq!(all.keys().filter(|key| key.starts_with("histogram_")).count(), 40, "{shown}");
    let of = |thread: u8| series[&*format!("unbound_threads,thread={thread}")]["num_queries"];
    assert_eq!(of(0) + of(1), 4.0, "{shown}");
}

/// Its collector reads `unbound.conf` to find the channel, and speaks its protocol itself.
#[test]
fn netdata_collects_what_was_counted_and_has_as_many_dimensions_as_with_unbound() {
    for control in [Control::Certificates, Control::Plain, Control::Unix] {
        let running = counted(&control);
        // The collector knows no port behind an address.
        let conf = fs::read_to_string(running.conf()).unwrap();
        let port = running.control_port;
        let conf = conf.replace(&format!("@{port}"), &format!("\n control-port: {port}"));
        let conf = running.server.place.write("netdata.conf", &conf);
        let (code, shown, said) =
            text(&Command::new(testkit::tool("bin/netdata")).arg(&conf).output().expect("netdata runs"));
        assert_eq!(code, 0, "{said}");
        let mut dimensions: BTreeMap<&str, &str> = BTreeMap::new();
        for line in shown.lines() {
            let mut parts = line.split(' ').skip(1);
            let (Some(dimension), Some(value)) = (parts.next(), parts.next()) else { panic!("{line}") };
            dimensions.insert(dimension, value);
        }
        for (key, value) in COUNTED {
            let shown = dimensions.get(key).map(|value| value.parse().expect("a number"));
            // Flags and transports that are no dimension of its charts are not shown.
            assert!(shown == Some(value) || shown.is_none(), "{key}: {shown:?}");
        }
        for key in
            ["total.num.queries", "total.num.cachehits", "num.query.type.A", "num.answer.rcode.NXDOMAIN"]
        {
            assert!(dimensions.contains_key(key), "{key}: {shown}");
        }
        // Debian's Unbound has no value for these either: of older versions, and of DNSCrypt.
        let is_there = |key: &str| {
            !key.contains("dnscrypt") && !key.ends_with(".num.zero_ttl") && key != "mem.mod.ipsecmod"
        };
        let without: Vec<_> =
            dimensions.iter().filter(|(key, value)| **value == "none" && is_there(key)).collect();
        assert!(without.is_empty(), "{without:?}");
    }
}

/// Ends a daemon of somebody else.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A script of its exec plug-in prints what `unbound-control` says; another plug-in writes it down.
#[test]
fn collectd_writes_down_what_was_counted() {
    let running = counted(&Control::Plain);
    let place = &running.server.place;
    let program = control_program(&running);
    let script = place.write(
        "statistics.sh",
        &format!(
            "#!/bin/sh\n\"{}\" -c \"{}\" stats_noreset | sed -n \
             's/^\\([^=]*\\)=\\(.*\\)$/PUTVAL \"here\\/unbound\\/gauge-\\1\" interval=1 N:\\2/p'\n",
            program.display(),
            running.conf()
        ),
    );
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    // The plug-in runs nothing as root.
    let user = if is_root() { "nobody".to_owned() } else { std::env::var("USER").unwrap_or_default() };
    // A path below its own folder: it takes none in which a name begins with a dot.
    let data = place.path("data");
    let file = place.write(
        "collectd.conf",
        &format!(
            "Hostname \"here\"\nBaseDir \"{0}\"\nPIDFile \"{0}/collectd.pid\"\nTypesDB \"/usr/share/collectd/types.db\"\n\
             Interval 1\nLoadPlugin logfile\nLoadPlugin csv\nLoadPlugin exec\n\
             <Plugin logfile>\n LogLevel info\n File \"{0}/collectd.log\"\n Timestamp true\n</Plugin>\n\
             <Plugin csv>\n DataDir \"data\"\n StoreRates false\n</Plugin>\n\
             <Plugin exec>\n Exec \"{user}\" \"{1}\"\n</Plugin>\n",
            place.path("").display(),
            script.display()
        ),
    );
    let log = File::create(place.path("collectd.out")).unwrap();
    let mut daemon = Command::new("collectd");
    daemon.args(["-f", "-C"]).arg(&file).stdout(log.try_clone().unwrap()).stderr(log);
    let _daemon = Ends(daemon.spawn().expect("collectd runs"));
    // `gauge-KEY-DATE`, whose lines are `TIME,VALUE`.
    let latest = |key: &str| -> Option<f64> {
        let begins = format!("gauge-{key}-2");
        let files = fs::read_dir(data.join("here/unbound")).ok()?.flatten();
        let mut files = files.filter(|file| file.file_name().to_string_lossy().starts_with(&begins));
        let lines = fs::read_to_string(files.next()?.path()).ok()?;
        lines.lines().last()?.split_once(',')?.1.parse().ok()
    };
    for (key, value) in COUNTED {
        eventually(key, || latest(key) == Some(value));
    }
    running.ask("www.static.example");
    eventually("it goes on", || latest("total.num.queries") == Some(5.0));
    let log = fs::read_to_string(place.path("collectd.log")).unwrap();
    assert!(!log.contains("[error]"), "{log}");
}

/// What `unbound_exporter` and programs like it do: a client of TLS that knows the server's
/// certificate, and wants it to be for "unbound"; every line is a key and a number, and buckets of
/// the histogram are counts.
#[test]
fn an_exporter_that_checks_the_certificate_reads_every_line() {
    let running = counted(&Control::Certificates);
    let script = "import socket, ssl, sys\n\
                  port = int(sys.argv[1])\n\
                  context = ssl.create_default_context(cafile='unbound_server.pem')\n\
                  context.load_cert_chain('unbound_control.pem', 'unbound_control.key')\n\
                  plain = socket.create_connection(('127.0.0.1', port))\n\
                  with context.wrap_socket(plain, server_hostname='unbound') as channel:\n\
                  \x20   channel.sendall(b'UBCT1 stats_noreset\\n')\n\
                  \x20   said = b''.join(iter(lambda: channel.recv(65536), b''))\n\
                  for line in said.decode().splitlines():\n\
                  \x20   key, value = line.split('=')\n\
                  \x20   number = int(value) if key.startswith('histogram.') else float(value)\n\
                  \x20   print(key, float(number))\n";
    let mut python = Command::new("python3");
    python.current_dir(running.server.place.path("")).args(["-c", script, &running.control_port.to_string()]);
    let (code, shown, said) = text(&python.output().expect("python3 runs"));
    assert_eq!(code, 0, "{said}");
    let shown: BTreeMap<&str, f64> = shown
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(key, value)| (key, value.parse().expect("a number")))
        .collect();
    for (key, value) in COUNTED {
        assert_eq!(shown.get(key), Some(&value), "{key}");
    }
    assert_eq!(shown["thread0.num.queries"] + shown["thread1.num.queries"], 4.0);
}

/// Runs `unbound_exporter` where it is installed, over TLS and over a Unix socket.
#[test]
fn unbound_exporter_exports_what_was_counted() {
    if Command::new("unbound_exporter").arg("-h").output().is_err() {
        println!("skipped: needs unbound_exporter");
        return;
    }
    for control in [Control::Certificates, Control::Unix] {
        let running = counted(&control);
        let place = &running.server.place;
        let port = free_port();
        let mut exporter = Command::new("unbound_exporter");
        exporter.current_dir(place.path("")).args(["-web.listen-address", &format!("127.0.0.1:{port}")]);
        if matches!(control, Control::Unix) {
            exporter.args(["-unbound.host", &format!("unix://{}", place.path("u.sock").display())]);
        } else {
            exporter.args(["-unbound.host", &format!("tcp://127.0.0.1:{}", running.control_port)]);
            exporter.args(["-unbound.ca", "unbound_server.pem", "-unbound.cert", "unbound_control.pem"]);
            exporter.args(["-unbound.key", "unbound_control.key"]);
        }
        let _exporter = Ends(exporter.stderr(Stdio::null()).spawn().expect("it runs"));
        let begun = Instant::now();
        let exported = loop {
            let url = format!("http://127.0.0.1:{port}/metrics");
            let (code, shown, _) =
                text(&Command::new("curl").args(["-sf", &url]).output().expect("curl runs"));
            if code == 0 {
                break shown;
            }
            assert!(begun.elapsed() < PATIENCE, "it answers");
        };
        for line in [
            "unbound_up 1",
            "unbound_answer_rcodes_total{rcode=\"NOERROR\"} 3",
            "unbound_answer_rcodes_total{rcode=\"NXDOMAIN\"} 1",
            "unbound_query_types_total{type=\"A\"} 4",
            "unbound_query_flags_total{flag=\"RD\"} 4",
        ] {
            assert!(exported.lines().any(|shown| shown == line), "{line}: {exported}");
        }
    }
}
