//! How long `unbound-checkconf` takes for a file of local zones, and how much memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{Arguments, Figure, SIDES, Side, listed_name, own_directory, write, write_lines};
use crate::sys;

pub(super) fn measure(arguments: &Arguments, directory: &Path) -> Result<Vec<Figure>, String> {
    let own = own_directory(directory, Side::Unbound)?;
    let (file, zones) = (own.join("unbound.conf"), own.join("zones.conf"));
    write_lines(&zones, arguments.names, |number| {
        format!("local-zone: \"{}.\" always_refuse", listed_name(number))
    })?;
    write(
        &file,
        &format!(
            "server:\n username: \"\"\n chroot: \"\"\n pidfile: \"\"\n include: \"{}\"\n",
            zones.display()
        ),
    )?;
    let wrong = own.join("wrong.conf");
    write(&wrong, "server:\n prot: 53\n")?;
    let [mut time, mut cpu, mut memory] = [("time", "ms"), ("CPU time", "ms"), ("memory at most", "MiB")]
        .map(|(name, unit)| Figure::new(name, unit));
    for _ in 0..arguments.rounds {
        for side in SIDES {
            let check = |path: &Path| {
                let mut command = match side {
                    Side::Unbound => Command::new(arguments.unbound.with_file_name("unbound-checkconf")),
                    Side::Gannet => {
                        let mut command = Command::new(&arguments.gannet);
                        command.args(["unbound", "checkconf"]);
                        command
                    }
                };
                command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                sys::confine(&mut command, &arguments.cores);
                let begun = Instant::now();
                let child = command.spawn().map_err(|error| format!("{}: {error}", side.name()))?;
                let ended = sys::wait_used(&child).map_err(|error| format!("{}: {error}", side.name()))?;
                Ok::<_, String>((begun.elapsed(), ended))
            };
            // Whoever finds no mistake might not look.
            if check(&wrong)?.1.is_success {
                return Err(format!("{}: a mistake was not found", side.name()));
            }
            let (took, ended) = check(&file)?;
            if !ended.is_success {
                return Err(format!("{}: the file is found wrong", side.name()));
            }
            time.add(side, took.as_secs_f64() * 1e3);
            cpu.add(side, ended.cpu.as_secs_f64() * 1e3);
            memory.add(side, ended.peak_octets as f64 / f64::from(1 << 20));
        }
    }
    Ok(vec![time, cpu, memory])
}
