// netdata's collector for Unbound, which tests call: `cargo xtask tools` builds it.
module netdata

go 1.24.1

require github.com/netdata/go.d.plugin v0.58.1

require (
	github.com/lmittmann/tint v1.0.4 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	golang.org/x/sys v0.16.0 // indirect
	golang.org/x/text v0.14.0 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
)
