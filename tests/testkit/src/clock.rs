//! Clocks that a test sets, for programs that ask `libc` what time it is.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

/// Adds to what the clocks say: the first number of a file to the wall clock, the second one to
/// those that nobody sets. Both are seconds.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);
static const volatile long *ahead;

__attribute__((constructor)) static void begin(void)
{
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    void *at = mmap(0, 2 * sizeof(long), PROT_READ, MAP_SHARED, open(getenv("CLOCK_AHEAD"), O_RDONLY), 0);
    ahead = at == MAP_FAILED ? 0 : at;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = real(clock, now);
    if (!ahead)
        return result;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += ahead[0];
    else if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW
             || clock == CLOCK_BOOTTIME)
        now->tv_sec += ahead[1];
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact))
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
"#;

/// The clocks of programs that are started with its [`environment`](Self::environment).
///
/// Deadlines that a program has given to the kernel by then stay where they were.
pub struct Clock {
    directory: TempDir,
    ahead: File,
}

impl Default for Clock {
    /// Makes clocks that say the truth.
    ///
    /// # Panics
    ///
    /// When there is no C compiler, which is what links Rust programs.
    fn default() -> Self {
        let directory = TempDir::new().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("clock.c"), LIBRARY).expect("written");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(at("clock.so")).arg(at("clock.c")).arg("-ldl");
        assert!(compiler.status().expect("what links Rust programs is a C compiler").success());
        std::fs::write(at("ahead"), [0; 16]).expect("written");
        let ahead = File::options().write(true).open(at("ahead")).expect("it was made");
        Self { directory, ahead }
    }
}

impl Clock {
    /// Returns the variables, each with its value, that a program has to be started with.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        [("LD_PRELOAD", path("clock.so")), ("CLOCK_AHEAD", path("ahead"))]
    }

    /// Sets the wall clock so many seconds ahead of the truth, or behind it; the others stay as
    /// they are.
    ///
    /// # Panics
    ///
    /// When the file is gone.
    pub fn set_wall(&self, seconds: i64) {
        self.ahead.write_all_at(&seconds.to_ne_bytes(), 0).expect("written");
    }

    /// Has all clocks be so far ahead of the truth.
    ///
    /// # Panics
    ///
    /// When the file is gone, or it is too far.
    pub fn be_ahead(&self, time: Duration) {
        let seconds = i64::try_from(time.as_secs()).expect("not that far").to_ne_bytes();
        self.ahead.write_all_at(&[seconds, seconds].concat(), 0).expect("written");
    }
}
