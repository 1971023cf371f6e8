// netdata's collector for Unbound: collects as often as netdata does before the first chart and
// once more, and prints each dimension of each chart as "CHART DIMENSION VALUE". A dimension that
// the collector got no value for has "none". The argument is an unbound.conf, in which the collector
// looks for the control channel.
package main

import (
	"fmt"
	"os"

	"github.com/netdata/go.d.plugin/modules/unbound"
)

func main() {
	collector := unbound.New()
	collector.ConfPath = os.Args[1]
	if !collector.Init() || !collector.Check() {
		os.Exit(1)
	}
	defer collector.Cleanup()
	collected := collector.Collect()
	if collected == nil {
		os.Exit(1)
	}
	for _, chart := range *collector.Charts() {
		for _, dimension := range chart.Dims {
			value := "none"
			if known, ok := collected[dimension.ID]; ok {
				value = fmt.Sprint(known)
			}
			fmt.Println(chart.ID, dimension.ID, value)
		}
	}
}
